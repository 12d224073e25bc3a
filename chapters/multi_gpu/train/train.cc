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

#include "chapters/multi_gpu/train/train.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "chapters/multi_gpu/memory_use.h"
#include "common/base/console/command_line.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/fnv1a.h"
#include "common/base/timer.h"
#include "common/data/loader.h"
#include "common/device/device_table.h"
#include "common/nn/module.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/mpi/mpi_world.h"

namespace d2l {
namespace {

// "cpu:0, cpu:1", or what they are.
std::string DeviceList(const TrainOptions& options, bool described) {
  std::vector<std::string> names;
  for (const Device device : options.devices) {
    names.push_back(described ? GetDeviceInfo(device).Describe()
                              : device.ToString());
  }
  return absl::StrJoin(names, ", ");
}

std::string InEach(const TrainOptions& options) {
  return options.processes == 1
             ? ""
             : Say(" in each of %d processes", options.processes);
}

// mpirun gives its processes a terminal that the user does not see.
bool OnTerminal() {
  return isatty(STDOUT_FILENO) == 1 && MpiWorld::StartedProcesses() == 1;
}

// Replaces the line that changes, if there is one.
void Print(const std::string& text) {
  std::cout << (OnTerminal() ? "\r\033[K" : "") << PrintableText(text, "\n")
            << std::endl;
}

// The parts of a run.
struct Training {
  Training(TrainOptions of_flags, TrainData of_files, Processes& of_mpirun)
      : processes(of_mpirun),
        options(std::move(of_flags)),
        data(std::move(of_files)),
        net(MakeNet(options), DeviceIds(options), options.parallel),
        batches(data.training, {options.batch_size}, options.devices[0]),
        test_part(PartOf(data.test)),
        // Testing takes no more memory than a step.
        test_batches(test_part,
                     {std::min<std::int64_t>(256, options.batch_size),
                      /*shuffle=*/false},
                     options.devices[0]) {
    net.sgd().options() = {options.lr, options.momentum};
  }

