// A lesson for the tests of this package: one cell for each way to end, and
// one for each kind of drawing and of measurement.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/timeline.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/judge.h"
#include "common/lesson/cell/trace_program.h"
#include "common/lesson/run/fresh_process.h"
#include "common/lesson/text/lesson.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

[[maybe_unused]] const bool translated = AddTranslations({
    {"two milliseconds", "两毫秒"},
    {"The call returns {} sooner than the work is done.", "调用早{}返回。"},
    {"It is not.", "并没有。"},
});

// %% s/good, s/plot
// Work that takes this long.
void Wait(Device device, std::chrono::microseconds duration) {
  DefaultStream(device).HostCallback(
      [=] { std::this_thread::sleep_for(duration); });
}
// %%

// %% s/good
void Good(Cell& cell) {
  const Device device = Devices().back().device;
  const Timing timing = cell.Time("two milliseconds", device, [&] {
    Wait(device, std::chrono::milliseconds(2));
  });
  std::cout << "size " << cell.BySize(1, 2, 3) << ", \"quoted\" \\n\n";

  cell.CheckClose("close", std::vector<float>{1, 2}, {1, 2.00001f}, 1e-4);
  cell.Claim("The call returns {} sooner than the work is done.",
             Less(timing.enqueue, timing.completion, 1.3));
  cell.Claim("The work is done when the call returns.",
             Counted(false, "it takes two milliseconds", "0 of 1"),
             Say("It is not."));
}
// %%
D2L_CELL("s/good", Good);

// %% s/draw
void Draw(Cell& cell) {
  const Device device = Devices()[0].device;
  const Tensor x = Ones({1, 2}, device);
  const Tensor y = Ones({1, 2}, device);
  Tensor z;
  const TracedProgram run = TraceProgram([&] {
    z = x * y + 2;
    std::cout << z << "\n\n";
  });
  cell.Show(DrawGraph(run.graph, "z = x * y + 2"));
  cell.Show(Timeline(run.profile).Draw("timeline"));
}
// %%
D2L_CELL("s/draw", Draw);

// %% s/plot
void WaitOn(Device device, int microseconds) {
  Wait(device, std::chrono::microseconds(microseconds));
}
// %% s/plot, measured
void PlotSizes(Cell& cell) {
  const Device device = Devices()[0].device;
  const Device other = Devices().back().device;
  for (const int n : {1, 2, 4}) {
    cell.At("n", n);
    const Timings times = cell.TimeInterleaved(
        {{"on one", {device}, [&] { WaitOn(device, 400 * n); }},
         {"on both", {device, other}, [&] {
            WaitOn(device, 500 + 100 * n);
            WaitOn(other, 500 + 100 * n);
          }}});
    cell.Report(RatioPerRepeat("one / both", times["on one"].completion,
                               times["on both"].completion));
  }
}
// %%
D2L_CELL("s/plot", PlotSizes);

// %% s/wrong
void Wrong(Cell& cell) {
  cell.CheckClose("z", std::vector<double>{3, 4, 5}, {3, 3, 3}, 1e-6);
  cell.Check(true, "is right");
}
// %%
D2L_CELL("s/wrong", Wrong);

// %% s/throws
void Throws(Cell&) { throw std::invalid_argument("[matmul] inner sizes"); }
// %%

// %% s/late
void Late(Cell&) {
  DefaultStream(Devices()[0].device).HostCallback([] {
    throw std::runtime_error("it broke late");
  });
}
// %%
D2L_CELL("s/late", Late);
D2L_CELL("s/throws", Throws);

// %% s/memory
void OutOfMemory(Cell&) { throw OutOfMemoryError("cpu:0 has 3 B free."); }
// %%

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
D2L_CELL("s/sleep", Sleep);
D2L_CELL("s/memory", OutOfMemory);

// %% s/rename
void Rename(Cell&) {
  // So that a file in it cannot be written any more.
  const char* path = std::getenv("SAMPLE_RENAME");
  if (path == nullptr) return;
  std::filesystem::rename(path, std::string(path) + ".away");
}
// %%
D2L_CELL("s/rename", Rename);

