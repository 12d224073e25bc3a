#include "chapters/multi_gpu/train_run.h"

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
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
#include "absl/strings/string_view.h"
#include "chapters/multi_gpu/processes.h"
#include "chapters/multi_gpu/stopping.h"
#include "chapters/multi_gpu/train_data.h"
#include "chapters/multi_gpu/train_options.h"
#include "chapters/multi_gpu/train_steps.h"
#include "chapters/multi_gpu/train_texts.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/data/loader.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/ops/creation.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel.h"
#include "common/parallel/mpi/mpi_world.h"
#include "common/parallel/split_batch.h"
#include "common/training/checkpoint.h"
#include "common/training/progress_view.h"
#include "common/training/trainer.h"

namespace d2l {
namespace {

// One run of the program.
class Training {
 public:
  Training(TrainOptions options, TrainData data, Processes& processes)
      : processes_(processes),
        options_(std::move(options)),
        data_(std::move(data)),
        test_part_(processes.Part(data_.test)),
        fingerprint_(Fingerprint(data_.training)),
        parallel_(MakeNet(options_), DeviceIds(options_),
                  OptionsOf(options_, processes)),
        sgd_(parallel_.sgd()),
        batches_(data_.training,
                 {options_.batch_size, /*shuffle=*/true, /*drop_last=*/false,
                  options_.seed},
                 options_.devices[0]),
        test_batches_(test_part_, {256, /*shuffle=*/false},
                      options_.devices[0]),
        steps_(options_, processes, parallel_, batches_),
        view_(std::cout, Rows(), {options_.epochs, data_.training.size()}),
        trainer_(parallel_.module(), sgd_, batches_,
                 {[this] { return steps_.AskedToStop(); },
                  [this](const TrainingProgress& at) { view_.Look(at); }},
                 MakeStep(), options_.devices) {
    sgd_.options() = {options_.lr, options_.momentum};
    // The numbers that each device would draw in one process.
    const int first =
        processes.rank() * static_cast<int>(parallel_.devices().size());
    SetFirstDeviceIndex(first);
    if (first > 0) ManualSeed(options_.seed, options_.devices[0]);
    const pid_t speaker = processes.FirstHere();
    if (processes.rank() > 0) SpeakOnlyFor(speaker);
    if (!processes.several()) {
      SetStopText(
          Translated("\nStopping after the steps that were begun; once more: "
                     "at once.\n"));
    }
  }

  // The exit code.
  absl::StatusOr<int> Run() {
    std::cout << HeadText(options_, data_, processes_,
                          nn::NumParameters(parallel_))
              << std::flush;
    absl::Status status = processes_.Agree(Resume());
    if (!status.ok()) return status;
    const LoaderPosition& first = Now().next;
    processes_.CheckSame(
        {{"The training data", fingerprint_},
         {"The test data", Fingerprint(data_.test)},
         {"The first batch",
          absl::StrCat(first.batch + 1, " of epoch ", first.epoch + 1)}});
    steps_.CheckParameters("at the start");
    steps_.SetHowToGoOn(HowToGoOn());
    while (Now().next.epoch < options_.epochs) {
      const absl::StatusOr<bool> over = trainer_.RunEpoch();
      if (!over.ok()) return NotFinite(over.status());
      const std::optional<double> accuracy =
          *over ? steps_.TestAccuracy(test_batches_, data_.test.size())
                : std::nullopt;
      if (!accuracy) return SaveAndStop();
      trainer_.FinishEpoch(*accuracy);
      view_.Epoch(Now());
      NoteChance();
      // The training goes on: the next epoch may find room.
      if (options_.save.empty()) continue;
      saved_ = Save(options_.save);
      // Only the first process knows whether it could write.
      const bool written = processes_.Sum(saved_.ok() ? 0 : 1) == 0;
      if (written) saved_epoch_ = Now().epochs.size();
      steps_.SetHowToGoOn(HowToGoOn());
      if (!saved_.ok())
        view_.Line(TranslatedMessage(std::string(saved_.message())));
    }
    if (options_.save.empty()) steps_.CheckParameters("at the end");
    view_.Line(ResultText(options_, data_, processes_, Now().epochs));
    status = WriteFiles();
    if (!status.ok()) return status;
    return saved_.ok() ? 0 : 1;
  }

