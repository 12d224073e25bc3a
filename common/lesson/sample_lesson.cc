// A lesson for the tests of this package: one cell for each way to end, and
// one for each kind of drawing and of measurement.

#include <chrono>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/lesson/lesson.h"
#include "common/lesson/plot.h"
#include "common/lesson/program_graph.h"
#include "common/lesson/recorder.h"
#include "common/lesson/timeline.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

constexpr CellText kGood = {
    "s/good",
    {"t/good", "u/good"},
    "A stream is given work that takes two milliseconds. This sentence is long "
    "enough that it has to be wrapped somewhere before its end is reached.",
    R"py(
with Benchmark():
    work()
)py",
    "Done: 0.0020 sec\n"};

// %% s/good
void Good(Cell& cell) {
  const Device device = Devices().back().device;
  const auto work = [] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const Timing timing = cell.Time("two milliseconds", device, [&] {
    DefaultStream(device).HostCallback(work);
  });
  std::cout << "size " << cell.BySize(1, 2, 3) << ", \"quoted\" \\n\n";

  cell.CheckClose("close", std::vector<float>{1, 2}, {1, 2.00001f}, 1e-4);
  cell.Claim("the call returns early",
             Less(timing.enqueue, timing.completion, 1.3));
  cell.Claim("the work is done when the call returns",
             Less(timing.completion, timing.enqueue), "It is not.");
}
// %%

constexpr CellText kDraw = {"s/draw",
                            {},
                            "What depends on what, and when.",
                            "",
                            "tensor([[3., 3.]], device='cuda:0')"};

// %% s/draw
void Draw(Cell& cell) {
  const Device device = Devices()[0].device;
  const Tensor x = Ones({1, 2}, device);
  const Tensor y = Ones({1, 2}, device);
  Tensor z;
  const Recording run = Record([&] {
    z = x * y + 2;
    std::cout << z << "\n\n";
  });
  cell.Show(ProgramGraph(run).Draw("z = x * y + 2"));
  cell.Show(Timeline(run).Draw("timeline"));
}
// %%

constexpr CellText kPlot = {"s/plot", {}, "Two ways, in turn.", "", ""};

// %% s/plot
void PlotSizes(Cell& cell) {
  const Device device = Devices()[0].device;
  const Device other = Devices().back().device;
  const auto wait = [](Device on, int microseconds) {
    DefaultStream(on).HostCallback([=] {
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
    });
  };
  std::vector<double> sizes, one, both;
  for (const int n : {1, 2, 4}) {
    const std::vector<Timing> times = cell.TimeInterleaved(
        {{"on one", {device}, [&] { wait(device, 400 * n); }},
         {"on both", {device, other}, [&] {
            wait(device, 500 + 100 * n);
            wait(other, 500 + 100 * n);
          }}});
    sizes.push_back(n);
    one.push_back(times[0].completion.value.median);
    both.push_back(times[1].completion.value.median);
    cell.Report(
        RatioPerRepeat("one / both", times[0].completion, times[1].completion));
  }
  Plot plot("n", "", "time", "s");
  plot.LogX();
  plot.MarkCrossover(plot.AddLine("on one", sizes, one),
                     plot.AddLine("on both", sizes, both));
  cell.Show(plot.Draw("time against size"));
}
// %%

constexpr CellText kWrong = {"s/wrong", {}, "A wrong result.", "", ""};

// %% s/wrong
void Wrong(Cell& cell) {
  cell.CheckClose("z", std::vector<double>{3, 4, 5}, {3, 3, 3}, 1e-6);
  cell.Check(true, "is right");
}
// %%

constexpr CellText kThrows = {"s/throws", {}, "An exception.", "", ""};

// %% s/throws
void Throws(Cell&) { throw std::invalid_argument("[matmul] inner sizes"); }
// %%

constexpr CellText kLate = {"s/late", {}, "A late error.", "", ""};

// %% s/late
void Late(Cell&) {
  DefaultStream(Devices()[0].device).HostCallback([] {
    throw std::runtime_error("it broke late");
  });
}
// %%

constexpr CellText kMemory = {"s/memory", {}, "Too big.", "", ""};

// %% s/memory
void OutOfMemory(Cell&) { throw OutOfMemoryError("cpu:0 has 3 B free."); }
// %%

constexpr CellText kSleep = {"s/sleep", {}, "For Ctrl-C.", "", ""};

// %% s/sleep
void Sleep(Cell& cell) {
  const Device device = Devices()[0].device;
  const int seconds = cell.BySize(0, 20, 20);
  DefaultStream(device).HostCallback([seconds] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
  });
  Synchronize(device);
  std::cout << "woke up\n";
}
// %%

constexpr CellText kAfter = {"s/after", {}, "After a failure.", "", ""};

// %% s/after
void After(Cell&) {
  // A nested block keeps its indentation.
  for (const DeviceInfo& info : Devices()) Synchronize(info.device);
  std::cout << "all is well\n";
}
// %%

[[maybe_unused]] const bool registered =
    RegisterLesson({"sample",
                    "A sample lesson",
                    "D2L 0.0",
                    2,
                    {{kGood, Good},
                     {kWrong, Wrong},
                     {kThrows, Throws},
                     {kLate, Late},
                     {kMemory, OutOfMemory},
                     {kSleep, Sleep},
                     {kAfter, After},
                     {kDraw, Draw},
                     {kPlot, PlotSizes}}});

}  // namespace
}  // namespace d2l
