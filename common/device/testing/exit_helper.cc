// Programs that start and end in ways a test within GoogleTest cannot: see
// exit_test.cc. The argument says which.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/cpu/stream_capture.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/memory/memory.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"

namespace d2l {
namespace {

const Device kCpu0(DeviceType::kCpu, 0);
const Device kCpu1(DeviceType::kCpu, 1);

constexpr int kSkipped = 77;  // this machine cannot run the case

std::atomic<long> ran{0};

// Destroyed after the table's streams have been stopped, if made before them.
struct Leftovers {
  ~Leftovers() {
    blocks.clear();
    if (stream == nullptr) return;
    stream->HostCallback([] { ++ran; });
    stream->Record().Synchronize();
    stream->Synchronize();
  }

  std::vector<StorageRef> blocks;
  Event event;
  Stream* stream = nullptr;
} leftovers;

// A thread that waits for events to the very end, and is joined after it.
struct Waiter {
  ~Waiter() {
    quit = true;
    if (thread.joinable()) thread.join();
  }

  std::atomic<bool> quit{false};
  std::thread thread;
} waiter;

void Make(const std::string& devices = "cpu:0,cpu:1",
          const DeviceOptions& options = {}) {
  const absl::Status status = InitializeDevices(devices, options);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    std::exit(1);
  }
}

int PrintRan() {
  std::cout << ran << " ran\n";
  return 0;
}

void Queue(Stream& stream, int count) {
  for (int i = 0; i < count; ++i) stream.HostCallback([] { ++ran; });
}

// An operation in many parts.
void Spread(Stream& stream) {
  static_cast<CpuStream&>(stream).Enqueue(OpLabel("spread"), [] {
    ParallelFor(100, 1, [](std::int64_t begin, std::int64_t end) {
      ran += end - begin;
    });
  });
}

// Both streams are full of work, each waiting for the other again and again.
void QueueAcross() {
  Stream& a = DefaultStream(kCpu0);
  Stream& b = NewStream(kCpu1);
  for (int i = 0; i < 500; ++i) {
    Queue(a, 1);
    b.Wait(a.Record());
    Queue(b, 1);
    a.Wait(b.Record());
  }
}

// ---- Programs that start and end.

int Nothing() { return 0; }

int StartAndUseNothing() {
  Make();
  return 0;
}

// The first use makes the table.
int Automatic() {
  Queue(DefaultStream(Devices().front().device), 10);
  Synchronize(Devices().front().device);
  std::cout << Devices().size() << " devices, ";
  return PrintRan();
}

// Several first uses at once.
int ThreadsStart() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] { Queue(DefaultStream(kCpu0), 100); });
  }
  for (std::thread& thread : threads) thread.join();
  Synchronize(kCpu0);
  return PrintRan();
}

int Queued() {
  Make();
  Queue(DefaultStream(kCpu0), 2000);
  Queue(NewStream(kCpu1), 2000);
  return 0;
}

// Ends by exit(), not by a return from main.
int Exit() {
  Make();
  Queue(DefaultStream(kCpu0), 2000);
  std::exit(0);
}

int Across() {
  Make();
  QueueAcross();
  return 0;
}

int BoundOfOne() {
  DeviceOptions options;
  options.stream.max_queued_operations = 1;
  options.max_bytes_in_flight = 1;
  Make("cpu:0,cpu:1", options);
  QueueAcross();
  Synchronize(kCpu0);
  Synchronize(kCpu1);
  return PrintRan();
}