  // The devices come first in the table.
  static std::vector<int> DeviceIds(const TrainOptions& options) {
    std::vector<int> ids(options.devices.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }
  // The rows of a batch that this process's devices get.
  std::pair<std::int64_t, std::int64_t> RowsOf(std::int64_t samples) const {
    const auto [begin, sizes] = net.ShareOf(samples);
    return {begin, std::accumulate(sizes.begin(), sizes.end(), begin)};
  }
  Dataset PartOf(const Dataset& all) const {
    const auto [begin, end] = RowsOf(all.size());
    return {all.name,
            {all.images.begin() + begin * kImagePixels,
             all.images.begin() + end * kImagePixels},
            {all.labels.begin() + begin, all.labels.begin() + end}};
  }
  void NoteMemory() {
    memory.clear();
    for (std::size_t i = 0; i < options.devices.size(); ++i) {
      memory.emplace_back(options.devices[i].ToString(),
                          net.memory(static_cast<int>(i)));
    }
  }
  std::string Where() const {
    return Say("batch %d of epoch %d", batches.position().batch,
               batches.position().epoch + 1);
  }

  Processes& processes;
  TrainOptions options;
  const TrainData data;
  DataParallel net;
  DataLoader batches;
  const Dataset test_part;
  DataLoader test_batches;
  Timer shown;  // since the line that changes was printed
  TrainingProgress progress;
  // Each device's, in an epoch's last step with a whole batch.
  std::vector<std::pair<std::string, MemoryUse>> memory;
  // The number of epochs at the last save of this run, if any.
  std::optional<std::size_t> saved_epoch;
};

// The command that resumes after an end without a save.
std::string HowToGoOn(const Training& t) {
  const std::string& file = t.saved_epoch ? t.options.save : t.options.resume;
  return file.empty()
             ? Translated(
                   "Nothing was saved: --save=FILE saves after each epoch.\n")
             : absl::StrCat(Translated("Go on from the last save with"), "\n  ",
                            t.options.CommandToResume(file), "\n");
}

// Ends all processes if their parameters or momentum differ.
void CheckParameters(Training& t) {
  if (!t.processes.several()) return;
  Fnv1a hash;
  const auto update = [&](const Tensor& x) {
    const auto values = ToVector<double>(To(x, DType::kFloat64));  // exact
    hash.Update({reinterpret_cast<const char*>(values.data()),
                 values.size() * sizeof(double)});
  };
  for (const auto& [name, x] : nn::NamedState(t.net.module())) update(x);
  for (const Tensor& x : t.net.sgd().momentum_buffers()) {
    if (x.defined()) update(x);
  }
  t.processes.CheckSame("The hash of the parameters", hash.Hex());
}

// A requested step. Its results are on the first device.
struct Step {
  Tensor loss;
  // Sums over all processes: how many samples were right, and how many
  // processes have received a signal, so that all stop at the same step.
  Tensor right_and_stops;
  std::int64_t samples;
};

Step RequestStep(Training& t, const Batch& batch) {
  const std::vector<Device>& devices = t.options.devices;
  const std::int64_t samples = batch.labels.size(0);
  t.processes.SetDuring(t.Where());
  const DataParallel::Result result = t.net.Step(
      batch.images, batch.labels, {t.options.lr, t.options.momentum});
  const auto [begin, end] = t.RowsOf(samples);
  Tensor right = Zeros({1}, devices[0], DType::kFloat64);
  if (begin < end) {
    const Tensor guesses = ArgMax(JoinShards(result.outputs, devices[0]), 1);
    right +=
        Sum(To(guesses == Slice(batch.labels, 0, begin, end), DType::kFloat64));
  }
  std::vector<Tensor> sums = {Cat({right, Full({1}, StopSignal() != 0 ? 1 : 0,
                                               devices[0], DType::kFloat64)})};
  if (t.processes.several()) {
    for (std::size_t i = 1; i < devices.size(); ++i) {
      sums.push_back(Zeros({2}, devices[i], DType::kFloat64));
    }
    t.net.options()
        .collective(Collective::kAllReduce, sums, SourceLocation::Current())
        .Wait();
  }
  return {result.loss, sums[0], samples};
}

// Throws in all processes, since their losses are the same.
void CheckFinite(const Training& t, double loss) {
  if (std::isfinite(loss)) return;
  const TrainingProgress& now = t.progress;
  std::string text =
      Say("the training left the finite numbers in batch %d of epoch %d, where "
          "the loss was %s. Training stopped. Try a smaller learning rate: "
          "--lr=%.2g.",
          (now.samples + t.options.batch_size - 1) / t.options.batch_size,
          now.next.epoch + 1, std::isnan(loss) ? "NaN" : absl::StrCat(loss),
          t.options.lr / 10);
  if (t.saved_epoch) {
    absl::StrAppend(
        &text, " ",
        Say("%s is of the end of epoch %d.", t.options.save, *t.saved_epoch));
  }
  t.processes.Agree(absl::OutOfRangeError(text));
}

// On a terminal, "epoch 3/10, 45 %: 5120/s, loss 0.53, accuracy 0.81", at most
// ten times a second.
void ShowProgress(Training& t) {
  if (!OnTerminal() || t.shown.Seconds() < 0.1) return;
  t.shown = Timer();
  const TrainingProgress& now = t.progress;
  const auto done = static_cast<double>(now.samples);
  const std::string line =
      Say("epoch %d/%d, %.0f %%: %.0f/s, loss %.3f, accuracy %.3f",
          now.next.epoch + 1, t.options.epochs,
          100 * done / static_cast<double>(t.data.training.size()),
          done / now.seconds, now.loss_sum / done,
          static_cast<double>(now.right) / done);
  // On two lines, \r would lead to the beginning of the second.
  const int columns = std::max(TerminalColumns() - 1, 3);
  std::cout << "\r" << CutText(line, static_cast<std::size_t>(columns))
            << "\033[K" << std::flush;
}

// False if a signal stops the training. All requested steps have finished.
bool TrainEpoch(Training& t) {
  TrainingProgress& progress = t.progress;
  const Timer timer;
  const double seconds_before = progress.seconds;
  std::deque<Step> in_flight;  // the host runs ahead of the device
  bool over = false, stop = false;
  while (!over && !stop) {
    const std::optional<Batch> batch = t.batches.Next();
    over = !batch;
    if (batch) {
      in_flight.push_back(RequestStep(t, *batch));
      // Of a step with a whole batch.
      if (t.options.parallel.measure_memory &&
          t.batches.position().batch ==
              std::max<std::int64_t>(
                  1, t.data.training.size() / t.options.batch_size)) {
        t.NoteMemory();
      }
    }
    const std::size_t most = t.options.parallel.max_in_flight;
    while (in_flight.size() > (over || stop ? 0 : most)) {
      const Step& step = in_flight.front();
      const double loss = Item(step.loss);
      const auto sums = ToVector<double>(step.right_and_stops);
      progress.samples += step.samples;
      progress.right += static_cast<std::int64_t>(sums[0]);
      progress.loss_sum += loss * static_cast<double>(step.samples);
      CheckFinite(t, loss);
      stop =
          stop || sums[1] > 0 || (!t.processes.several() && StopSignal() != 0);
      in_flight.pop_front();
      progress.seconds = seconds_before + timer.Seconds();
      ShowProgress(t);
    }
  }
  for (const auto& [name, value] : nn::NamedState(t.net.module())) {
    if (IsFloatingPoint(value.dtype())) CheckFinite(t, Item(Sum(value * 0)));
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
  t.net.Eval();
  const absl::Cleanup as_before = [&] { t.net.Train(); };
  t.test_batches.SetPosition({0, 0});
  Tensor right = Zeros({}, t.options.devices[0], DType::kInt64);
  while (const std::optional<Batch> batch = t.test_batches.Next()) {
    if (!t.processes.several() && StopSignal() != 0) return std::nullopt;
    const Tensor before = right;
    right = right + Sum(ArgMax(t.net(batch->images), 1) == batch->labels);
    WaitToRead(before);  // the host is one batch ahead
  }
  return static_cast<double>(t.processes.Sum(Item<std::int64_t>(right))) /
         static_cast<double>(t.data.test.size());
}

void FinishEpoch(Training& t, double test_accuracy) {
  TrainingProgress& now = t.progress;
  const auto samples = static_cast<double>(now.samples);
  const EpochRecord epoch = {now.seconds, now.loss_sum / samples,
                             static_cast<double>(now.right) / samples,
                             test_accuracy};
  TrainingProgress next;
  next.epochs = std::move(now.epochs);
  next.epochs.push_back(epoch);
  next.next.epoch = now.next.epoch + 1;
  now = std::move(next);
  const auto digits = static_cast<int>(absl::StrCat(t.options.epochs).size());
  Print(Say("epoch %s/%d  loss %.4f  training %.4f  test %.4f  %.2f s  %.0f/s",
            absl::StrFormat("%*d", digits, now.epochs.size()), t.options.epochs,
            epoch.loss, epoch.training_accuracy, epoch.test_accuracy,
            epoch.seconds, samples / epoch.seconds));
}

// Advice, after the epoch with the 35th step, if nothing has been learnt.
void NoteChance(const Training& t) {
  const std::int64_t steps = t.progress.next.epoch * t.batches.batches();
  const EpochRecord& last = t.progress.epochs.back();
  if (steps >= 35 && steps < 35 + t.batches.batches() &&
      std::max(last.training_accuracy, last.test_accuracy) < 1.5 / kClasses) {
    std::cout << Wrap(
        Say("Still at chance after %d steps: try another --lr, or "
            "--init=xavier. The book's N(0, 0.01²) keeps LeNet there for about "
            "970 steps at --lr=0.2, xavier for 35.",
            steps));
  }
}

// The first process writes.
absl::Status Save(Training& t, const std::string& file) {
  Checkpoint checkpoint = {t.options.ForCheckpoint(), t.progress};
  checkpoint.options["data"] = t.data.fingerprint;
  nn::SGD& sgd = t.net.sgd();  // gathers the momentum from all processes
  if (t.processes.rank() != 0) return absl::OkStatus();
  return SaveCheckpoint(checkpoint, t.net.module(), sgd, UserPath(file));
}

// Older checkpoints have another hash, which tells nothing here, behind the
// numbers of images.
bool MayBeSameImages(absl::string_view saved, absl::string_view present) {
  if (absl::StrContains(saved, " fnv1a ")) return saved == present;
  return absl::StartsWith(saved, present.substr(0, present.find(',') + 1));
}

// Restores the network, the momentum and the batches' position.
absl::Status Resume(Training& t) {
  const std::string& file = t.options.resume;
  const std::string data = t.options.checkpoint->options["data"];
  const absl::Status restored =
      !MayBeSameImages(data, t.data.fingerprint)
          ? absl::InvalidArgumentError(
                Say("it was trained on other images (%s) than %s (%s). Name "
                    "the same data with --data_dir or --images.",
                    data, t.data.training.name, t.data.fingerprint))
          : LoadState(UserPath(file), t.net.module(), t.net.sgd());
  if (!restored.ok()) {
    return absl::InvalidArgumentError(
        Say("cannot go on from %s: %s", file,
            Phrase(std::string(restored.message()))));
  }
  t.progress = t.options.checkpoint->progress;
  t.batches.SetPosition(t.progress.next);
  const std::int64_t trained = t.progress.next.epoch;
  Print(trained >= t.options.epochs
            ? Say("Resumed from %s: %d epochs are trained; for more, say "
                  "--epochs=%d.",
                  file, trained, 2 * trained)
            : Say("Resumed from %s: epoch %d, after batch %d of %d", file,
                  trained + 1, t.progress.next.batch, t.batches.batches()));
  return absl::OkStatus();
}

// Returns the exit code.
int SaveAndStop(Training& t) {
  const std::string file =
      t.options.save.empty()
          ? absl::StrCat(t.options.net, "_interrupted.safetensors")
          : t.options.save;
  CheckParameters(t);
  t.processes.Agree(Save(t, file));
  Print(
      absl::StrCat(Say("Saved after batch %d of %d of epoch %d: %s. Go on with",
                       t.progress.next.batch, t.batches.batches(),
                       t.progress.next.epoch + 1, file),
                   "\n  ", t.options.CommandToResume(file)));
  return 128 + (StopSignal() != 0 ? StopSignal() : SIGTERM);
}

void PrintHead(const Training& t) {
  const TrainOptions& o = t.options;
  std::cout
      << Wrap(absl::StrCat(
             Say("%s, %d parameters, --init=%s, --batch_size=%d, "
                 "--lr=%g, --momentum=%g, on %s%s",
                 o.net, nn::NumParameters(t.net), o.init, o.batch_size, o.lr,
                 o.momentum, DeviceList(o, /*described=*/true), InEach(o)),
             "\n",
             Say("%s: %d images to train on, %d to test", t.data.training.name,
                 t.data.training.size(), t.data.test.size())))
      << std::flush;
}

// The course's closing sentence, with the data's name.
void PrintResult(Training& t) {
  double seconds = 0;
  for (const EpochRecord& epoch : t.progress.epochs) seconds += epoch.seconds;
  Print(Say("test accuracy %.2f on %s, %.1f s/epoch, on [%s]%s",
            t.progress.epochs.back().test_accuracy, t.data.test.name,
            seconds / static_cast<double>(t.progress.epochs.size()),
            DeviceList(t.options, /*described=*/false), InEach(t.options)));
  if (!t.memory.empty()) std::cout << MemoryTable(t.memory) << std::flush;
}

// Returns the exit code.
int TrainMain(int argc, char** argv, Processes& processes) {
  absl::StatusOr<TrainOptions> options =
      ParseTrainOptions(argc, argv, processes);
  processes.Agree(options.status());
  // Comes before anything depends on these flags: they decide what is sent.
  for (const auto& [flag, value] : SameInAllProcesses()) {
    processes.CheckSame(flag, value);
  }
  absl::StatusOr<TrainData> data = LoadData(*options);
  processes.Agree(data.status());
  processes.StopOnSignals();
  Training t(*std::move(options), *std::move(data), processes);
  processes.SetHowToGoOn(HowToGoOn(t));
  PrintHead(t);
  processes.Agree(t.options.checkpoint ? Resume(t) : absl::OkStatus());
  processes.CheckSame("The data", t.data.fingerprint);
  processes.CheckSame("The first batch", t.Where());
  CheckParameters(t);

  absl::Status saved;  // of the last save
  while (t.progress.next.epoch < t.options.epochs) {
    if (!TrainEpoch(t)) return SaveAndStop(t);
    const std::optional<double> accuracy = TestAccuracy(t);
    if (!accuracy) return SaveAndStop(t);
    FinishEpoch(t, *accuracy);
    NoteChance(t);
    CheckParameters(t);
    if (t.options.save.empty()) continue;
    saved = Save(t, t.options.save);
    // Only the first process knows whether it could write.
    if (processes.Sum(saved.ok() ? 0 : 1) == 0) {
      t.saved_epoch = t.progress.epochs.size();
      processes.SetHowToGoOn(HowToGoOn(t));
    }
    // The training continues: there may be room after the next epoch.
    if (!saved.ok()) Print(std::string(saved.message()));
  }
  PrintResult(t);
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
  d2l::SetLanguage("").IgnoreError();  // that of the environment
  if (d2l::AsksForHelp(argc, argv)) {
    if (d2l::MpiWorld::StartedProcess() == 0) std::cout << d2l::TrainHelp();
    return 0;
  }
  return d2l::RunProcess(argc, argv);
}
