// Cell: the interface with which a lesson's cell measures, checks and claims.
//
//   void In7(Cell& cell) {
//     Tensor y1, y2;
//     const Timings t = cell.TimeInterleaved(
//         {{"GPU1, then GPU2", Both(), [&] { … }},
//          {"both", Both(), [&] { … }}});
//     cell.PrintTimes(t);
//     cell.CheckClose("y1", ToVector<float>(y1), expected, 1e-4);
//     cell.Claim("Two devices are faster than one after the other: {}.",
//                Faster(t["both"], t["GPU1, then GPU2"], 1.1),
//                "Asking took 97 % of the time.");
//   }
//
// prints, with --verbose,
//
//   GPU1, then GPU2   58.0 ms
//   both              30.7 ms
//
//   HOLDS  Two devices are faster than one after the other: 1.89x. (needs
//          1.10x or more; 95 %: 1.88-1.91)
//
// Alternatives are timed in turn, so that passing load affects all alike, and
// compared repeat by repeat (judge.h).
//
// Beside other programs only the repeats that they did not disturb count, and
// more repeats are taken. Keep what is timed short: of repeats of 2 ms some are
// undisturbed, of repeats of 10 ms hardly any.
//
// A cell prints with std::cout, like any program. Verdicts are printed below,
// after its code has returned; measurements only with --verbose. On a terminal
// a cell has at most 25 lines: print what the text is about, and leave the rest
// to --verbose.
//
// A wrong result is reported at once and makes the program's exit code
// non-zero; the cell continues. A claim that fails is a finding, not an error.
//
// A Cell is used by one thread, the one that runs the cell.
//
// A lesson includes this and common/d2l.h, which hold nearly all that it uses.

#ifndef D2L_COMMON_LESSON_CELL_CELL_H_
#define D2L_COMMON_LESSON_CELL_CELL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/console/format.h"    // IWYU pragma: export
#include "common/base/console/language.h"  // IWYU pragma: export
#include "common/base/console/text.h"      // IWYU pragma: export
#include "common/base/timer.h"
#include "common/base/undisturbed_timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/topology.h"
#include "common/drawing/drawing.h"
#include "common/lesson/cell/judge.h"  // IWYU pragma: export
#include "common/lesson/cell/other_load.h"
#include "common/lesson/text/lesson.h"  // IWYU pragma: export
#include "common/lesson/text/source.h"

namespace d2l {

class DeviceMemory;

// Times that differ by less may differ only because the machine is noisy.
inline constexpr double kClearly = 1.3;

// How much work the cells do: for a test, for the course, or for a fast GPU.
enum class Size { kSmall, kCourse, kLarge };

// "small", "course", "large".
const char* SizeName(Size size);

// The result of one claim.
struct Claimed {
  Phrase text;  // with its "{}"
  Judgement judgement;
  std::string because = "";  // see Cell::Claim

