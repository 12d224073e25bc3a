// Compares the times that Play predicts with measured ones, for thirty
// alternatives that can be made here. Prints a table, and the median and the
// 90th percentile of the errors. A program is recorded and measured in turn
// with the alternative; of several recordings, Play gets the median one.
//
//   bazel run //tests:what_if

#include "common/profiler/what_if.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/console/format.h"
#include "common/base/timer.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"
#include "common/profiler/program_recorder.h"

namespace d2l {
namespace {

constexpr int kRepeats = 9;

const Device kOne(DeviceType::kCpu, 0);
const Device kTwo(DeviceType::kCpu, 1);

using Program = std::function<void()>;
using Play = std::function<double(const RecordedProgram&)>;

void SynchronizeBoth() {
  Synchronize(kOne);
  Synchronize(kTwo);
}

double Seconds(const Program& program) {
  SynchronizeBoth();
  const Timer timer;
  program();
  SynchronizeBoth();
  return timer.Seconds();
}

std::vector<double> errors;

// Compares the predicted time of `program` with the time of `made`.
void Compare(const std::string& what, const Program& program, const Play& play,
             const Program& made) {
  std::vector<RecordedProgram> recorded;
  std::vector<double> before, after;
  program();
  made();
  for (int i = 0; i < kRepeats; ++i) {
    before.push_back(Seconds(program));
    SynchronizeBoth();
    ProgramRecorder recorder;
    program();
    SynchronizeBoth();
    recorded.push_back(recorder.Stop());
    after.push_back(Seconds(made));
  }
  const auto middle = [](auto& all, auto less) -> auto& {
    std::nth_element(all.begin(), all.begin() + kRepeats / 2, all.end(), less);
    return all[kRepeats / 2];
  };
  const RecordedProgram& one =
      middle(recorded, [](const RecordedProgram& a, const RecordedProgram& b) {
        return a.seconds < b.seconds;
      });
  const double measured = middle(after, std::less<double>());
  const double played = d2l::Play(one.program, one.machine).seconds;
  const double predicted = play(one);
  errors.push_back(std::abs(predicted / measured - 1));
  std::printf("%-52s %9s %9s %9s %9s %5.0f %%\n", what.c_str(),
              FormatDuration(middle(before, std::less<double>())).c_str(),
              FormatDuration(played).c_str(), FormatDuration(predicted).c_str(),
              FormatDuration(measured).c_str(),
              100 * (predicted / measured - 1));
  std::fflush(stdout);
}

// Moves all work of a device to one stream.
PlayedProgram OnOneStreamEach(PlayedProgram program) {
  std::map<int, int> first;  // stream of a device
  for (std::size_t s = 0; s < program.device_of.size(); ++s) {
    first.emplace(program.device_of[s], static_cast<int>(s));
  }
  for (PlayedRequest& request : program.requests) {
    if (request.stream >= 0) {
      request.stream = first[program.device_of[request.stream]];
    }
  }
  return program;
}

// Joins each stream's messages over a link, `in_a_row` of them, to one in place
// of the last; a message takes `latency`, and the time of its bytes.
PlayedProgram Joined(PlayedProgram program, int in_a_row, double latency) {
  std::map<int, std::pair<int, int>> last;  // by stream: how many, and which
  for (std::size_t i = 0; i < program.requests.size(); ++i) {
    PlayedRequest& request = program.requests[i];
    if (request.kind != PlayedRequest::Kind::kCallback) continue;
    auto& [count, before] = last[request.stream];
    if (count > 0) {
      PlayedRequest& joined = program.requests[before];
      request.work += std::exchange(joined.work, 0) - latency;
      joined.wake_up = {};
    }
    count = (count + 1) % in_a_row;
    before = static_cast<int>(i);
  }
  return program;
}

double On(const PlayedProgram& program, const PlayedMachine& machine) {
  return d2l::Play(program, machine).seconds;
}

// Runs the program on other streams, whose queues have this length.
Program WithQueue(std::int64_t queue, const Program& program) {
  Stream& one = NewStream(kOne, queue);
  Stream& two = NewStream(kTwo, queue);
  return [&one, &two, program] {
    const StreamGuard first(one), second(two);
    program();
  };
}

// A chain of products on each of two devices, enqueued in turn.
Program Chains(const Tensor& a, const Tensor& b, int products) {
  return [=] {
    Tensor x = a, y = b;
    for (int i = 0; i < products; ++i) {
      x = MatMul(x, a);
      y = MatMul(y, b);
    }
  };
}

// One device after the other.
Program InOrder(const Tensor& a, const Tensor& b, int products) {
  return [=] {
    for (int i = 0; i < products; ++i) MatMul(a, a);
    for (int i = 0; i < products; ++i) MatMul(b, b);
  };
}

void Devices1And2() {
  for (const auto& [n, products] : {std::pair{64, 300}, {200, 50}}) {
    const Tensor a = Rand({n, n}, kOne), b = Rand({n, n}, kTwo);
    const Tensor c = Rand({n, n}, kOne);
    const std::string size = std::to_string(n);
    Compare(
        "two chains of " + size + ": one device instead of two",
        Chains(a, b, products),
        [](const RecordedProgram& r) {
          return On(OnDevices(r.program, 1), r.machine);
        },
        Chains(a, c, products));
    Compare(
        "two chains of " + size + ": two devices instead of one",
        Chains(a, c, products),
        [](const RecordedProgram& r) {
          return On(OnDevices(r.program, 2), r.machine);
        },
        Chains(a, b, products));
  }
}

void Queues() {
  const Tensor a = Rand({64, 64}, kOne), b = Rand({64, 64}, kTwo);
  const Program program = InOrder(a, b, 3000);
  for (const auto& [from, to] : {std::pair{4096, 16},
                                 {4096, 256},
                                 {4096, 1024},
                                 {16, 4096},
                                 {256, 2048}}) {
    Compare(
        "in order: a queue of " + std::to_string(to) + " instead of " +
            std::to_string(from),
        WithQueue(from, program),
        [to = to](const RecordedProgram& r) {
          PlayedMachine machine = r.machine;
          machine.queue = to;
          return On(r.program, machine);
        },
        WithQueue(to, program));
  }
}

void Blocking() {
  for (const auto& [n, products] : {std::pair{16, 400}, {64, 300}, {200, 50}}) {
    const Tensor a = Rand({n, n}, kOne), b = Rand({n, n}, kTwo);
    const Program program = Chains(a, b, products);
    const Program blocking = [program] {
      const LaunchBlockingGuard guard(true);
      program();
    };
    const std::string size = std::to_string(n);
    Compare(
        "two chains of " + size + ": a wait for each", program,
        [](const RecordedProgram& r) {
          return On(WithWaits(r.program), r.machine);
        },
        blocking);
  }
}

constexpr int kWaitLine = 1;

// Steps on both devices; the host waits for the first's.
Program Steps(const Tensor& a, const Tensor& b, int steps, int each, bool wait,
              bool read) {
  return [=] {
    for (int i = 0; i < steps; ++i) {
      Tensor x = a;
      for (int k = 0; k < each; ++k) x = MatMul(x, a);
      const SourceLocation at("steps.cc", kWaitLine);
      if (wait && read) ToVector<float>(x, at);
      if (wait && !read) Synchronize(kOne, at);
      Tensor y = b;
      for (int k = 0; k < each; ++k) y = MatMul(y, b);
    }
  };
}

void Waits() {
  for (const bool read : {false, true}) {
    for (const auto& [n, each] : {std::pair{64, 20}, {128, 10}, {200, 3}}) {
      const Tensor a = Rand({n, n}, kOne), b = Rand({n, n}, kTwo);
      Compare(
          std::string("steps of ") + std::to_string(n) + ": no " +
              (read ? "read" : "Synchronize"),
          Steps(a, b, 15, each, true, read),
          [](const RecordedProgram& r) {
            return On(WithoutWaits(r.program, {"steps.cc", kWaitLine}),
                      r.machine);
          },
          Steps(a, b, 15, each, false, read));
    }
  }
}

// Products, and after every few a message over a link, which sleeps.
Program Messages(const Tensor& a, int messages, int each, int in_a_row,
                 double latency, double seconds, Stream& link) {
  return [=, &link] {
    Tensor x = a;
    for (int i = 0; i < messages; ++i) {
      for (int k = 0; k < each; ++k) x = MatMul(x, a);
      const bool last = (i + 1) % in_a_row == 0 || i + 1 == messages;
      link.Wait(CurrentStream(kOne).Record());
      const int joined = i % in_a_row + 1;
      const std::chrono::duration<double> time(last ? latency + joined * seconds
                                                    : 0.0);
      if (last) {
        link.HostCallback([time] { std::this_thread::sleep_for(time); });
      }
    }
  };
}

void Links() {
  const Tensor a = Rand({128, 128}, kOne);
  Stream& link = NewStream(kOne);
  Stream& same = CurrentStream(kOne);
  constexpr double kLatency = 1e-3, kMessage = 5e-4;
  const auto program = [&](int in_a_row, double faster, Stream& stream) {
    return Messages(a, 24, 10, in_a_row, kLatency / faster, kMessage / faster,
                    stream);
  };
  for (const double faster : {0.5, 2.0, 4.0}) {
    Compare(
        "messages: a link " + FormatNumber(faster) + " times as fast",
        program(1, 1, link),
        [faster](const RecordedProgram& r) {
          return On(Faster(r.program, faster, "host_callback"), r.machine);
        },
        program(1, faster, link));
  }
  for (const int in_a_row : {2, 4, 12, 24}) {
    Compare(
        "messages: buckets of " + std::to_string(in_a_row), program(1, 1, link),
        [=](const RecordedProgram& r) {
          return On(Joined(r.program, in_a_row, kLatency), r.machine);
        },
        program(in_a_row, 1, link));
  }
  Compare(
      "messages: on the stream of the products", program(1, 1, link),
      [](const RecordedProgram& r) {
        return On(OnOneStreamEach(r.program), r.machine);
      },
      program(1, 1, same));
}

// Independent products on two streams of a device, with one core.
void Streams() {
  const Tensor a = Rand({128, 128}, kOne);
  Stream& other = NewStream(kOne);
  const auto program = [&](Stream& second) {
    return [&a, &second] {
      for (int i = 0; i < 100; ++i) {
        MatMul(a, a);
        const StreamGuard guard(second);
        MatMul(a, a);
      }
    };
  };
  Compare(
      "products of 128: one stream instead of two", program(other),
      [](const RecordedProgram& r) {
        return On(OnOneStreamEach(r.program), r.machine);
      },
      program(CurrentStream(kOne)));
}

// Two devices that wait for each other each step; the second is slower.
void Stragglers() {
  const auto program = [](double straggles) {
    const Tensor a = Rand({128, 128}, kOne), b = Rand({128, 128}, kTwo);
    return [=] {
      for (int i = 0; i < 20; ++i) {
        for (int k = 0; k < 5; ++k) MatMul(a, a);
        for (int k = 0; k < 5; ++k) MatMul(b, b);
        const std::chrono::duration<double> time(straggles);
        CurrentStream(kTwo).HostCallback(
            [time] { std::this_thread::sleep_for(time); });
        const Event one = CurrentStream(kOne).Record();
        const Event two = CurrentStream(kTwo).Record();
        CurrentStream(kOne).Wait(two);
        CurrentStream(kTwo).Wait(one);
      }
    };
  };
  for (const double times : {3.0, 0.25}) {
    Compare(
        "a straggler of 1 ms: of " + FormatNumber(times) + " ms", program(1e-3),
        [times](const RecordedProgram& r) {
          return On(Faster(r.program, 1 / times, "host_callback"), r.machine);
        },
        program(1e-3 * times));
  }
}

// Products of half as many operations.
void Kinds() {
  for (const int n : {128, 256}) {
    const auto program = [n](std::int64_t inner) {
      const Tensor a = Rand({n, inner}, kOne), b = Rand({inner, n}, kOne);
      return [=] {
        for (int i = 0; i < 40; ++i) Relu(MatMul(a, b));
      };
    };
    Compare(
        "products of " + std::to_string(n) + ": twice as fast", program(2 * n),
        [](const RecordedProgram& r) {
          return On(Faster(r.program, 2, "matmul"), r.machine);
        },
        program(n));
  }
}

int Main() {
  const absl::Status made = InitializeDevices("cpu:0,cpu:1");
  if (!made.ok()) {
    std::cerr << made << "\n";
    return 1;
  }
  std::printf("%-52s %9s %9s %9s %9s %7s\n", "alternative", "as it is",
              "played", "predicted", "measured", "error");
  Devices1And2();
  Queues();
  Blocking();
  Waits();
  Links();
  Streams();
  Stragglers();
  Kinds();
  std::sort(errors.begin(), errors.end());
  const std::size_t count = errors.size();
  std::printf(
      "%zu alternatives: median error %.1f %%, 90th percentile %.1f %%\n",
      count, 100 * errors[count / 2], 100 * errors[count * 9 / 10]);
  return 0;
}

}  // namespace
}  // namespace d2l

int main() { return d2l::Main(); }
