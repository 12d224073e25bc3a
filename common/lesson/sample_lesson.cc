// A lesson for the tests of this package: one cell for each way to end.

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
                     {kAfter, After}}});

}  // namespace
}  // namespace d2l
