// Trains a network on images, on one device or, each with a part of every
// batch, on several:
//
//   bazel run //chapters/multi_gpu:train -- --save=lenet.safetensors
//
// and, where there is Open MPI, in several processes that have as many devices
// each:
//
//   mpirun -np 4 bazel-bin/chapters/multi_gpu/train --devices=cpu:0
//
// Ctrl-C saves a checkpoint, from which --resume goes on, on the same hardware
// bit for bit, as the unbroken run would have; a second one ends the program at
// once. The exit code is 0, 128 + the signal for a run that was stopped, and
// else 1.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/processes.h"
#include "chapters/multi_gpu/train/progress_view.h"
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

class Training {
 public:
  Training(TrainOptions options, TrainData data, Processes& processes)
      : processes_(processes),
        options_(std::move(options)),
        data_(std::move(data)),
        test_part_(processes.Part(data_.test)),
        net_(MakeNet(options_), DeviceIds(options_),
             processes.Connect(options_)),
        sgd_(net_.sgd()),
        batches_(data_.training,
                 {options_.batch_size, /*shuffle=*/true, /*drop_last=*/false,
                  options_.seed},
                 options_.devices[0]),
        test_batches_(test_part_, {256, /*shuffle=*/false},
                      options_.devices[0]),
        view_(std::cout, ProgressView::TerminalRows(),
              {options_.epochs, data_.training.size()}) {
    sgd_.options() = {options_.lr, options_.momentum};
    // The numbers that each device would draw in one process.
    const int first =
        processes.rank() * static_cast<int>(options_.devices.size());
    SetFirstDeviceIndex(first);
    if (first > 0) ManualSeed(options_.seed, options_.devices[0]);
    processes_.SetHowToGoOn(HowToGoOnText(options_, /*saved=*/false));
  }

  // The exit code.
  absl::StatusOr<int> Run() {
    std::cout << HeadText(options_, data_, processes_, nn::NumParameters(net_))
              << std::flush;
    absl::Status status = processes_.Agree(Resume());
    if (!status.ok()) return status;
    processes_.CheckSame({{"The training data", data_.training_fingerprint},
                          {"The test data", data_.test_fingerprint},
                          {"The first batch",
                           absl::StrCat(progress_.next.batch + 1, " of epoch ",
                                        progress_.next.epoch + 1)}});
    CheckParameters("at the start");
    absl::Status saved;  // the last time
    bool noted = false;
    while (progress_.next.epoch < options_.epochs) {
      const absl::StatusOr<bool> over = TrainEpoch();
      if (!over.ok()) return over.status();
      const std::optional<double> accuracy =
          *over ? TestAccuracy() : std::nullopt;
      if (!accuracy) return SaveAndStop();
      FinishEpoch(*accuracy);
      const std::string chance =
          noted ? "" : ChanceText(options_, progress_, batches_.batches());
      if (!chance.empty()) Note(chance);
      noted = noted || !chance.empty();
      // The training goes on: the next epoch may find room.
      if (options_.save.empty()) continue;
      saved = Save(options_.save);
      // Only the first process knows whether it could write.
      if (processes_.Sum(saved.ok() ? 0 : 1) == 0) {
        saved_epoch_ = progress_.epochs.size();
        processes_.SetHowToGoOn(HowToGoOnText(options_, /*saved=*/true));
      }
      if (!saved.ok()) view_.Line(std::string(saved.message()));
    }
    if (options_.save.empty()) CheckParameters("at the end");
    view_.Line(ResultText(options_, data_, processes_, progress_.epochs));
    status = WriteFiles();
    if (!status.ok()) return status;
    return saved.ok() ? 0 : 1;
  }

 private:
  // A step that was requested. Its figures are on the first device.
  struct Step {
    StepResult result;
    Tensor stop;  // of several processes: above 0 if one was asked to stop
    std::int64_t samples;
  };