// Figures of another process. What it is to do stands in SAMPLE_PROBE: a probe
// and its arguments; what starts it, in SAMPLE_LAUNCHER.
// %% s/fresh
void Fresh(Cell&) {
  const char* asked = std::getenv("SAMPLE_PROBE");
  std::vector<std::string> arguments =
      absl::StrSplit(asked == nullptr ? "sample/echo" : asked, '|');
  const std::string probe = arguments[0];
  arguments.erase(arguments.begin());
  const bool is_long = probe == "sample/sleep" && arguments[0] == "limit";
  std::vector<std::string> launcher;
  if (const char* words = std::getenv("SAMPLE_LAUNCHER")) {
    launcher = absl::StrSplit(words, '|');
  }
  const absl::StatusOr<std::vector<double>> numbers = RunInFreshProcess(
      probe, arguments, std::chrono::seconds(is_long ? 1 : 60), launcher);
  std::cout << numbers.status() << "\n";
  if (!numbers.ok()) return;
  for (const double number : *numbers) {
    std::cout << absl::StrFormat("[%.17g]\n", number);
  }
}
// %%
D2L_CELL("s/fresh", Fresh);

[[maybe_unused]] const bool registered_echo =
    RegisterProbe("sample/echo", [](const std::vector<std::string>& arguments) {
      std::cout << "this is lost\n";
      std::vector<double> numbers = {1.0 / 3, -0.0, 1e300, 5e-324};
      for (const std::string& argument : arguments) {
        numbers.push_back(std::stod(argument));
      }
      return numbers;
    });

// The number of devices, and the sum of a product on the first of them.
[[maybe_unused]] const bool registered_product = RegisterProbe(
    "sample/product", [](const std::vector<std::string>& arguments) {
      const absl::Status made = InitializeDevices(arguments.at(0));
      if (!made.ok()) throw std::runtime_error(made.ToString());
      const Device device = Devices()[0].device;
      const Tensor x = Ones({2, 3}, device);
      const Tensor y = Ones({3, 2}, device);
      double sum = 0;
      for (const float value : ToVector<float>(MatMul(x, y))) sum += value;
      return std::vector<double>{static_cast<double>(Devices().size()), sum};
    });

// Ends in the way that the argument names.
[[maybe_unused]] const bool registered_end = RegisterProbe(
    "sample/end",
    [](const std::vector<std::string>& arguments) -> std::vector<double> {
      const std::string& how = arguments.at(0);
      std::cout << "on stdout\n" << std::flush;
      std::cerr << "on stderr\n";
      if (how == "throw") throw std::runtime_error("nothing works");
      if (how == "exit") std::_Exit(7);
      if (how == "early") std::_Exit(0);
      if (how == "signal") raise(SIGKILL);
      if (how == "probe") {
        return RunInFreshProcess("sample/echo", {}).value();
      }
      if (how == "stdin") return {static_cast<double>(std::cin.get())};
      // The text is longer than a pipe holds.
      for (int i = 0; i < 100'000; ++i)
        std::cerr << "a long line " << i << "\n";
      return {8};
    });

// Writes the process's number to the file that the last argument names, and
// waits to be ended.
[[maybe_unused]] const bool registered_sleep = RegisterProbe(
    "sample/sleep",
    [](const std::vector<std::string>& arguments) -> std::vector<double> {
      const std::string& path = arguments.back();
      std::ofstream(path + ".new") << getpid() << "\n";
      std::rename((path + ".new").c_str(), path.c_str());
      std::this_thread::sleep_for(std::chrono::minutes(5));
      return {};
    });

// %% s/after
void After(Cell&) {
  // A nested block keeps its indentation.
  for (const DeviceInfo& info : Devices()) Synchronize(info.device);
  std::cout << "all is well\n";
}
// %%
D2L_CELL("s/after", After);

// %% s/long
void Long(Cell&) {
  const Device device = Devices()[0].device;
  Wait(device, std::chrono::seconds(3));
  Synchronize(device);
}
// %%
D2L_CELL("s/long", Long);

}  // namespace
}  // namespace d2l
