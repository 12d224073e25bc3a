#include "chapters/multi_gpu/train_steps.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/stopping.h"
#include "common/base/console/language.h"
#include "common/base/source_location.h"
#include "common/ops/ops.h"
#include "common/parallel/collective.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/nccl_library.h"
#include "common/parallel/split_batch.h"

namespace d2l {
DataParallelOptions OptionsOf(const TrainOptions& options,
                              Processes& processes) {
  DataParallelOptions parallel = options.parallel;
  if (!processes.several()) return parallel;
  parallel.process = processes.rank();
  parallel.processes = processes.size();
  if (parallel.allreduce == AllReduceAlgorithm::kNccl) {
    const int here = static_cast<int>(options.devices.size());
    const NcclRanks ranks = {processes.SharedNcclId(), here * processes.rank(),
                             here * processes.size(), options.mpi_timeout_s};
    parallel.sum = [ranks](Replicas local, SourceLocation at) {
      return AllReduceByNccl(local, at, ranks);
    };
    return parallel;
  }
  parallel.sum = [world = processes.world(),
                  algorithm = options.by_mpi
                                  ? std::nullopt
                                  : std::optional(parallel.allreduce)](
                     Replicas local, SourceLocation at) {
    return world->AllReduceAsync(local, algorithm, at);
  };
  return parallel;
}

StepResult TrainSteps::Step(const Batch& batch) {
  BeginStep();
  const DataParallel::Result result =
      net_.Step(batch.images, batch.labels, net_.sgd().options());
  const auto [begin, sizes] = net_.ShareOf(batch.labels.size(0));
  const Device device = options_.devices[0];
  const std::int64_t end = std::accumulate(sizes.begin(), sizes.end(), begin);
  const Tensor right = begin == end
                           ? Zeros({}, device, DType::kInt64)
                           : CountRight(JoinShards(result.outputs, device),
                                        Slice(batch.labels, 0, begin, end));
  return StepResult{result.loss, EndStep(right)};
}

void TrainSteps::CheckParameters(const std::string& when) {
  if (!processes_.several()) return;
  processes_.CheckEqual(HashOf(net_.module(), net_.sgd()),
                        absl::StrCat("Parameters ", when));
}

// For messages; and compares the parameters now and then.
void TrainSteps::BeginStep() {
  if (!processes_.several()) return;
  const LoaderPosition next = batches_.position();  // of the step after it
  const std::string where =
      Say("batch %d of epoch %d", next.batch, next.epoch + 1);
  processes_.world()->SetDuring(where);
  // The second one, should the first be gone (SpeakOnlyFor).
  if (processes_.rank() < 2) {
    SetStopText(absl::StrCat(
        "\n",
        Say("%s: asked to stop in %s. Unless it says that it has saved there:",
            processes_.Name(), where),
        "\n", how_to_go_on_));
  }
  const std::int64_t before = next.epoch * batches_.batches() + next.batch - 1;
  if (before > 0 && before % options_.check_every == 0) {
    CheckParameters(
        absl::StrFormat("after step %d, before %s,", before, where));
  }
}

// How many were right in all processes. Takes with it whether one of them is
// to stop, so that all do at the same step.
Tensor TrainSteps::EndStep(const Tensor& right) {
  if (!processes_.several()) return right;
  std::vector<Tensor> sums;
  for (const Device device : options_.devices) {
    sums.push_back(Zeros({2}, device, DType::kFloat64));
  }
  CopyTo(To(right, DType::kFloat64), Select(sums[0], 0, 0), true);
  const double stop = StopSignal() != 0 ? 1 : 0;
  CopyTo(Full({}, stop, options_.devices[0], DType::kFloat64),
         Select(sums[0], 0, 1), true);
  net_.options().sum(sums, SourceLocation::Current()).Wait();
  stops_.push_back(Select(sums[0], 0, 1));
  return To(Select(sums[0], 0, 0), DType::kInt64);
}

bool TrainSteps::AskedToStop() {
  if (!processes_.several()) return StopSignal() != 0;
  // Those that are done by now: no process waits for it, and all know it.
  while (static_cast<int>(stops_.size()) > options_.parallel.max_in_flight) {
    stopping_ = stopping_ || Item(stops_.front()) != 0;
    stops_.pop_front();
  }
  // The first process is there, and says what is to be said.
  if (stopping_ && processes_.rank() > 0) SetStopText("");
  return stopping_;
}

std::optional<double> TrainSteps::TestAccuracy(DataLoader& part,
                                               std::int64_t images) {
  const std::optional<double> accuracy =
      Accuracy(options_.devices.size() > 1 ? net_ : net_.module(), part,
               [this] { return !processes_.several() && StopSignal() != 0; });
  if (!accuracy || !processes_.several()) return accuracy;
  const auto size = static_cast<double>(part.data().size());
  const std::int64_t right =
      processes_.Sum(size == 0 ? 0 : std::llround(*accuracy * size));
  return static_cast<double>(right) / static_cast<double>(images);
}

}  // namespace d2l