  // The table begins with the devices.
  static std::vector<int> DeviceIds(const TrainOptions& options) {
    std::vector<int> ids(options.devices.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }

  // True at the epoch's end, false if the training was stopped before; an error
  // if it left the finite numbers. All steps that were begun are done.
  absl::StatusOr<bool> TrainEpoch() {
    const Timer timer;
    const double seconds_before = progress_.seconds;
    std::deque<Step> in_flight;  // the host runs ahead of the device
    bool over = false;
    while (!over && !Stopping()) {
      const std::optional<Batch> batch = batches_.Next();
      if (batch) in_flight.push_back(RequestStep(*batch));
      over = !batch;
      const int most = over ? 0 : options_.parallel.max_in_flight;
      while (static_cast<int>(in_flight.size()) > most) {
        if (!Add(in_flight.front())) return NotFinite();
        in_flight.pop_front();
        progress_.seconds = seconds_before + timer.Seconds();
        view_.Look(progress_);
      }
    }
    for (const Step& step : in_flight) {
      if (!Add(step)) return NotFinite();
    }
    for (const auto& [name, value] : nn::NamedState(net_.module())) {
      if (IsFloatingPoint(value.dtype()) &&
          !std::isfinite(Item(Sum(value * 0)))) {
        return NotFinite();
      }
    }
    progress_.seconds = seconds_before + timer.Seconds();
    // At its end the loader is in the next epoch, and the progress in this one
    // until it has been tested.
    progress_.next.batch =
        over ? batches_.batches() : batches_.position().batch;
    return over;
  }

  // By a signal to one of the processes.
  bool Stopping() const {
    return processes_.several() ? stopping_ : StopSignal() != 0;
  }

  Step RequestStep(const Batch& batch) {
    const std::int64_t samples = batch.labels.size(0);
    if (net_.devices().size() == 1 && !processes_.several()) {
      return {TrainStep(net_.module(), sgd_, batch), {}, samples};
    }
    if (processes_.several()) BeforeStep();
    const DataParallel::Result result =
        net_.Step(batch.images, batch.labels, sgd_.options());
    const auto [begin, sizes] = net_.ShareOf(samples);
    const Device device = options_.devices[0];
    const std::int64_t end = std::accumulate(sizes.begin(), sizes.end(), begin);
    const Tensor right = begin == end
                             ? Zeros({}, device, DType::kInt64)
                             : CountRight(JoinShards(result.outputs, device),
                                          Slice(batch.labels, 0, begin, end));
    if (!processes_.several()) return {{result.loss, right}, {}, samples};
    // Of all processes: how many were right, and whether one of them is to
    // stop, so that all do at the same step.
    std::vector<Tensor> sums = {
        Cat({Reshape(To(right, DType::kFloat64), {1}),
             Full({1}, StopSignal() != 0 ? 1 : 0, device, DType::kFloat64)})};
    for (std::size_t i = 1; i < options_.devices.size(); ++i) {
      sums.push_back(Zeros({2}, options_.devices[i], DType::kFloat64));
    }
    net_.options().sum(sums, SourceLocation::Current()).Wait();
    return {{result.loss, To(Select(sums[0], 0, 0), DType::kInt64)},
            Select(sums[0], 0, 1),
            samples};
  }

  // In several processes: what they say should a step be the last, and whether
  // their parameters are the same, now and then.
  void BeforeStep() {
    const LoaderPosition next = batches_.position();  // of the step after it
    const std::string where =
        Say("batch %d of epoch %d", next.batch, next.epoch + 1);
    processes_.SetDuring(where);
    const std::int64_t before =
        next.epoch * batches_.batches() + next.batch - 1;
    if (before > 0 && before % options_.check_every == 0) {
      CheckParameters(
          absl::StrFormat("after step %d, before %s,", before, where));
    }
  }

  // Adds a step's figures to those of the epoch; waits for it. Whether its loss
  // is finite.
  bool Add(const Step& step) {
    last_loss_ = Item(step.result.loss);
    progress_.samples += step.samples;
    progress_.right += Item<std::int64_t>(step.result.right);
    progress_.loss_sum += last_loss_ * static_cast<double>(step.samples);
    stopping_ = stopping_ || (processes_.several() && Item(step.stop) != 0);
    return std::isfinite(last_loss_);
  }

  absl::Status NotFinite() const {
    return absl::OutOfRangeError(
        NotFiniteText(options_, progress_, last_loss_, saved_epoch_));
  }

  // Over all processes, each with a part of the images; nothing if it was
  // stopped, which several processes are not.
  std::optional<double> TestAccuracy() {
    nn::Module& net = net_.devices().size() > 1 ? static_cast<nn::Module&>(net_)
                                                : net_.module();
    const std::optional<double> accuracy = Accuracy(net, test_batches_, [this] {
      return !processes_.several() && StopSignal() != 0;
    });
    if (!accuracy || !processes_.several()) return accuracy;
    const auto size = static_cast<double>(test_part_.size());
    const std::int64_t right =
        processes_.Sum(size == 0 ? 0 : std::llround(*accuracy * size));
    return static_cast<double>(right) / static_cast<double>(data_.test.size());
  }

  void FinishEpoch(double test_accuracy) {
    const auto samples = static_cast<double>(progress_.samples);
    TrainingProgress next;
    next.epochs = std::move(progress_.epochs);
    next.epochs.push_back({progress_.seconds, progress_.loss_sum / samples,
                           static_cast<double>(progress_.right) / samples,
                           test_accuracy});
    next.next = {progress_.next.epoch + 1, 0};
    progress_ = std::move(next);
    view_.Epoch(progress_);
  }

  // That all processes have the same; when: "at the start".
  void CheckParameters(const std::string& when) {
    if (!processes_.several()) return;
    processes_.CheckEqual(HashOf(net_.module(), sgd_),
                          absl::StrCat("Parameters ", when));
  }

  absl::Status Save(const std::string& file) {
    CheckParameters("before saving");
    Checkpoint checkpoint = {options_.ForCheckpoint(), progress_,
                             CopyState(net_.module(), sgd_, options_.devices)};
    checkpoint.options.merge(Surroundings(options_, data_, processes_));
    checkpoint.state.generators =
        processes_.Gather(checkpoint.state.generators);
    if (processes_.rank() != 0) return absl::OkStatus();
    return SaveCheckpoint(checkpoint, UserPath(file));
  }

  absl::StatusOr<int> SaveAndStop() {
    const std::string file =
        options_.save.empty()
            ? absl::StrCat(options_.net, "_interrupted.safetensors")
            : options_.save;
    const absl::Status saved = Save(file);
    if (!saved.ok()) return saved;
    view_.Line(absl::StrCat(
        Say("Saved after batch %d of %d of epoch %d: %s. Go on with",
            progress_.next.batch, batches_.batches(), progress_.next.epoch + 1,
            file),
        "\n  ", options_.CommandToResume(file)));
    const absl::Status written = WriteFiles();
    if (!written.ok()) return written;
    return 128 + (StopSignal() != 0 ? StopSignal() : SIGTERM);
  }

  absl::Status Resume() {
    if (!options_.checkpoint) return absl::OkStatus();
    const absl::Status restored = Restore(*options_.checkpoint);
    if (!restored.ok()) {
      return absl::InvalidArgumentError(Say("cannot go on from %s: %s",
                                            options_.resume,
                                            std::string(restored.message())));
    }
    view_.Line(Say("Resumed from %s: epoch %d, after batch %d of %d",
                   options_.resume, progress_.next.epoch + 1,
                   progress_.next.batch, batches_.batches()));
    for (const std::string& change :
         ChangesSince(options_, data_, processes_)) {
      Note(change);
    }
    if (progress_.next.epoch >= options_.epochs) {
      view_.Line(Say("All its epochs are trained; for more, say --epochs=%d.",
                     2 * options_.epochs));
    }
    return absl::OkStatus();
  }

  // The network, the optimiser, the generators, the batches' position.
  absl::Status Restore(const Checkpoint& from) {
    const std::string other = OtherDataText(options_, data_);
    if (!other.empty()) return absl::InvalidArgumentError(other);
    TrainingState state = from.state;
    const auto each = static_cast<std::ptrdiff_t>(options_.devices.size());
    if (static_cast<std::ptrdiff_t>(state.generators.size()) ==
        each * processes_.size()) {
      const auto own = from.state.generators.begin() + each * processes_.rank();
      state.generators.assign(own, own + each);
    }
    const absl::Status restored =
        RestoreState(state, net_.module(), sgd_, options_.devices);
    if (!restored.ok()) return restored;
    progress_ = from.progress;
    try {
      batches_.SetPosition(progress_.next);
    } catch (const std::invalid_argument& wrong) {
      return absl::InvalidArgumentError(wrong.what());
    }
    const std::int64_t samples = std::min(
        progress_.next.batch * options_.batch_size, data_.training.size());
    if (progress_.samples != samples || progress_.right < 0 ||
        progress_.right > samples) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%d of %d samples right before batch %d of an epoch; there are %d "
          "samples before it",
          progress_.right, progress_.samples, progress_.next.batch, samples));
    }
    return absl::OkStatus();
  }

  void Note(const std::string& sentences) {
    const std::string text = Wrap(sentences);
    view_.Line(text.substr(0, text.size() - 1));
  }

  absl::Status WriteFiles() {
    const auto write = [&](std::optional<AtomicFile>& file,
                           const std::string& text) {
      if (!file) return absl::OkStatus();
      file->Write(text);
      const absl::Status status = file->Commit();
      if (status.ok()) view_.Line(Say("Written: %s", file->path()));
      return status;
    };
    absl::Status status = write(
        options_.json,
        ReportJson(options_, data_, nn::NumParameters(net_), progress_.epochs));
    status.Update(write(options_.svg,
                        TrainingCurves(progress_.epochs)
                            .ToSvg(absl::StrCat(options_.net, " on ",
                                                data_.training.name.english))));
    return status;
  }

  Processes& processes_;
  TrainOptions options_;
  const TrainData data_;
  const Dataset test_part_;  // this process's
  DataParallel net_;         // of one device: only its module and sgd are used
  nn::SGD& sgd_;
  DataLoader batches_;
  DataLoader test_batches_;
  ProgressView view_;
  TrainingProgress progress_;
  double last_loss_ = 0;   // of the steps that were added
  bool stopping_ = false;  // of several processes: agreed
  // Of the file: the epochs it was saved after, if this run saved it.
  std::optional<std::size_t> saved_epoch_;
};

