#include "common/device/cuda/fake/fake_cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/timer.h"
#include "common/device/cuda/cuda_errors.h"

namespace d2l {
namespace {

thread_local int current_gpu = -1;  // none
thread_local int launch_error = 0;
thread_local bool in_host_function = false;

// Allows or forbids this thread the access to all GPUs' memory, while it lives.
// Threads have no access at first.
class GpuMemoryAccess {
 public:
  // Negative if there are no protection keys.
  static int Key() {
    static const int key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    return key;
  }

  explicit GpuMemoryAccess(bool open)
      : before_(Key() < 0 ? 0 : pkey_get(Key())) {
    Set(open ? 0 : PKEY_DISABLE_ACCESS);
  }
  ~GpuMemoryAccess() { Set(before_); }
  GpuMemoryAccess(const GpuMemoryAccess&) = delete;
  GpuMemoryAccess& operator=(const GpuMemoryAccess&) = delete;

 private:
  static void Set(int rights) {
    if (Key() >= 0) pkey_set(Key(), static_cast<unsigned>(rights));
  }

  const int before_;
};

// How much of a stream's queue a host function takes.
constexpr std::size_t kHostFunctionEntries = 17;

// Pages for so many bytes, and one more that nobody may use: what lies behind
// an allocation is not another one.
constexpr std::size_t kPage = 4096;
std::size_t MappedBytes(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage + kPage;
}

// Addresses that nobody may use; at `at`, where others were, unless it is null.
void* MapNothing(void* at, std::size_t bytes) {
  return mmap(at, MappedBytes(bytes), PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                  (at == nullptr ? 0 : MAP_FIXED),
              -1, 0);
}

// Each GPU's clock starts at another time.
std::int64_t ClockOf(int gpu) { return NowNanos() + gpu * 7'000'000'000; }

}  // namespace

FakeCuda::FakeCuda(const Options& options)
    : options_(options), lost_(options.gpus), used_(options.gpus) {}

FakeCuda::~FakeCuda() {
  for (const auto& stream : streams_) {
    Lock lock(mutex_);
    Stop(*stream, lock);
  }
  for (const auto& [data, block] : blocks_) {
    munmap(reinterpret_cast<void*>(data), MappedBytes(block.bytes));
  }
}

int FakeCuda::Enter(const char* function, int gpu) {
  ++calls_[function];
  ++calls_[""];
  if (in_host_function) {
    violations_.push_back(absl::StrCat(function, " in a host function"));
    return kCudaNotPermitted;
  }
  if (unloaded_) return kCudaCudartUnloading;
  const auto it = fail_next_.find(function);
  if (it != fail_next_.end()) {
    const int error = it->second;
    fail_next_.erase(it);
    return error;
  }
  return gpu == kHost ? 0 : lost_[gpu];
}

int FakeCuda::EnterOn(const char* function, const Stream& stream) {
  const int error = Enter(function, stream.gpu);
  if (error != 0 || stream.capture == nullptr) return error;
  return stream.capture->spoiled ? kCudaStreamCaptureInvalidated : 0;
}

int FakeCuda::EnterFor(const char* function, const Event& event) {
  const int error = Enter(function, event.gpu);
  if (error != 0 || event.captured_in == nullptr) return error;
  event.captured_in->spoiled = true;
  return kCudaCapturedEvent;
}

int FakeCuda::EnterCurrent(const char* function) {
  if (current_gpu >= 0) return Enter(function, current_gpu);
  violations_.push_back(absl::StrCat(function, " without a current device"));
  return kCudaInvalidResourceHandle;
}

// ---- Streams.

int FakeCuda::SwitchDevice(int gpu) {
  Lock lock(mutex_);
  if (const int error = Enter("SetDevice", kHost)) return error;
  if (gpu < 0 || gpu >= options_.gpus) return kCudaInvalidValue;
  current_gpu = gpu;
  return lost_[gpu];
}

int FakeCuda::CreateStream(CudaStreamHandle* stream) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("CreateStream")) return error;
  WaitForWork(lock, "cudaStreamCreate", current_gpu);
  auto made = std::make_unique<Stream>();
  made->gpu = current_gpu;
  made->queue = static_cast<int>(streams_.size()) % options_.hardware_queues;
  made->thread = std::thread([this, s = made.get()] { Serve(*s); });
  *stream = reinterpret_cast<CudaStreamHandle>(made.get());
  streams_.push_back(std::move(made));
  return 0;
}

