// What train.cc prints and writes of a training.
//
//   std::cout << HeadText(options, data, processes, parameters);
//   ProgressView view(std::cout, ProgressView::TerminalRows(), {10, 12000});
//   view.Look(progress);   // now and then
//   view.Epoch(progress);  // at an epoch's end: a line
//   view.Line("Saved: lenet.safetensors");
//
// The functions are pure: of what they are given and the device table.

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

// Why a training ended whose last step had that loss. saved_epoch: after which
// this run saved it last.
std::string NotFiniteText(const TrainOptions& options,
                          const TrainingProgress& progress, double loss,
                          std::optional<std::size_t> saved_epoch);

// Advice for one that has learnt nothing in its epochs of so many batches; or
// nothing.
std::string ChanceText(const TrainOptions& options,
                       const TrainingProgress& progress, std::int64_t batches);

// The command that goes on after an end without a save; saved: this run did so
// before.
std::string HowToGoOnText(const TrainOptions& options, bool saved);

// What a checkpoint also says of a run: its "data", "test_data", "hardware" and
// "processes".
std::map<std::string, std::string> Surroundings(const TrainOptions& options,
                                                const TrainData& data,
                                                const Processes& processes);
// That the checkpoint was trained on other images, by its surroundings, than
// this run has; or nothing.
std::string OtherDataText(const TrainOptions& options, const TrainData& data);
// What else is not as it was when it was made, and so: sentences.
std::vector<std::string> ChangesSince(const TrainOptions& options,
                                      const TrainData& data,
                                      const Processes& processes);

// What --json writes.
std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& epochs);

// Loss and accuracies by epoch.
Plot TrainingCurves(const std::vector<EpochRecord>& epochs);

// Shows how a training gets on: on a terminal, below the lines, the curves so
// far and a bar with samples per second and the time left are drawn again and
// again; elsewhere there are the lines alone. Not thread-safe; the stream
// outlives it.
class ProgressView {
 public:
  struct Work {
    std::int64_t epochs;
    std::int64_t samples;  // in an epoch
  };

  // Of stdout; 0 if it is no terminal that can be drawn on.
  static int TerminalRows();

  // rows: of the terminal; 0 for lines alone.
  ProgressView(std::ostream& out, int rows, const Work& work)
      : out_(out), rows_(rows), work_(work) {}
  // Takes the drawing away.
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
