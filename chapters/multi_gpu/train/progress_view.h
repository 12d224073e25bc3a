// ProgressView: shows how a training gets on.
//
//   ProgressView view(std::cout, ProgressView::TerminalRows(), {10, 12000});
//   view.Look(progress);   // now and then
//   view.Epoch(progress);  // at an epoch's end: a line
//   view.Line("Saved: lenet.safetensors");
//
// On a terminal, below the lines, the curves so far and a bar with samples per
// second and the time left are drawn again and again; elsewhere there are the
// lines alone. Not thread-safe; the stream outlives it.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_PROGRESS_VIEW_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_PROGRESS_VIEW_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "chapters/multi_gpu/train/checkpoint.h"
#include "common/drawing/plot.h"

namespace d2l {

// Loss and accuracies by epoch.
Plot TrainingCurves(const std::vector<EpochRecord>& epochs);

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

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_PROGRESS_VIEW_H_