int FakeCuda::DestroyStream(CudaStreamHandle handle) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  if (const int error = Enter("DestroyStream", stream.gpu)) return error;
  if (stream.capture != nullptr) {
    violations_.push_back("a stream destroyed while it is captured");
  }
  Stop(stream, lock);
  return 0;
}

void FakeCuda::Stop(Stream& stream, Lock& lock) {
  stream.closing = true;
  changed_.notify_all();
  lock.unlock();
  if (stream.thread.joinable()) stream.thread.join();
  lock.lock();
}

void FakeCuda::Serve(Stream& stream) {
  const GpuMemoryAccess access(/*open=*/true);
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] {
      if (stream.work.empty()) return stream.closing;
      return lost_[stream.gpu] != 0 || !SharesStalledQueue(stream);
    });
    if (lost_[stream.gpu] != 0) {
      stream.work.clear();
      stream.entries = 0;
      stream.done = stream.pushed;
      changed_.notify_all();
    }
    if (stream.work.empty()) {
      if (stream.closing) return;
      continue;
    }
    const Work work = std::move(stream.work.front());
    stream.work.pop_front();
    lock.unlock();
    work.run();
    lock.lock();
    stream.entries -= work.entries;
    ++stream.done;
    changed_.notify_all();
  }
}

bool FakeCuda::SharesStalledQueue(const Stream& stream) const {
  return std::any_of(streams_.begin(), streams_.end(), [&](const auto& other) {
    return other.get() != &stream && other->stalled &&
           other->queue == stream.queue;
  });
}

void FakeCuda::Push(Lock& lock, Stream& stream, std::function<void()> work,
                    std::size_t entries) {
  if (stream.capture != nullptr) {
    stream.capture->work.push_back(std::move(work));
    return;
  }
  constexpr char kCall[] = "a call that enqueues";
  WaitUntil(lock, kCall, [&] { return !no_room_; });
  const auto has_room = [&] {
    return stream.entries + entries <= options_.most_queued ||
           lost_[stream.gpu] != 0;
  };
  if (!has_room()) {
    ++waits_for_room_;
    no_room_ = true;
    WaitUntil(lock, kCall, has_room);
    no_room_ = false;
  }
  if (stream.closing) violations_.push_back("work on a destroyed stream");
  ++stream.pushed;
  stream.entries += entries;
  stream.work.push_back({std::move(work), entries});
  changed_.notify_all();
}

void FakeCuda::WaitUntil(Lock& lock, const char* what,
                         const std::function<bool()>& ready) {
  if (changed_.wait_for(lock, std::chrono::seconds(30), ready)) return;
  std::fprintf(stderr,
               "FakeCuda: %s has waited for 30 s. On a GPU it might for ever; "
               "is a stream stalled?\n",
               what);
  std::abort();
}

void FakeCuda::WaitForWork(Lock& lock, const char* what, int gpu) {
  std::vector<std::pair<const Stream*, std::uint64_t>> behind;
  for (const auto& stream : streams_) {
    if (gpu == kHost || stream->gpu == gpu) {
      behind.emplace_back(stream.get(), stream->pushed);
    }
  }
  WaitUntil(lock, what, [&] {
    return std::all_of(behind.begin(), behind.end(), [&](const auto& one) {
      return one.first->done >= one.second || lost_[one.first->gpu] != 0;
    });
  });
}

int FakeCuda::CheckCurrent(const char* function, int gpu) {
  if (gpu == current_gpu) return 0;
  violations_.push_back(absl::StrCat(function, " with another current device"));
  return kCudaInvalidResourceHandle;
}

