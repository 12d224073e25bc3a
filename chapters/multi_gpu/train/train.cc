// Trains a network on images, on one device or on several, each with a part of
// every batch:
//
//   bazel run //chapters/multi_gpu:train -- --save=lenet.safetensors
//
// and, with Open MPI, in several processes, each with the same number of
// devices:
//
//   mpirun -np 4 bazel-bin/chapters/multi_gpu/train --devices=cpu:0
//
// Ctrl-C saves a checkpoint, from which --resume continues, on the same
// hardware bit for bit like the unbroken run; a second Ctrl-C ends the program
// at once. The exit code is 0, 128 + the signal for a run that a signal
// stopped, and else 1.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/memory.h"
#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/processes.h"
#include "chapters/multi_gpu/train/report.h"
#include "chapters/multi_gpu/train/train_step.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/timer.h"
#include "common/data/loader.h"
#include "common/nn/module.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {
namespace {

// The parts of a run.
struct Training {
  Training(TrainOptions of_flags, TrainData of_files, Processes& of_mpirun)
      : processes(of_mpirun),
        options(std::move(of_flags)),
        data(std::move(of_files)),
        test_part(processes.Part(data.test)),
        net(MakeNet(options), DeviceIds(options), processes.Connect(options)),
        batches(data.training,
                {options.batch_size, /*shuffle=*/true, /*drop_last=*/false,
                 options.seed},
                options.devices[0]),
        // Testing takes no more memory than a step.
        test_batches(test_part,
                     {std::min<std::int64_t>(256, options.batch_size),
                      /*shuffle=*/false},
                     options.devices[0]),
        view(std::cout, ProgressView::TerminalRows(),
             {options.epochs, data.training.size()}) {
    net.sgd().options() = {options.lr, options.momentum};
    // Each device draws the numbers that it would draw in a single process.
    const int first =
        processes.rank() * static_cast<int>(options.devices.size());
    SetFirstDeviceIndex(first);
    if (first > 0) ManualSeed(options.seed, options.devices[0]);
  }