int NoBound() {
  DeviceOptions options;
  options.stream.max_queued_operations = StreamOptions::kUnbounded;
  Make("cpu:0,cpu:1", options);
  std::atomic<bool> go{false};
  DefaultStream(kCpu0).HostCallback([&go] {
    while (!go) std::this_thread::yield();
  });
  Queue(DefaultStream(kCpu0), 100'000);  // no thread waits for room
  go = true;
  Synchronize(kCpu0);
  return PrintRan();
}

int Poisoned() {
  Make();
  DefaultStream(kCpu0).HostCallback([] { throw std::runtime_error("alas"); });
  const Event event = DefaultStream(kCpu0).Record();
  Queue(DefaultStream(kCpu0), 100);
  while (!event.Query()) std::this_thread::yield();
  return 0;
}

int LeaveSomething() {
  Make();
  // More tasks than fit into the queue, which no worker serves any more.
  leftovers.stream = &DefaultStream(kCpu1);
  for (int i = 0; i < 10'000; ++i) {
    leftovers.blocks.push_back(
        Memory(kCpu0).Allocate(1000, DefaultStream(kCpu0)));
    leftovers.blocks.back()->RecordStream(*leftovers.stream);
  }
  Queue(*leftovers.stream, 2000);
  leftovers.event = leftovers.stream->Record();
  return 0;
}

// Threads that enqueue to the very end.
int Producers() {
  Make();
  for (int i = 0; i < 4; ++i) {
    std::thread([] {
      for (;;) Queue(DefaultStream(kCpu0), 1);
    }).detach();
  }
  while (ran < 10'000) std::this_thread::yield();
  return 0;
}

int WaitToTheEnd() {
  Make();
  static std::atomic<int>& count = *new std::atomic<int>(0);
  waiter.thread = std::thread([] {
    while (!waiter.quit) {
      Queue(DefaultStream(kCpu0), 3);
      DefaultStream(kCpu1).Wait(DefaultStream(kCpu0).Record());
      DefaultStream(kCpu1).Record().Synchronize();
      DefaultStream(kCpu0).Synchronize();
      ++count;
    }
  });
  while (count < 100) std::this_thread::yield();
  return 0;
}

// Helpers are at work to the very end.
int Parallel() {
  Make("cpu:0");
  for (int i = 0; i < 1000; ++i) Spread(DefaultStream(kCpu0));
  Spread(NewStream(kCpu0));
  while (ran < 1000) std::this_thread::yield();
  return 0;
}

int ParallelCores() {
  Make("cpu:0");
  const int cores = GetDeviceInfo(kCpu0).cores;
  std::atomic<int> begun{0};
  static_cast<CpuStream&>(NewStream(kCpu0))
      .Enqueue(OpLabel("all_at_once"), [&begun, cores] {
        ParallelFor(cores, 1, [&](std::int64_t begin, std::int64_t end) {
          begun += static_cast<int>(end - begin);
          while (begun < cores) std::this_thread::yield();
        });
      });
  Synchronize(kCpu0);
  std::cout << (begun == cores ? "all at once\n" : "not all\n");
  return 0;
}

int ExitInPart() {
  Make("cpu:0");
  static_cast<CpuStream&>(DefaultStream(kCpu0)).Enqueue(OpLabel("exit"), [] {
    ParallelFor(100, 1, [](std::int64_t, std::int64_t end) {
      if (end == 100) std::exit(3);
    });
  });
  for (;;) std::this_thread::yield();
}

int ExitInWork() {
  Make();
  DefaultStream(kCpu0).HostCallback([] { std::exit(3); });
  for (;;) std::this_thread::yield();
}

int ExitInStall() {
  Make();
  const StreamStall stall(DefaultStream(kCpu0));
  Queue(DefaultStream(kCpu0), 10);
  std::exit(0);
}

int ExitInCapture() {
  class Sink : public StreamCapture {
    std::uint64_t Capture(CpuStream&, const OpLabel&,
                          std::function<void()>) override {
      return 0;
    }
  } sink;
  Make();
  Stream& stream = DefaultStream(kCpu0);
  stream.HostCallback([] { throw std::runtime_error("alas"); });
  while (!stream.Query()) std::this_thread::yield();
  const ScopedStreamCapture scope(sink);
  std::exit(0);
}

// ---- Programs that may have no more threads.

// False if this machine cannot do that.
bool AllowNoMoreThreads() {
  constexpr int kNobody = 65534;  // root has no limit
  if (geteuid() == 0 && (setresgid(kNobody, kNobody, kNobody) != 0 ||
                         setresuid(kNobody, kNobody, kNobody) != 0)) {
    return false;
  }
  const rlimit none = {0, 0};
  return setrlimit(RLIMIT_NPROC, &none) == 0;
}

int NoThreadForAStream() {
  if (!AllowNoMoreThreads()) return kSkipped;
  std::cout << InitializeDevices("cpu:0,cpu:1") << "\n";
  try {
    Devices();
  } catch (const std::runtime_error& error) {
    std::cout << "threw " << error.what() << "\n";
  }
  return 0;
}

int NoThreadForAHelper() {
  CpuStream stream(kCpu0, 0, StreamOptions(), std::make_shared<ThreadPool>(4));
  if (!AllowNoMoreThreads()) return kSkipped;
  Spread(stream);
  Spread(stream);
  stream.Synchronize();
  return PrintRan();
}

// ---- Programs that fork.

// Calls `f` in a child that is forked while work is queued; returns the child's
// exit code.
int InForkedChild(int (*f)()) {
  Make();
  leftovers.blocks.push_back(
      Memory(kCpu0).Allocate(1000, DefaultStream(kCpu0)));
  leftovers.blocks.back()->RecordStream(DefaultStream(kCpu1));
  static std::atomic<bool> go{false};
  DefaultStream(kCpu0).HostCallback([] {
    while (!go) std::this_thread::yield();
  });
  Queue(DefaultStream(kCpu0), 1000);
  const pid_t child = fork();
  if (child == 0) std::exit(f());
  int status = 0;
  waitpid(child, &status, 0);  // exit_test.cc bounds it
  go = true;
  Synchronize(kCpu0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void PrintError(void (*f)()) {
  try {
    f();
    std::cout << "nothing thrown" << std::endl;
  } catch (const std::logic_error& error) {
    std::cout << error.what() << std::endl;
  }
}

int ForkAndExit() {
  return InForkedChild([] { return 5; });
}

int ForkAndEnqueue() {
  return InForkedChild([] {
    PrintError([] { Queue(DefaultStream(kCpu0), 1); });
    PrintError([] { Synchronize(kCpu0); });
    PrintError([] { DefaultStream(kCpu1).Record(); });
    Memory(kCpu0).Allocate(1000, DefaultStream(kCpu0));
    return 6;
  });
}

int ForkAndWaitInAThread() {
  return InForkedChild([] {
    std::thread([] { PrintError([] { Synchronize(kCpu0); }); }).join();
    return 7;
  });
}

struct Case {
  const char* name;
  int (*run)();
};
constexpr Case kCases[] = {
    {"nothing", Nothing},
    {"start", StartAndUseNothing},
    {"automatic", Automatic},
    {"threads_start", ThreadsStart},
    {"queued", Queued},
    {"exit", Exit},
    {"across", Across},
    {"bound_of_one", BoundOfOne},
    {"no_bound", NoBound},
    {"poisoned", Poisoned},
    {"leftovers", LeaveSomething},
    {"producers", Producers},
    {"waiter", WaitToTheEnd},
    {"parallel", Parallel},
    {"parallel_cores", ParallelCores},
    {"exit_in_part", ExitInPart},
    {"exit_in_work", ExitInWork},
    {"exit_in_stall", ExitInStall},
    {"exit_in_capture", ExitInCapture},
    {"no_thread_for_a_stream", NoThreadForAStream},
    {"no_thread_for_a_helper", NoThreadForAHelper},
    {"fork_and_exit", ForkAndExit},
    {"fork_and_enqueue", ForkAndEnqueue},
    {"fork_and_wait_in_a_thread", ForkAndWaitInAThread},
};

int Run(const std::string& name) {
  for (const Case& one : kCases) {
    if (one.name == name) return one.run();
  }
  std::cerr << "unknown: " << name << "\n";
  return 2;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) { return d2l::Run(argc > 1 ? argv[1] : ""); }