void FakeCuda::LaunchKernel(CudaStreamHandle handle,
                            std::function<void()> kernel) {
  ++internal::kernels_launched;
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  int error = EnterOn("LaunchKernel", stream);
  if (error == 0) error = CheckCurrent("LaunchKernel", stream.gpu);
  if (error != 0) {
    launch_error = error;
    return;
  }
  Push(lock, stream, std::move(kernel));
}

int FakeCuda::TakeLaunchError() {
  Lock lock(mutex_);
  const int taken = std::exchange(launch_error, 0);
  const int error = EnterCurrent("TakeLaunchError");
  return error != 0 ? error : taken;
}

int FakeCuda::LaunchHostFunction(CudaStreamHandle handle,
                                 void (*function)(void*), void* data) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  if (const int error = EnterOn("LaunchHostFunction", stream)) return error;
  Push(
      lock, stream,
      [this, function, data] {
        Lock one_at_a_time(host_functions_, std::defer_lock);
        if (options_.serial_host_functions) one_at_a_time.lock();
        const GpuMemoryAccess no_access(/*open=*/false);
        in_host_function = true;
        function(data);
        in_host_function = false;
      },
      kHostFunctionEntries);
  return 0;
}

bool FakeCuda::IsPinned(const void* data, std::size_t bytes, const char* use) {
  const Block* const block = Find(data, bytes);
  if (block != nullptr && block->gpu == kHost) return true;
  violations_.push_back(std::string(use) + " that is not in pinned memory");
  return false;
}

int FakeCuda::WaitForWord(CudaStreamHandle handle, const std::uint32_t* word,
                          std::uint32_t least) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  if (const int error = EnterOn("WaitForWord", stream)) return error;
  if (!IsPinned(word, sizeof(*word), "a wait for a word"))
    return kCudaInvalidValue;
  Push(lock, stream, [this, word, least, &stream] {
    // Polls again and again, as a GPU does.
    const auto reached = [&] {
      return static_cast<std::int32_t>(__atomic_load_n(word, __ATOMIC_ACQUIRE) -
                                       least) >= 0;
    };
    const auto lost = [&] {
      Lock looking(mutex_);
      stream.stalled = true;
      return lost_[stream.gpu] != 0;
    };
    while (!reached() && !lost()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    Lock going_on(mutex_);
    stream.stalled = false;
  });
  // If no work is before it, the stream is stalled from now on: other streams
  // of its queue must not run before its thread has begun.
  if (stream.capture == nullptr && stream.pushed - stream.done == 1) {
    stream.stalled = true;
  }
  return 0;
}

int FakeCuda::WriteWord(CudaStreamHandle handle, std::uint64_t* word,
                        std::uint64_t value) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  if (const int error = EnterOn("WriteWord", stream)) return error;
  if (const int error = CheckCurrent("WriteWord", stream.gpu)) return error;
  if (!IsPinned(word, sizeof(*word), "a write of a word"))
    return kCudaInvalidValue;
  Push(lock, stream, [word, value] { *word = value; });
  return 0;
}

void FakeCuda::Crash(int gpu, int error) {
  Lock lock(mutex_);
  lost_[gpu] = error;
  changed_.notify_all();
}

void FakeCuda::FailNext(const std::string& function, int error) {
  Lock lock(mutex_);
  fail_next_[function] = error;
}

void FakeCuda::Unload() {
  Lock lock(mutex_);
  unloaded_ = true;
  changed_.notify_all();
}

// ---- Graphs.

int FakeCuda::BeginCapture(CudaStreamHandle handle) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  if (const int error = EnterOn("BeginCapture", stream)) return error;
  if (stream.capture != nullptr) return kCudaIllegalState;
  stream.capture = std::make_shared<Graph>(Graph{stream.gpu, false, {}});
  return 0;
}