  // The text with the number in it: the finding, in a sentence.
  std::string Meaning() const;
};

// A drawing that was shown.
struct Shown {
  Phrase name;
  // An SVG, or a graph in Graphviz's language (.dot) of which it made none; ""
  // if none was written.
  std::string file;
  // As in the cell's output; "" if not printed, unless there is no SVG.
  std::string text;
};

struct CellResult {
  CellText text;
  std::string number = "";  // "2.1"
  int predicted = 0;        // the learner's choice, from 1; 0: none
  std::vector<Figure> figures = {};
  std::vector<Claimed> claims = {};
  int not_asked = 0;  // claims: see Cell::NotAsked
  int wrong_results = 0;
  std::vector<Shown> drawings = {};
  // The load while the cell ran; nothing if it is not known.
  std::optional<OtherLoad> load = std::nullopt;
  std::string output = "";      // its code's output
  SourceExcerpt source = {};    // the program that it teaches
  SourceExcerpt measured = {};  // its measuring code; empty: in `source`
  std::string error = "";       // the error it threw; "" if it returned
  double seconds = 0;           // how long it ran
};

// How a cell times. The first two say how long work of virtual devices lasts,
// in cells that ask for it: see Cell::PaceDevices.
struct CellTiming {
  std::optional<double> pace;     // none: what fits the machine
  std::optional<Topology> links;  // where a cell has none of its own
  // For how long each alternative is repeated at least.
  double min_seconds = 0.2;
};

// Where a run writes its SVGs.
struct SvgOutput {
  std::string directory;  // exists; "" to write none
  std::string lesson;     // for the files' names
};

// The times of asynchronous work. The first two are reported. Times are at
// least 1 ns, so that ratios of them exist.
struct Timing {
  Figure enqueue;     // until the calls had returned
  Figure completion;  // until the work was done
  Figure wait;        // between the two
  // The repeats whose times these are, from 0; the work ran once before them.
  std::vector<std::size_t> repeats = {};
};

// The timings of several alternatives, by label: t["both"].
struct Timings : std::vector<Timing> {
  using std::vector<Timing>::operator[];
  // Throws std::out_of_range, which lists the labels, if there is none such.
  const Timing& operator[](const Phrase& label) const;
};

// The time of one of `count` calls: "1.20 us".
std::string Each(const Figure& time, int count);

// The time of a call.
template <typename Work>
double Seconds(const Work& work) {
  const Timer timer;
  work();
  return timer.Seconds();
}

// Work that does `work` `count` times.
template <typename Work>
auto Loop(int count, Work work) {
  return [count, work] {
    for (int i = 0; i < count; ++i) work();
  };
}

// Is the first done sooner, by this factor? The number says how many times as
// long the second takes.
Judgement Faster(const Timing& a, const Timing& b, double by);

// One of several ways to do a thing.
struct Alternative {
  Phrase label;
  // All devices that it works on: idle before, synchronized after. None: the
  // work is done when the call returns.
  std::vector<Device> devices;
  std::function<void()> work;
  // Called instead of synchronizing the devices, if given.
  std::function<void()> wait = nullptr;
};

// Repeats that a cell timed itself.
struct TimedRepeats {
  Phrase label;
  std::vector<Elapsed> repeats;
};

class Cell {
 public:
  // Results go to *result, which outlives the cell.
  Cell(Size size, CellResult* result, bool verbose = false, SvgOutput svg = {},
       CellTiming timing = {})
      : size_(size),
        verbose_(verbose),
        svg_(std::move(svg)),
        asked_timing_(std::move(timing)),
        result_(result) {}

  Size size() const { return size_; }
  template <typename T>
  T BySize(T small, T course, T large) const {
    return size_ == Size::kSmall    ? small
           : size_ == Size::kCourse ? course
                                    : large;
  }

  // Whether to print tables and details (--verbose).
  bool verbose() const { return verbose_; }

  // From here to the end of the cell, or the next call, an operation of a
  // virtual device lasts several times its computing time (--pace), so that the
  // machine's cores stand for as many GPUs; with links, transfers cross these.
  // Prints a sentence that says so. For cells about queues, order, overlap and
  // scaling; not for those about speed, and not for those that compare
  // launching with computing, since a pace stretches computing alone. No effect
  // if the table has a GPU; with --pace=0 operations last as long as they take.
  void PaceDevices(const std::optional<Topology>& links = std::nullopt);

  // As PaceDevices, with virtual devices and the CPU on one switch, over links
  // on which so many bytes take so long; prints their speed. No effect for 0
  // bytes: a program on one device sends nothing.
  void LinkDevices(std::int64_t bytes, double seconds);

  // The shortest of several runs of `work`, which enqueues on `device`, where a
  // rough figure is enough.
  double RoughSeconds(Device device, const std::function<void()>& work);

  // Times `work`, which enqueues on `device`. Once to warm up, then 9 times,
  // and up to 99 times while that takes less than CellTiming::min_seconds; each
  // begins with an idle device: start the clock, work(), read it (enqueue),
  // wait, read it again (completion). `wait` is Synchronize(device) unless
  // given. Beside other programs, and at a pace, it goes on until 21 repeats
  // are undisturbed: for five times min_seconds at most, or three times where
  // nothing runs beside.
  Timing Time(const Phrase& label, Device device,
              const std::function<void()>& work,
              const std::function<void()>& wait = nullptr);

  // Times each as Time does, and in turn: A B C, A B C, … Repeat i of one
  // measurement was taken beside repeat i of the others (see RatioPerRepeat);
  // beside other programs it is the i-th undisturbed one of each. The devices
  // of all are idle when one begins.
  Timings TimeInterleaved(const std::vector<Alternative>& alternatives);

  // Times `work` on the calling thread, a call that returns when it is done.
  Figure TimeHost(const Phrase& label, const std::function<void()>& work);