  // Where it is, and the command that goes on after an end without a save.
  std::string HowToGoOn() const {
    const std::string file = saved_epoch_ ? options_.save : options_.resume;
    return file.empty()
               ? Translated(
                     "Nothing was saved: --save=FILE saves after each epoch.\n")
               : absl::StrCat(Translated("Go on from what was saved with"),
                              "\n  ", options_.CommandToResume(file), "\n");
  }

 private:
  // Of the terminal. mpirun gives its processes one of its own, which is not
  // what one sees.
  static int Rows() {
    return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr
               ? 0
               : ProgressView::TerminalRows();
  }

  // The table begins with the devices.
  static std::vector<int> DeviceIds(const TrainOptions& options) {
    std::vector<int> ids(options.devices.size());
    std::iota(ids.begin(), ids.end(), 0);
    return ids;
  }

  bool Several() const { return options_.devices.size() > 1; }

  TrainStep MakeStep() {
    if (!Several() && !processes_.several()) {
      return MakeTrainStep(parallel_.module(), sgd_);
    }
    return [this](const Batch& batch) { return steps_.Step(batch); };
  }

  const TrainingProgress& Now() const { return trainer_.progress(); }

  absl::Status Resume() {
    if (!options_.checkpoint) return absl::OkStatus();
    const Checkpoint& from = *options_.checkpoint;
    const auto error = [&](absl::string_view what) {
      return absl::InvalidArgumentError(
          Say("cannot go on from %s: %s", options_.resume,
              TranslatedMessage(std::string(what))));
    };
    const auto trained_on = from.options.find("data");
    if (trained_on == from.options.end() ||
        trained_on->second != fingerprint_) {
      return error(
          Say("it was trained on %s; %s has %s. Name the same data with "
              "--data_dir or --images.",
              TranslatedMessage(trained_on == from.options.end()
                                    ? "nothing that it names"
                                    : trained_on->second),
              TranslatedMessage(data_.training.name),
              TranslatedMessage(fingerprint_)));
    }
    TrainingState state = from.state;
    const std::size_t each = options_.devices.size();
    if (state.generators.size() == each * processes_.size()) {
      const auto own = from.state.generators.begin() +
                       static_cast<std::ptrdiff_t>(each) * processes_.rank();
      state.generators.assign(own, own + static_cast<std::ptrdiff_t>(each));
    }
    const absl::Status restored =
        RestoreState(state, parallel_.module(), sgd_, options_.devices);
    if (!restored.ok()) return error(restored.message());
    try {
      trainer_.SetProgress(from.progress);
    } catch (const std::invalid_argument& wrong) {
      return error(wrong.what());
    }
    view_.Line(Say("Resumed from %s: epoch %d, after batch %d of %d",
                   options_.resume, from.progress.next.epoch + 1,
                   from.progress.next.batch, batches_.batches()));
    NoteChange("hardware", Hardware(options_, processes_),
               "from here on the numbers may differ in their last bits.");
    NoteChange(
        "processes", HowMany(options_, processes_),
        options_.by_mpi
            ? "MPI_Allreduce may add in another order, so from here on "
              "the numbers may differ in their last bits."
            : "as many devices in all, so the numbers stay the same, bit "
              "for bit.");
    NoteChange("test_data", Fingerprint(data_.test),
               "from here on the test accuracies are of other images.");
    if (Now().next.epoch >= options_.epochs) {
      view_.Line(Say("All its epochs are trained; for more, say --epochs=%d.",
                     2 * options_.epochs));
    }
    return absl::OkStatus();
  }

  // Says what has another value than when the checkpoint was made.
  void NoteChange(const std::string& name, const std::string& now,
                  const std::string& so) {
    const auto& options = options_.checkpoint->options;
    const auto before = options.find(name);
    if (before == options.end() || before->second == now) return;
    Note(Say("It was made with %s, and this is %s: %s",
             TranslatedMessage(before->second), TranslatedMessage(now),
             Translated(so)));
  }