int FakeCuda::EndCapture(CudaStreamHandle handle, CudaGraphHandle* graph) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(handle);
  const std::shared_ptr<Graph> made = std::exchange(stream.capture, nullptr);
  if (const int error = Enter("EndCapture", stream.gpu)) return error;
  if (made == nullptr) return kCudaIllegalState;
  if (made->spoiled) return kCudaStreamCaptureInvalidated;
  WaitForWork(lock, "cudaGraphInstantiate", stream.gpu);
  *graph = reinterpret_cast<CudaGraphHandle>(made.get());
  graphs_[*graph] = made;
  return 0;
}

int FakeCuda::LaunchGraph(CudaGraphHandle handle, CudaStreamHandle on) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(on);
  if (const int error = EnterOn("LaunchGraph", stream)) return error;
  if (const int error = CheckCurrent("LaunchGraph", stream.gpu)) return error;
  const auto it = graphs_.find(handle);
  if (it == graphs_.end() || it->second->gpu != stream.gpu) {
    violations_.push_back("a launch of a graph that the GPU does not have");
    return kCudaInvalidValue;
  }
  // The work keeps the graph alive, if that is destroyed meanwhile.
  Push(lock, stream, [graph = it->second] {
    for (const auto& work : graph->work) work();
  });
  return 0;
}

int FakeCuda::DestroyGraph(CudaGraphHandle handle) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("DestroyGraph")) return error;
  if (graphs_.erase(handle) == 1) return 0;
  violations_.push_back("a graph destroyed that is not there");
  return kCudaInvalidValue;
}

// ---- Events.

int FakeCuda::CreateEvent(bool timed, CudaEventHandle* event) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("CreateEvent")) return error;
  events_.push_back(
      std::make_unique<Event>(Event{current_gpu, timed, nullptr, nullptr}));
  *event = reinterpret_cast<CudaEventHandle>(events_.back().get());
  return 0;
}

int FakeCuda::RecordEvent(CudaEventHandle handle, CudaStreamHandle on) {
  Lock lock(mutex_);
  auto& event = *reinterpret_cast<Event*>(handle);
  auto& stream = *reinterpret_cast<Stream*>(on);
  if (const int error = EnterOn("RecordEvent", stream)) return error;
  if (const int error = CheckCurrent("RecordEvent", stream.gpu)) return error;
  if (event.gpu != stream.gpu) {
    violations_.push_back("an event recorded on another device's stream");
    return kCudaInvalidResourceHandle;
  }
  event.captured_in = stream.capture;
  if (stream.capture != nullptr) return 0;  // it only orders work
  auto point = std::make_shared<Point>();
  point->gpu = stream.gpu;
  event.latest = point;
  Push(lock, stream, [this, point] {
    Lock done_lock(mutex_);
    point->nanos = ClockOf(point->gpu);
    point->done = true;
    changed_.notify_all();
  });
  return 0;
}

int FakeCuda::QueryEvent(CudaEventHandle handle) {
  Lock lock(mutex_);
  const auto& event = *reinterpret_cast<Event*>(handle);
  if (const int error = EnterFor("QueryEvent", event)) return error;
  if (const int error = CheckCurrent("QueryEvent", event.gpu)) return error;
  return event.latest == nullptr || event.latest->done ? 0 : kCudaNotReady;
}

int FakeCuda::SynchronizeEvent(CudaEventHandle handle) {
  Lock lock(mutex_);
  const auto& event = *reinterpret_cast<Event*>(handle);
  if (const int error = EnterFor("SynchronizeEvent", event)) return error;
  if (const int error = CheckCurrent("SynchronizeEvent", event.gpu)) {
    return error;
  }
  const std::shared_ptr<Point> point = event.latest;
  if (point == nullptr) return 0;
  changed_.wait(
      lock, [&] { return point->done || lost_[point->gpu] != 0 || unloaded_; });
  if (unloaded_) return kCudaCudartUnloading;
  return lost_[point->gpu];
}