  // The most bytes, besides those in use before, that `memory` of the device
  // held while `work` ran. Six runs, each from an idle device and empty caches.
  Figure PeakMemory(const Phrase& label, Device device, DeviceMemory& memory,
                    const std::function<void()>& work);

  // Reports a figure of another kind, or a derived one.
  Figure Report(Figure figure);
  // Figures that are reported from here on, until the next call, belong to this
  // place of a sweep: At("n", 64). They are drawn as curves, one for each
  // label.
  void At(const Phrase& axis, double value) { place_ = {axis, value}; }
  // From here on figures have no place.
  void AtNoPlace() { place_.reset(); }
  // Reports repeats that the cell timed itself. Several are as in
  // TimeInterleaved.
  Figure ReportTimes(const Phrase& label, const Phrase& measured_on,
                     const std::vector<Elapsed>& repeats);
  std::vector<Figure> ReportTimes(const Phrase& measured_on,
                                  const std::vector<TimedRepeats>& timed);

  // Whether other programs have used the cores that this one needs since the
  // cell began. Then take more repeats: only the undisturbed ones count.
  bool BesideOthers() const;
  // Before each: sleeps if there are other programs. A thread that has slept is
  // less likely to be disturbed.
  void Rest() const;

  // Prints a line for each: its label, its time, and the time of the calls, if
  // they returned before the work was done.
  void PrintTimes(const Timings& timings);

  // Prints the drawing as text. With --svg=DIR it is also written there, as
  // LESSON_CELL_NAME.svg, or .dot if it is a graph and Graphviz's dot fails,
  // which is printed; throws std::runtime_error if writing fails.
  void Show(const Drawing& drawing);
  // As Show, but prints with --verbose only: for large drawings.
  void ShowIfVerbose(const Drawing& drawing);

  // Draws the reported figures (figure_drawings.h). The runner calls it when
  // the cell's code has returned.
  void ShowFigures();

  // The verdict on an assertion of the course. text: the assertion, with "{}"
  // for the judgement's number; without it, the evidence begins with the
  // number, behind a colon, so that it reads right under each verdict:
  // "Printing takes longer: {}.". A text with other numbers or words in it is
  // Worded (language.h). because: why it does not hold here, in sentences made
  // from the measurements (Say), or "" if these do not bear it out. Printed if
  // it FAILS, or the spread of the repeats leaves it open.
  void Claim(const Phrase& text, const Judgement& judgement,
             const std::string& because = "");

  // Prints why this machine or these devices cannot show so many of the cell's
  // claims, and what would: they are not judged.
  void NotAsked(int claims, const std::string& why);

  // A result is right if |got - expected| <= tolerance * max(1, |expected|). A
  // difference is reported: how many elements, the first index, both values.
  void CheckClose(const std::string& what, const std::vector<float>& got,
                  const std::vector<float>& expected, double tolerance);
  void CheckClose(const std::string& what, const std::vector<double>& got,
                  const std::vector<double>& expected, double tolerance);
  void Check(bool right, const std::string& what);

 private:
  // As TimeInterleaved, but reports nothing.
  Timings Measure(const std::vector<Alternative>& alternatives) const;
  // Times the work, and the wait behind it. Sets *enqueue to the time until the
  // work had returned.
  Elapsed TimeOnce(const Alternative& alternative, bool beside_others,
                   double* enqueue) const;
  // Writes the SVG, if requested. text: see Shown.
  void Keep(const Drawing& drawing, const std::string& text);

  const LoadWatch watch_;
  const Timer since_;
  const Size size_;
  const bool verbose_;
  const SvgOutput svg_;
  const CellTiming asked_timing_;
  std::optional<VirtualTimingScope> timing_;
  CellResult* const result_;
  std::optional<Place> place_;  // see At
  int last_group_ = 0;          // see Figure::group
};

// The number of cores that the front end and the virtual devices keep busy.
int CoresNeeded();

// Why operations on several streams of a device cannot run at the same time,
// and how it would have more cores; "" if they can. See Cell::NotAsked.
std::string WhyNoOverlap(Device device);

// A pace at which the virtual devices need less than half of the machine, so
// that the front end, and other programs, have the rest.
double PaceForThisMachine();

// "cpu:0, virtual": every figure's description of its devices.
Phrase MeasuredOn(Device device);
// "cpu:0 and cpu:1, virtual"; "host" for none.
Phrase MeasuredOn(const std::vector<Device>& devices);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_CELL_H_