  // The devices come first in the table.
  static std::vector<int> DeviceIds(const TrainOptions& options) {
    std::vector<int> ids(options.devices.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }

  Processes& processes;
  TrainOptions options;
  const TrainData data;
  const Dataset test_part;  // this process's
  DataParallel net;  // of one device: only its module and sgd are used, unless
                     // memory is measured
  DataLoader batches;
  DataLoader test_batches;
  ProgressView view;
  TrainingProgress progress;
  std::vector<MemoryUse> memory;  // of the last step with a whole batch
  // With --save, the number of epochs at the last save of this run, if any.
  std::optional<std::size_t> saved_epoch;
};

// A requested step. Its results are on the first device.
struct Step {
  StepResult result;
  Tensor stop;  // of several processes: above 0 if a process received a signal
  std::int64_t samples;
};

void Note(Training& t, const std::string& sentences) {
  const std::string text = Wrap(sentences);
  t.view.Line(text.substr(0, text.size() - 1));
}

// Checks that all processes have the same parameters; `when`: "at the start".
void CheckParameters(Training& t, const std::string& when) {
  if (!t.processes.several()) return;
  t.processes.CheckEqual(HashOf(t.net), absl::StrCat("Parameters ", when));
}

// In several processes: sets the text for a stop during the step, and compares
// their parameters every check_every steps.
void BeforeStep(Training& t) {
  const LoaderPosition next = t.batches.position();  // after this step
  const std::string where =
      Say("batch %d of epoch %d", next.batch, next.epoch + 1);
  t.processes.SetDuring(where);
  const std::int64_t before = next.epoch * t.batches.batches() + next.batch - 1;
  if (before > 0 && before % t.options.check_every == 0) {
    CheckParameters(
        t, absl::StrFormat("after step %d, before %s,", before, where));
  }
}

Step RequestStep(Training& t, const Batch& batch) {
  const std::vector<Device>& devices = t.options.devices;
  const std::int64_t samples = batch.labels.size(0);
  if (devices.size() == 1 && !t.processes.several() &&
      !t.options.parallel.measure_memory) {
    return {TrainStep(t.net.module(), t.net.sgd(), batch), {}, samples};
  }
  if (t.processes.several()) BeforeStep(t);
  const DataParallel::Result result = t.net.Step(
      batch.images, batch.labels, {t.options.lr, t.options.momentum});
  const auto [begin, sizes] = t.net.ShareOf(samples);
  const std::int64_t end = std::accumulate(sizes.begin(), sizes.end(), begin);
  const Tensor right = begin == end
                           ? Zeros({}, devices[0], DType::kInt64)
                           : CountRight(JoinShards(result.outputs, devices[0]),
                                        Slice(batch.labels, 0, begin, end));
  if (!t.processes.several()) return {{result.loss, right}, {}, samples};
  // Sums over all processes: how many samples were right, and how many
  // processes must stop, so that all stop at the same step.
  std::vector<Tensor> sums = {
      Cat({Reshape(To(right, DType::kFloat64), {1}),
           Full({1}, StopSignal() != 0 ? 1 : 0, devices[0], DType::kFloat64)})};
  for (std::size_t i = 1; i < devices.size(); ++i) {
    sums.push_back(Zeros({2}, devices[i], DType::kFloat64));
  }
  t.net.options()
      .collective(Collective::kAllReduce, sums, SourceLocation::Current())
      .Wait();
  return {{result.loss, To(Select(sums[0], 0, 0), DType::kInt64)},
          Select(sums[0], 0, 1),
          samples};
}

// Throws in all processes, since their losses are the same.
void EndNotFinite(const Training& t, double loss) {
  t.processes.Agree(absl::OutOfRangeError(
      NotFiniteText(t.options, t.progress, loss, t.saved_epoch)));
}

std::int64_t WholeBatch(const Training& t) {
  return std::min<std::int64_t>(t.options.batch_size, t.data.training.size());
}

// With --report_memory, remembers the memory of the last step if it is the last
// one of an epoch with a whole batch.
void NoteMemory(Training& t) {
  if (!t.options.parallel.measure_memory) return;
  const std::int64_t last = t.data.training.size() / WholeBatch(t);
  if (t.batches.position().batch != last) return;
  t.memory.clear();
  for (std::size_t i = 0; i < t.options.devices.size(); ++i) {
    t.memory.push_back(t.net.memory(static_cast<int>(i)));
  }
}

// False if a signal stops the training. All requested steps have finished.
bool TrainEpoch(Training& t) {
  TrainingProgress& progress = t.progress;
  const Timer timer;
  const double seconds_before = progress.seconds;
  std::deque<Step> in_flight;  // the host runs ahead of the device
  double loss = 0;
  bool over = false, stop = false;
  while (!over && !stop) {
    const std::optional<Batch> batch = t.batches.Next();
    if (batch) {
      in_flight.push_back(RequestStep(t, *batch));
      NoteMemory(t);
    }
    over = !batch;
    const std::size_t most = t.options.parallel.max_in_flight;
    while (in_flight.size() > (over || stop ? 0 : most)) {
      const Step& step = in_flight.front();
      loss = Item(step.result.loss);
      progress.samples += step.samples;
      progress.right += Item<std::int64_t>(step.result.right);
      progress.loss_sum += loss * static_cast<double>(step.samples);
      if (!std::isfinite(loss)) EndNotFinite(t, loss);
      stop = stop ||
             (t.processes.several() ? Item(step.stop) != 0 : StopSignal() != 0);
      in_flight.pop_front();
      progress.seconds = seconds_before + timer.Seconds();
      t.view.Look(progress);
    }
  }
  for (const auto& [name, value] : nn::NamedState(t.net.module())) {
    if (IsFloatingPoint(value.dtype()) &&
        !std::isfinite(Item(Sum(value * 0)))) {
      EndNotFinite(t, loss);
    }
  }
  progress.seconds = seconds_before + timer.Seconds();
  // At the epoch's end the loader is in the next epoch, but the progress stays
  // in this one until the network has been tested.
  progress.next.batch = over ? t.batches.batches() : t.batches.position().batch;
  return !stop;
}

// The accuracy over all processes, each with a part of the images; nothing if a
// signal stopped it, which happens in a single process only.
std::optional<double> TestAccuracy(Training& t) {
  nn::Module& net = t.net.devices().size() > 1 ? static_cast<nn::Module&>(t.net)
                                               : t.net.module();
  const std::optional<std::int64_t> right =
      CountRight(net, t.test_batches,
                 [&t] { return !t.processes.several() && StopSignal() != 0; });
  if (!right) return std::nullopt;
  return static_cast<double>(t.processes.Sum(*right)) /
         static_cast<double>(t.data.test.size());
}

void FinishEpoch(Training& t, double test_accuracy) {
  TrainingProgress& progress = t.progress;
  const auto samples = static_cast<double>(progress.samples);
  progress.epochs.push_back({progress.seconds, progress.loss_sum / samples,
                             static_cast<double>(progress.right) / samples,
                             test_accuracy});
  TrainingProgress next;
  next.epochs = std::move(progress.epochs);
  next.next.epoch = progress.next.epoch + 1;
  progress = std::move(next);
  t.view.Epoch(progress);
}

absl::Status Save(Training& t, const std::string& file) {
  CheckParameters(t, "before saving");
  Checkpoint checkpoint = {
      t.options.ForCheckpoint(), t.progress,
      CopyState(t.net.module(), t.net.sgd(), t.options.devices)};
  checkpoint.options.merge(Surroundings(t.options, t.data, t.processes));
  checkpoint.state.generators = t.processes.Gather(checkpoint.state.generators);
  if (t.processes.rank() != 0) return absl::OkStatus();
  return SaveCheckpoint(checkpoint, UserPath(file));
}

// Restores the network, the optimiser, the generators and the batches'
// position.
absl::Status Resume(Training& t) {
  const std::string& file = t.options.resume;
  TrainingState state = t.options.checkpoint->state;
  const auto each = static_cast<std::ptrdiff_t>(t.options.devices.size());
  if (static_cast<std::ptrdiff_t>(state.generators.size()) ==
      each * t.processes.size()) {
    const auto own = state.generators.begin() + each * t.processes.rank();
    state.generators = std::vector<GeneratorState>(own, own + each);
  }
  const std::string other = OtherDataText(t.options, t.data);
  const absl::Status restored =
      other.empty()
          ? RestoreState(state, t.net.module(), t.net.sgd(), t.options.devices)
          : absl::InvalidArgumentError(other);
  if (!restored.ok()) {
    return absl::InvalidArgumentError(
        Say("cannot go on from %s: %s", file, std::string(restored.message())));
  }
  t.progress = t.options.checkpoint->progress;
  t.batches.SetPosition(t.progress.next);
  t.view.Line(Say("Resumed from %s: epoch %d, after batch %d of %d", file,
                  t.progress.next.epoch + 1, t.progress.next.batch,
                  t.batches.batches()));
  for (const std::string& change :
       ChangesSince(t.options, t.data, t.processes)) {
    Note(t, change);
  }
  if (t.progress.next.epoch >= t.options.epochs) {
    t.view.Line(Say("All its epochs are trained; for more, say --epochs=%d.",
                    2 * t.progress.next.epoch));
  }
  return absl::OkStatus();
}

absl::Status WriteFiles(Training& t) {
  const auto write = [&](std::optional<AtomicFile>& file,
                         const std::string& text) {
    if (!file) return absl::OkStatus();
    file->Write(text);
    const absl::Status status = file->Commit();
    if (status.ok()) t.view.Line(Say("Written: %s", file->path()));
    return status;
  };
  absl::Status status = write(
      t.options.json, ReportJson(t.options, t.data, nn::NumParameters(t.net),
                                 t.progress.epochs));
  status.Update(write(t.options.svg,
                      TrainingCurves(t.progress.epochs)
                          .ToSvg(absl::StrCat(t.options.net, " on ",
                                              t.data.training.name.english))));
  return status;
}

// The memory of each device in a step, measured and predicted.
std::string MemoryText(Training& t) {
  const std::vector<std::int64_t> sizes = t.net.ShareOf(WholeBatch(t)).sizes;
  const Tensor one =
      Zeros({1, 1, kImageSide, kImageSide}, t.options.devices[0]);
  std::vector<std::pair<std::string, MemoryUse>> uses;
  for (std::size_t i = 0; i < t.memory.size(); ++i) {
    const std::string device = t.options.devices[i].ToString();
    const LayerMemory layers = PredictLayers(t.net.module(), one, sizes[i]);
    uses.emplace_back(Say("%s, measured", device), t.memory[i]);
    uses.emplace_back(
        Say("%s, predicted", device),
        t.net.PredictMemory(
            static_cast<int>(i), layers.kept,
            // Includes the device's images, if they are copies.
            layers.temporaries + (i > 0 ? 4 * one.numel() * sizes[i] : 0),
            t.options.momentum > 0));
  }
  std::string table = MemoryTable(uses);
  table.pop_back();  // Line ends it
  return table;
}

// Returns the exit code.
int SaveAndStop(Training& t) {
  const std::string file =
      t.options.save.empty()
          ? absl::StrCat(t.options.net, "_interrupted.safetensors")
          : t.options.save;
  t.processes.Agree(Save(t, file));
  t.view.Line(
      absl::StrCat(Say("Saved after batch %d of %d of epoch %d: %s. Go on with",
                       t.progress.next.batch, t.batches.batches(),
                       t.progress.next.epoch + 1, file),
                   "\n  ", t.options.CommandToResume(file)));
  t.processes.Agree(WriteFiles(t));
  return 128 + (StopSignal() != 0 ? StopSignal() : SIGTERM);
}

// Returns the exit code.
int TrainMain(int argc, char** argv, Processes& processes) {
  absl::StatusOr<TrainOptions> options =
      ParseTrainOptions(argc, argv, processes.rank(), processes.size());
  processes.Agree(options.status());
  // Comes before anything depends on these flags: they decide what is sent.
  processes.CheckSame(options->SameInAllProcesses());
  absl::StatusOr<TrainData> data = LoadData(*options);
  processes.Agree(data.status());
  processes.StopOnSignals();
  Training t(*std::move(options), *std::move(data), processes);
  processes.SetHowToGoOn(HowToGoOnText(t.options, /*saved=*/false));
  std::cout << HeadText(t.options, t.data, processes, nn::NumParameters(t.net))
            << std::flush;
  processes.Agree(t.options.checkpoint ? Resume(t) : absl::OkStatus());
  processes.CheckSame(
      {{"The training data", t.data.training_fingerprint},
       {"The test data", t.data.test_fingerprint},
       {"The first batch", absl::StrCat(t.progress.next.batch + 1, " of epoch ",
                                        t.progress.next.epoch + 1)}});
  CheckParameters(t, "at the start");

  absl::Status saved;  // of the last save
  bool noted = false;
  while (t.progress.next.epoch < t.options.epochs) {
    if (!TrainEpoch(t)) return SaveAndStop(t);
    const std::optional<double> accuracy = TestAccuracy(t);
    if (!accuracy) return SaveAndStop(t);
    FinishEpoch(t, *accuracy);
    const std::string chance =
        noted ? "" : ChanceText(t.options, t.progress, t.batches.batches());
    if (!chance.empty()) Note(t, chance);
    noted = noted || !chance.empty();
    if (t.options.save.empty()) continue;
    saved = Save(t, t.options.save);
    // Only the first process knows whether it could write.
    if (processes.Sum(saved.ok() ? 0 : 1) == 0) {
      t.saved_epoch = t.progress.epochs.size();
      processes.SetHowToGoOn(HowToGoOnText(t.options, /*saved=*/true));
    }
    // The training continues: there may be room after the next epoch.
    if (!saved.ok()) t.view.Line(std::string(saved.message()));
  }
  if (t.options.save.empty()) CheckParameters(t, "at the end");
  t.view.Line(ResultText(t.options, t.data, processes, t.progress.epochs));
  if (!t.memory.empty()) t.view.Line(MemoryText(t));
  processes.Agree(WriteFiles(t));
  return saved.ok() ? 0 : 1;
}

int RunProcess(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Processes>> started =
      Processes::Start(MpiTimeout(argc, argv));
  if (!started.ok()) {
    if (MpiWorld::StartedProcess() > 0) return 0;  // the first prints it
    std::cerr << Wrap(std::string(started.status().message()), Lead("Error:"));
    return 1;
  }
  Processes& processes = **started;
  if (processes.rank() > 0 && dup2(open("/dev/null", O_WRONLY), 1) < 0) {
    return 1;
  }
  try {
    return TrainMain(argc, argv, processes);
  } catch (const CommonError& error) {
    processes.Complain(error.what());
  } catch (const std::exception& error) {
    processes.Fail(error.what());
  }
  return 1;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  d2l::CheckStdoutAtExit();
  d2l::SetLanguageOf(argc, argv);
  if (d2l::AsksForHelp(argc, argv)) {
    if (d2l::MpiWorld::StartedProcess() == 0) std::cout << d2l::TrainHelp();
    return 0;
  }
  return d2l::RunProcess(argc, argv);
}