int FakeCuda::WaitEvent(CudaStreamHandle on, CudaEventHandle handle) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(on);
  const auto& event = *reinterpret_cast<Event*>(handle);
  if (const int error = EnterOn("WaitEvent", stream)) return error;
  if (event.captured_in != stream.capture) {
    for (const auto& capture : {event.captured_in, stream.capture}) {
      if (capture != nullptr) capture->spoiled = true;
    }
    return kCudaStreamCaptureIsolation;
  }
  const std::shared_ptr<Point> point = event.latest;
  if (point == nullptr || stream.capture != nullptr) return 0;
  Push(lock, stream, [this, point] {
    Lock waiting(mutex_);
    changed_.wait(waiting,
                  [&] { return point->done || lost_[point->gpu] != 0; });
  });
  return 0;
}

int FakeCuda::ElapsedMillis(CudaEventHandle begin_handle,
                            CudaEventHandle end_handle, float* millis) {
  Lock lock(mutex_);
  const auto& begin = *reinterpret_cast<Event*>(begin_handle);
  const auto& end = *reinterpret_cast<Event*>(end_handle);
  if (const int error = Enter("ElapsedMillis", end.gpu)) return error;
  if (const int error = CheckCurrent("ElapsedMillis", end.gpu)) return error;
  if (begin.gpu != end.gpu || !begin.timed || !end.timed ||
      begin.latest == nullptr || end.latest == nullptr) {
    violations_.push_back("the time between events that have none");
    return kCudaInvalidResourceHandle;
  }
  if (!begin.latest->done || !end.latest->done) return kCudaNotReady;
  *millis = static_cast<float>(
      1e-6 * static_cast<double>(end.latest->nanos - begin.latest->nanos));
  return 0;
}

// ---- Memory.

const FakeCuda::Block* FakeCuda::Find(const void* data, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(data);
  auto it = blocks_.upper_bound(start);
  if (it == blocks_.begin()) return nullptr;
  --it;
  return start + bytes <= it->first + it->second.bytes ? &it->second : nullptr;
}

int FakeCuda::CopyAsync(void* dst, const void* src, std::size_t bytes,
                        CudaStreamHandle on) {
  Lock lock(mutex_);
  auto& stream = *reinterpret_cast<Stream*>(on);
  if (const int error = EnterOn("CopyAsync", stream)) return error;
  const bool from_pageable = Find(src, bytes) == nullptr;
  const bool to_pageable = Find(dst, bytes) == nullptr;
  calls_["pageable copies"] += from_pageable || to_pageable;
  if (stream.capture != nullptr && (from_pageable || to_pageable)) {
    stream.capture->spoiled = true;
    return kCudaStreamCaptureUnsupported;
  }
  if (from_pageable) {
    const auto* const from = static_cast<const char*>(src);
    Push(lock, stream, [dst, staged = std::vector<char>(from, from + bytes)] {
      std::memcpy(dst, staged.data(), staged.size());
    });
  } else {
    Push(lock, stream, [dst, src, bytes] { std::memcpy(dst, src, bytes); });
  }
  if (!to_pageable) return 0;
  auto done = std::make_shared<bool>(false);
  Push(lock, stream, [this, done] {
    Lock done_lock(mutex_);
    *done = true;
    changed_.notify_all();
  });
  changed_.wait(lock, [&] { return *done || lost_[stream.gpu] != 0; });
  return lost_[stream.gpu];
}

int FakeCuda::AllocateBlock(std::size_t bytes, int gpu, void** data) {
  constexpr int kReadAndWrite = PROT_READ | PROT_WRITE;
  *data = MapNothing(nullptr, bytes);
  if (*data == MAP_FAILED) return kCudaMemoryAllocation;
  const int key = gpu == kHost ? -1 : GpuMemoryAccess::Key();
  // With the key -1 it is mprotect.
  if (pkey_mprotect(*data, MappedBytes(bytes) - kPage, kReadAndWrite, key)) {
    munmap(*data, MappedBytes(bytes));
    return kCudaMemoryAllocation;
  }
  blocks_[reinterpret_cast<std::uintptr_t>(*data)] = {bytes, gpu};
  return 0;
}