  void Note(const std::string& sentences) {
    const std::string text = Wrap(sentences);
    view_.Line(text.substr(0, text.size() - 1));
  }

  absl::Status Save(const std::string& file) {
    steps_.CheckParameters("before saving");
    Checkpoint checkpoint = {
        options_.ForCheckpoint(), Now(),
        CopyState(parallel_.module(), sgd_, options_.devices)};
    checkpoint.options["data"] = fingerprint_;
    checkpoint.options["test_data"] = Fingerprint(data_.test);
    checkpoint.options["hardware"] = Hardware(options_, processes_);
    checkpoint.options["processes"] = HowMany(options_, processes_);
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
            Now().next.batch, batches_.batches(), Now().next.epoch + 1, file),
        "\n  ", options_.CommandToResume(file)));
    const absl::Status written = WriteFiles();
    if (!written.ok()) return written;
    return 128 + (StopSignal() != 0 ? StopSignal() : SIGTERM);
  }

  absl::Status NotFinite(const absl::Status& status) const {
    const std::string text =
        absl::StrCat(TranslatedMessage(std::string(status.message())), " ");
    const double lr = options_.lr / 10;
    return absl::OutOfRangeError(
        text + (saved_epoch_
                    ? Say("Training stopped. Try a smaller learning rate: "
                          "--lr=%.2g, or go on with it from %s, which is of "
                          "the end of epoch %d.",
                          lr, options_.save, *saved_epoch_)
                    : Say("Training stopped. Try a smaller learning rate: "
                          "--lr=%.2g.",
                          lr)));
  }

  // Once.
  void NoteChance() {
    const std::int64_t steps = Now().next.epoch * batches_.batches();
    const EpochRecord& last = Now().epochs.back();
    constexpr double kChance = 1.5 / kClasses;
    if (noted_ || steps < 35 || last.training_accuracy > kChance ||
        last.test_accuracy > kChance) {
      return;
    }
    noted_ = true;
    Note(options_.init == "book"
             ? Say("Still at chance after %d steps: try --init=xavier.\nThe "
                   "book's N(0, 0.01) keeps LeNet there for about 970 steps at "
                   "--lr=0.2, xavier for 35.",
                   steps)
             : Say("Still at chance after %d steps: try another --lr.", steps));
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
        options_.json, ReportJson(options_, data_, nn::NumParameters(parallel_),
                                  Now().epochs));
    status.Update(write(
        options_.svg,
        TrainingCurves(Now().epochs)
            .ToSvg(absl::StrCat(options_.net, " on ", data_.training.name))));
    return status;
  }

  Processes& processes_;
  TrainOptions options_;
  const TrainData data_;
  const Dataset test_part_;  // this process's
  const std::string fingerprint_;
  DataParallel parallel_;  // of one device: only its module and sgd are used
  nn::SGD& sgd_;
  DataLoader batches_;
  DataLoader test_batches_;
  TrainSteps steps_;
  ProgressView view_;
  Trainer trainer_;
  bool noted_ = false;
  absl::Status saved_;  // the last time
  // Of the file: the epochs it was saved after, if this run saved it.
  std::optional<std::size_t> saved_epoch_;
};

}  // namespace

absl::StatusOr<int> RunTraining(TrainOptions options, TrainData data,
                                Processes& processes) {
  Training training(std::move(options), std::move(data), processes);
  absl::Status status;
  try {
    const absl::StatusOr<int> exit_code = training.Run();
    status = processes.Agree(exit_code.status());
    if (!status.ok()) return status;
    return exit_code;
  } catch (const CommonError&) {
    throw;
  } catch (const std::exception& error) {
    if (!processes.several()) throw;
    processes.Complain(absl::UnknownError(error.what()));
    std::cerr << training.HowToGoOn() << std::flush;
    SetStopText("");  // mpirun asks this process as well
    MpiWorld::Abort(1);
  }
}

}  // namespace d2l
