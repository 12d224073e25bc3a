// Cell: the interface with which a lesson's cell measures, checks and claims.
//
//   void In4(Cell& cell) {
//     const Device device = TryGpu();
//     Tensor b;
//     const Timing done = cell.Time("10 products", device, [&] {
//       for (int i = 0; i < 10; ++i) b = MatMul(a, a);
//     });
//     cell.CheckClose("b", ToVector<float>(b), expected, 1e-4);
//     cell.Claim("the calls return early", Less(done.enqueue,
//                                               done.completion));
//   }
//
// Alternatives are timed in turn, so that passing load affects all alike:
//
//   const std::vector<Timing> t = cell.TimeInterleaved(
//       {{"one device", {a}, [&] { … }}, {"two", {a, b}, [&] { … }}});
//   cell.Report(RatioPerRepeat("speed-up", t[0].completion, t[1].completion));
//
// and a drawing (drawing.h) is shown by cell.Show(timeline.Draw("timeline")).
//
// A cell prints with std::cout, as any program does. Figures and verdicts are
// kept and printed below, when its code has returned.
//
// A result that is wrong is reported at once and makes the program's exit code
// non-zero; the cell goes on. A claim that fails is a finding, not an error.
//
// A Cell is used by one thread, the one that runs the cell.

#ifndef D2L_COMMON_LESSON_CELL_H_
#define D2L_COMMON_LESSON_CELL_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/device.h"
#include "common/drawing/drawing.h"
#include "common/lesson/judge.h"

namespace d2l {

// How much work the cells do: for a test, as in the course, for a fast GPU.
enum class Size { kSmall, kCourse, kLarge };

// "small", "course", "large".
const char* SizeName(Size size);

// The result of one claim.
struct Claimed {
  std::string text;
  Judgement judgement;
};

// A drawing that was shown.
struct Shown {
  std::string name;
  std::string file;  // of the SVG; "" if none was written
};

struct CellResult {
  std::string id;
  std::vector<std::string> also;
  std::vector<Figure> figures;
  std::vector<Claimed> claims;
  int wrong_results = 0;
  std::vector<Shown> drawings = {};
  std::string course_printed = "";
};

// Where the SVGs of a run go.
struct SvgOutput {
  std::string directory;  // exists; "" to write none
  std::string lesson;     // for the files' names
};

// The times of asynchronous work. The first two are reported.
struct Timing {
  Figure enqueue;     // until the calls had returned
  Figure completion;  // until the work was done
  Figure wait;        // from the one to the other
};

// One of several ways to do a thing.
struct Alternative {
  std::string label;
  // All that it works on: idle before, synchronized after. None: the work is
  // done when the call returns.
  std::vector<Device> devices;
  std::function<void()> work;
  // Instead of synchronizing the devices, if given.
  std::function<void()> wait = nullptr;
};

class Cell {
 public:
  // circumstances: sentences on what this run does differently, such as launch
  // blocking; they go with every verdict that is not HOLDS. Results go to
  // *result, which outlives the cell.
  Cell(Size size, std::vector<std::string> circumstances, CellResult* result,
       SvgOutput svg = {})
      : size_(size),
        circumstances_(std::move(circumstances)),
        svg_(std::move(svg)),
        result_(result) {}

  Size size() const { return size_; }
  template <typename T>
  T BySize(T small, T course, T large) const {
    return size_ == Size::kSmall    ? small
           : size_ == Size::kCourse ? course
                                    : large;
  }

  // Times `work`, which enqueues on `device`. Once to warm up, then 9 times,
  // and up to 99 times while that takes less than 0.2 s; each begins with an
  // idle device: start the clock, work(), read it (enqueue), wait, read it
  // again (completion). `wait` is Synchronize(device) unless given.
  Timing Time(const std::string& label, Device device,
              const std::function<void()>& work,
              const std::function<void()>& wait = nullptr);

  // Times each as Time does, and in turn: A B C, A B C, … Repeat i of one
  // figure was taken beside repeat i of another (see RatioPerRepeat). The
  // devices of all are idle when one begins.
  std::vector<Timing> TimeInterleaved(
      const std::vector<Alternative>& alternatives);

  // Times `work` on the calling thread, a call that returns when it is done.
  Figure TimeHost(const std::string& label, const std::function<void()>& work);

  // Adds a figure of another kind, or a derived one, to those reported.
  Figure Report(Figure figure);

  // Prints the drawing as text. With --svg=DIR it is also written there, as
  // LESSON_CELL_NAME.svg; throws std::runtime_error if that fails.
  void Show(const Drawing& drawing);

  // The verdict on one of the course's assertions. `because`: a sentence made
  // from what was measured, if the judge's own does not say it all.
  void Claim(const std::string& text, const Judgement& judgement,
             const std::string& because = "");

  // A result is right if |got - expected| <= tolerance * max(1, |expected|). A
  // difference is reported: how many elements, the first index, both values.
  void CheckClose(const std::string& what, const std::vector<float>& got,
                  const std::vector<float>& expected, double tolerance);
  void CheckClose(const std::string& what, const std::vector<double>& got,
                  const std::vector<double>& expected, double tolerance);
  void Check(bool right, const std::string& what);

 private:
  const Size size_;
  const std::vector<std::string> circumstances_;
  const SvgOutput svg_;
  CellResult* const result_;
};

// "cpu:0, virtual": what every figure says of where it was measured.
std::string MeasuredOn(Device device);
// "cpu:0 and cpu:1, virtual"; "host" for none.
std::string MeasuredOn(const std::vector<Device>& devices);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_H_