int FakeCuda::FreeBlock(void* data, bool pinned) {
  const auto it = blocks_.find(reinterpret_cast<std::uintptr_t>(data));
  if (it == blocks_.end() || (it->second.gpu == kHost) != pinned) {
    violations_.push_back("memory freed that was not allocated");
    return kCudaInvalidValue;
  }
  if (!pinned) used_[it->second.gpu] -= it->second.bytes;
  // The addresses stay taken, so that a use after this is found.
  MapNothing(data, it->second.bytes);
  blocks_.erase(it);
  return 0;
}

bool FakeCuda::GuardsMemory() { return GpuMemoryAccess::Key() >= 0; }

bool FakeCuda::IsReachable(const void* data, std::size_t bytes) {
  Lock lock(mutex_);
  return Find(data, bytes) != nullptr;
}

std::pair<const void*, std::size_t> FakeCuda::BlockOf(const void* address) {
  Lock lock(mutex_);
  auto it = blocks_.upper_bound(reinterpret_cast<std::uintptr_t>(address));
  if (it == blocks_.begin() || Find(address, 1) == nullptr) return {nullptr, 0};
  --it;
  return {reinterpret_cast<const void*>(it->first), it->second.bytes};
}

bool FakeCuda::MayUse(int gpu, const void* address) {
  Lock lock(mutex_);
  const Block* const block = Find(address, 1);
  return block != nullptr && (block->gpu == kHost || block->gpu == gpu ||
                              peers_.count({gpu, block->gpu}) != 0);
}

int FakeCuda::Allocate(std::size_t bytes, void** data) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("Allocate")) return error;
  WaitForWork(lock, "cudaMalloc", current_gpu);
  if (bytes > options_.memory_bytes - used_[current_gpu]) {
    return kCudaMemoryAllocation;
  }
  const int error = AllocateBlock(bytes, current_gpu, data);
  if (error == 0) used_[current_gpu] += bytes;
  return error;
}

int FakeCuda::Free(void* data) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("Free")) return error;
  WaitForWork(lock, "cudaFree", current_gpu);
  return FreeBlock(data, /*pinned=*/false);
}

int FakeCuda::AllocatePinned(std::size_t bytes, void** data) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("AllocatePinned")) return error;
  WaitForWork(lock, "cudaHostAlloc", kHost);
  return AllocateBlock(bytes, kHost, data);
}

int FakeCuda::FreePinned(void* data) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("FreePinned")) return error;
  WaitForWork(lock, "cudaFreeHost", kHost);
  return FreeBlock(data, /*pinned=*/true);
}

int FakeCuda::MemoryInfo(std::size_t* free, std::size_t* total) {
  Lock lock(mutex_);
  if (const int error = EnterCurrent("MemoryInfo")) return error;
  *total = options_.memory_bytes;
  *free = options_.memory_bytes - used_[current_gpu];
  return 0;
}

int FakeCuda::EnablePeerAccess(int gpu, int peer) {
  Lock lock(mutex_);
  if (const int error = Enter("EnablePeerAccess", gpu)) return error;
  if (!options_.peers) return 0;
  if (!peers_.insert({gpu, peer}).second) {
    violations_.push_back("peer access enabled twice");
  }
  return 0;
}

std::string FakeCuda::ErrorText(int error) {
  switch (error) {
    case kCudaIllegalAddress:
      return "cudaErrorIllegalAddress: an illegal memory access was "
             "encountered";
    case kCudaMemoryAllocation:
      return "cudaErrorMemoryAllocation: out of memory";
    default:
      return absl::StrCat("error ", error);
  }
}

// ---- For tests.

std::int64_t FakeCuda::waits_for_room() {
  Lock lock(mutex_);
  return waits_for_room_;
}

std::int64_t FakeCuda::Calls(const std::string& function) {
  Lock lock(mutex_);
  return calls_[function];
}

std::set<std::pair<int, int>> FakeCuda::peers() {
  Lock lock(mutex_);
  return peers_;
}

std::vector<std::string> FakeCuda::violations() {
  Lock lock(mutex_);
  return violations_;
}

}  // namespace d2l
