// Programs that start and end in ways a test within GoogleTest cannot: see
// exit_test.cc. The argument says which.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/memory.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"

namespace d2l {
namespace {

const Device kCpu0(DeviceType::kCpu, 0);
const Device kCpu1(DeviceType::kCpu, 1);

std::atomic<long> ran{0};

// Destroyed after the table's streams have been stopped, if made before.
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

void Make(const DeviceOptions& options = {}) {
  const absl::Status status = InitializeDevices("cpu:0,cpu:1", options);
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    std::exit(1);
  }
}

void Queue(Stream& stream, int count) {
  for (int i = 0; i < count; ++i) stream.HostCallback([] { ++ran; });
}

// One device with all cores of the machine.
void MakeParallel() {
  const absl::Status status = InitializeDevices("cpu:0");
  if (!status.ok()) {
    std::cerr << status.message() << "\n";
    std::exit(1);
  }
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

int Run(const std::string& how) {
  if (how == "nothing") return 0;
  if (how == "start") {  // and use nothing
    Make();
    return 0;
  }
  if (how == "automatic") {  // the first use makes the table
    Queue(DefaultStream(Devices().front().device), 10);
    Synchronize(Devices().front().device);
    std::cout << Devices().size() << " devices, " << ran << " ran\n";
    return 0;
  }
  if (how == "threads_start") {  // several first uses at once
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([] { Queue(DefaultStream(kCpu0), 100); });
    }
    for (std::thread& thread : threads) thread.join();
    Synchronize(kCpu0);
    std::cout << ran << " ran\n";
    return 0;
  }
  if (how == "queued") {
    Make();
    Queue(DefaultStream(kCpu0), 2000);
    Queue(NewStream(kCpu1), 2000);
    return 0;
  }
  if (how == "exit") {  // not from main
    Make();
    Queue(DefaultStream(kCpu0), 2000);
    std::exit(0);
  }
  if (how == "across") {
    Make();
    QueueAcross();
    return 0;
  }
  if (how == "bound_of_one") {
    DeviceOptions options;
    options.stream.max_queued_operations = 1;
    options.max_bytes_in_flight = 1;
    Make(options);
    QueueAcross();
    Synchronize(kCpu0);
    Synchronize(kCpu1);
    std::cout << ran << " ran\n";
    return 0;
  }
  if (how == "no_bound") {
    DeviceOptions options;
    options.stream.max_queued_operations = StreamOptions::kLifted;
    Make(options);
    std::atomic<bool> go{false};
    DefaultStream(kCpu0).HostCallback([&go] {
      while (!go) std::this_thread::yield();
    });
    Queue(DefaultStream(kCpu0), 100'000);  // nobody waits for room
    go = true;
    Synchronize(kCpu0);
    std::cout << ran << " ran\n";
    return 0;
  }
  if (how == "poisoned") {
    Make();
    DefaultStream(kCpu0).HostCallback([] { throw std::runtime_error("alas"); });
    const Event event = DefaultStream(kCpu0).Record();
    Queue(DefaultStream(kCpu0), 100);
    while (!event.Query()) std::this_thread::yield();
    return 0;
  }
  if (how == "leftovers") {
    Make();
    // More than fit into the queue that nobody serves any more.
    leftovers.stream = &DefaultStream(kCpu1);
    for (int i = 0; i < 10'000; ++i) {
      leftovers.blocks.push_back(
          Memory(kCpu0).Allocate(1000, DefaultStream(kCpu0)));
      leftovers.blocks.back()->MarkUsedBy(*leftovers.stream);
    }
    Queue(*leftovers.stream, 2000);
    leftovers.event = leftovers.stream->Record();
    return 0;
  }
  if (how == "producers") {  // threads that enqueue to the very end
    Make();
    for (int i = 0; i < 4; ++i) {
      std::thread([] {
        for (;;) Queue(DefaultStream(kCpu0), 1);
      }).detach();
    }
    while (ran < 10'000) std::this_thread::yield();
    return 0;
  }
  if (how == "waiter") {
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
  if (how == "parallel") {  // helpers are at work to the very end
    MakeParallel();
    for (int i = 0; i < 1000; ++i) Spread(DefaultStream(kCpu0));
    Spread(NewStream(kCpu0));
    while (ran < 1000) std::this_thread::yield();
    return 0;
  }
  if (how == "parallel_cores") {
    MakeParallel();
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
  if (how == "exit_in_part") {
    MakeParallel();
    static_cast<CpuStream&>(DefaultStream(kCpu0)).Enqueue(OpLabel("exit"), [] {
      ParallelFor(100, 1, [](std::int64_t, std::int64_t end) {
        if (end == 100) std::exit(3);
      });
    });
    for (;;) std::this_thread::yield();
  }
  if (how == "exit_in_work") {
    Make();
    DefaultStream(kCpu0).HostCallback([] { std::exit(3); });
    for (;;) std::this_thread::yield();
  }
  std::cerr << "unknown: " << how << "\n";
  return 2;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) { return d2l::Run(argc > 1 ? argv[1] : ""); }