// The exit code.
absl::StatusOr<int> TrainMain(int argc, char** argv, Processes& processes) {
  absl::StatusOr<TrainOptions> options =
      ParseTrainOptions(argc, argv, processes.rank(), processes.size());
  absl::Status status = processes.Agree(options.status());
  if (!status.ok()) return status;
  // Before anything depends on them: they decide what is sent.
  processes.CheckSame(options->SameInAllProcesses());
  absl::StatusOr<TrainData> data = LoadData(*options);
  status = processes.Agree(data.status());
  if (!status.ok()) return status;
  processes.StopOnSignals();
  Training training(*std::move(options), *std::move(data), processes);
  const absl::StatusOr<int> exit_code = training.Run();
  status = processes.Agree(exit_code.status());
  if (!status.ok()) return status;
  return exit_code;
}

int RunProcess(int argc, char** argv) {
  const absl::StatusOr<std::unique_ptr<Processes>> started =
      Processes::Start(MpiTimeout(argc, argv));
  if (!started.ok()) {
    if (MpiWorld::StartedProcess() > 0) return 0;  // the first says it
    std::cerr << Wrap(std::string(started.status().message()), Lead("Error:"));
    return 1;
  }
  Processes& processes = **started;
  if (processes.rank() > 0 && dup2(open("/dev/null", O_WRONLY), 1) < 0) {
    return 1;
  }
  try {
    const absl::StatusOr<int> exit_code = TrainMain(argc, argv, processes);
    return exit_code.ok() ? *exit_code : processes.Complain(exit_code.status());
  } catch (const CommonError& error) {
    // The others wait in MPI's end until the first has printed it.
    if (processes.rank() > 0) return 1;
    processes.SetHowToGoOn("");
    return processes.Fail(error);
  } catch (const std::exception& error) {
    return processes.Fail(error);
  }
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
