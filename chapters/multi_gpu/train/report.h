// The texts and files in which train.cc reports a training.
//
//   std::cout << HeadText(options, data, processes, parameters);
//   ProgressView view(std::cout, ProgressView::TerminalRows(), {10, 12000});
//   view.Look(progress);   // now and then
//   view.Epoch(progress);  // at an epoch's end: a line
//   view.Line("Saved: lenet.safetensors");
//
// The functions are pure: they depend on their arguments and the device table.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/processes.h"
#include "common/drawing/plot.h"

namespace d2l {

// The first lines: the network, the options, the devices, the data.
std::string HeadText(const TrainOptions& options, const TrainData& data,
                     const Processes& processes, std::int64_t parameters);

// The course's closing sentence, with the data's name.
std::string ResultText(const TrainOptions& options, const TrainData& data,
                       const Processes& processes,
                       const std::vector<EpochRecord>& epochs);

// Why a training ended after a step with that loss. saved_epoch is the last
// epoch after which this run saved.
std::string NotFiniteText(const TrainOptions& options,
                          const TrainingProgress& progress, double loss,
                          std::optional<std::size_t> saved_epoch);

// Advice if the training has learnt nothing in its epochs of `batches` batches;
// else "".
std::string ChanceText(const TrainOptions& options,
                       const TrainingProgress& progress, std::int64_t batches);

// The command that resumes after an end without a save; `saved` says whether
// this run has saved before.
std::string HowToGoOnText(const TrainOptions& options, bool saved);

// The circumstances of a run in a checkpoint: its "data", "test_data",
// "hardware" and "processes".
std::map<std::string, std::string> Surroundings(const TrainOptions& options,
                                                const TrainData& data,
                                                const Processes& processes);
// Says that the checkpoint was trained on other images than this run's,
// according to its surroundings; else "".
std::string OtherDataText(const TrainOptions& options, const TrainData& data);
// Sentences about the other changes since the checkpoint, and their effects.
std::vector<std::string> ChangesSince(const TrainOptions& options,
                                      const TrainData& data,
                                      const Processes& processes);

// The content of the --json file.
std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& epochs);

// Loss and accuracies by epoch.
Plot TrainingCurves(const std::vector<EpochRecord>& epochs);

// Shows the progress of a training. On a terminal, the curves so far and a bar
// with samples per second and the time left are redrawn below the lines;
// elsewhere there are only the lines. Not thread-safe; the stream outlives it.
class ProgressView {
 public:
  struct Work {
    std::int64_t epochs;
    std::int64_t samples;  // in an epoch
  };

  // The rows of stdout; 0 if it is no terminal that supports drawing.
  static int TerminalRows();

  // `rows` is the terminal's number of rows; 0 for lines only.
  ProgressView(std::ostream& out, int rows, const Work& work)
      : out_(out), rows_(rows), work_(work) {}
  // Erases the drawing.
  ~ProgressView() { Erase(); }
  ProgressView(const ProgressView&) = delete;
  ProgressView& operator=(const ProgressView&) = delete;

  void Look(const TrainingProgress& progress);
  void Epoch(const TrainingProgress& progress);
  void Line(const std::string& line);

 private:
  void Draw();
  void Erase();
  std::string Bar() const;

  std::ostream& out_;
  const int rows_;
  const Work work_;
  TrainingProgress progress_;
  int drawn_ = 0;  // lines
  double drawn_at_ = 0;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_
