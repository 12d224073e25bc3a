// Shows how a GPU and its driver behave where CUDA's documentation leaves it
// open, but the back end relies on an answer.
//
//   gpu_probe                  # all cases
//   gpu_probe launches         # one
//
// Each case is a process of its own and ends after ten seconds at the latest (a
// minute, where all kernels and cuBLAS are loaded): a call that waits for a
// stalled stream would last for ever. It prints one line per case; "blocked" in
// it is a result, and no error.

#include "tests/gpu_probe.h"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

std::atomic<int> calls_made{0};

void Check(int error) {
  if (error == 0) return;
  std::printf("%s\n", RealCudaApi().ErrorText(error).c_str());
  std::exit(1);
}

void OnAlarm(int) {
  char text[64];
  const int calls = calls_made;
  const int length = calls == 0
                         ? std::snprintf(text, sizeof(text), "blocked\n")
                         : std::snprintf(text, sizeof(text),
                                         "blocked, after %d calls\n", calls);
  if (write(STDOUT_FILENO, text, length) < 0) _exit(2);
  _exit(0);
}

CudaStreamHandle NewStream() {
  CudaStreamHandle stream = nullptr;
  Check(RealCudaApi().CreateStream(&stream));
  return stream;
}

CudaEventHandle NewEvent() {
  CudaEventHandle event = nullptr;
  Check(RealCudaApi().CreateEvent(/*timed=*/true, &event));
  return event;
}

std::uint32_t* NewWords() {
  void* data = nullptr;
  Check(RealCudaApi().AllocatePinned(64, &data));
  std::memset(data, 0, 64);
  return static_cast<std::uint32_t*>(data);
}

// A stalled stream: no work on it makes progress.
CudaStreamHandle StalledStream() {
  const CudaStreamHandle stream = NewStream();
  LaunchNothing(stream);  // so that the kernel is loaded
  Check(cudaStreamSynchronize(stream));
  Check(RealCudaApi().WaitForWord(stream, NewWords(), 1));
  return stream;
}

using Calls = std::vector<std::pair<const char*, std::function<void()>>>;

// Prints how long each of the calls takes, in turn.
void Time(const Calls& calls) {
  for (const auto& [name, call] : calls) {
    std::printf("%s ", name);
    const Timer timer;
    call();
    std::printf("%.1f us; ", 1e-3 * static_cast<double>(timer.Nanos()));
  }
  std::printf("\n");
}

// Calls `call` behind a stall, and prints how long it took.
void Behind(const std::function<void(CudaStreamHandle)>& call) {
  const CudaStreamHandle stream = StalledStream();
  Time({{"", [&] { call(stream); }}});
}

// Enqueues behind a stall until a call blocks.
void Fill(const std::function<void(CudaStreamHandle)>& enqueue) {
  const CudaStreamHandle stream = StalledStream();
  for (; calls_made < 100'000; ++calls_made) enqueue(stream);
  std::printf("not blocked, after %d calls\n", calls_made.load());
}

CudaGraphHandle NewGraph(int kernels) {
  const CudaStreamHandle stream = NewStream();
  CudaGraphHandle graph = nullptr;
  Check(RealCudaApi().BeginCapture(stream));
  for (int i = 0; i < kernels; ++i) LaunchNothing(stream);
  Check(RealCudaApi().EndCapture(stream, &graph));
  return graph;
}

void CallNothing(CudaStreamHandle stream) {
  Check(RealCudaApi().LaunchHostFunction(
      stream, [](void*) {}, nullptr));
}

// Loads cuBLAS, and allocates memory.
void FirstProduct() {
  const Device gpu(DeviceType::kCuda, 0);
  const Tensor a = Ones({1000, 1000}, gpu);
  Synchronize(gpu);
  Behind([&](CudaStreamHandle) {
    MatMul(a, a);
    Synchronize(gpu);
  });
}

void Graphs() {
  const CudaStreamHandle other = NewStream();
  const CudaStreamHandle stalled = StalledStream();
  CudaGraphHandle graph = nullptr;
  Time({{"capture", [&] { graph = NewGraph(8); }},
        {"launch", [&] { Check(RealCudaApi().LaunchGraph(graph, other)); }},
        {"wait", [&] { Check(cudaStreamSynchronize(other)); }},
        {"launch behind the stall",
         [&] { Check(RealCudaApi().LaunchGraph(graph, stalled)); }},
        {"destroy", [&] { Check(RealCudaApi().DestroyGraph(graph)); }}});
}

// Shows whether a copy queued behind a stall keeps others from the copy engine.
void Copies() {
  constexpr std::size_t kBytes = 1 << 20;
  void *device = nullptr, *host = nullptr;
  Check(RealCudaApi().Allocate(2 * kBytes, &device));
  Check(RealCudaApi().AllocatePinned(2 * kBytes, &host));
  const CudaStreamHandle other = NewStream();
  const CudaStreamHandle stalled = StalledStream();
  const auto copy = [&](void* to, const void* from, CudaStreamHandle stream) {
    Check(RealCudaApi().CopyAsync(to, from, kBytes, stream));
    if (stream == other) Check(cudaStreamSynchronize(other));
  };
  char* const second = static_cast<char*>(device) + kBytes;
  Time(
      {{"to the device behind the stall", [&] { copy(device, host, stalled); }},
       {"to it on another stream", [&] { copy(second, host, other); }},
       {"from it", [&] { copy(host, second, other); }},
       {"within it", [&] { copy(device, second, other); }}});
}

// Shows what a thread can do while another one is blocked by a full queue.
void BesideAFullQueue() {
  const CudaStreamHandle other = NewStream();
  const CudaEventHandle event = NewEvent();
  Check(cudaEventRecord(event, other));
  const CudaStreamHandle stalled = StalledStream();
  std::thread([stalled] {
    Check(cudaSetDevice(0));
    for (;; ++calls_made) LaunchNothing(stalled);
  }).detach();
  for (int before = -1; before != calls_made;) {
    before = calls_made;
    sleep(1);
  }
  Time({{"cudaEventQuery", [&] { cudaEventQuery(event); }},
        {"launch", [&] { LaunchNothing(other); }},
        {"wait", [&] { Check(cudaStreamSynchronize(other)); }},
        {"new stream", [&] { NewStream(); }}});
}

void DestroyStreams() {
  const CudaStreamHandle idle = NewStream();
  const CudaStreamHandle stalled = StalledStream();
  Time({{"idle", [&] { Check(RealCudaApi().DestroyStream(idle)); }},
        {"stalled", [&] { Check(RealCudaApi().DestroyStream(stalled)); }}});
}

// Checks the claim that a host function takes many entries of the queue.
void FortyPairs() {
  const CudaStreamHandle other = NewStream();
  const CudaEventHandle event = NewEvent();
  const CudaStreamHandle stalled = StalledStream();
  for (; calls_made < 40; ++calls_made) {
    CallNothing(stalled);
    Check(cudaEventRecord(event, stalled));
  }
  Time({{"launch on another stream", [&] { LaunchNothing(other); }},
        {"wait", [&] { Check(cudaStreamSynchronize(other)); }}});
}

// Threads of the GPU and the host compare and set a word of page-locked memory.
void Claims() {
  constexpr int kRounds = 1000;
  const CudaStreamHandle stream = NewStream();
  std::uint32_t* const words = NewWords();
  int wrong = 0, by_host = 0;
  for (int round = 0; round < kRounds; ++round) {
    words[0] = words[1] = 0;
    LaunchClaims(stream, words);
    for (const Timer timer; timer.Nanos() < round * 20;) {
    }
    std::uint32_t zero = 0;
    const bool host = __atomic_compare_exchange_n(
        words, &zero, 1, /*weak=*/false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    Check(cudaStreamSynchronize(stream));
    by_host += host ? 1 : 0;
    wrong += words[1] + (host ? 1 : 0) == 1 ? 0 : 1;
  }
  std::printf("%d of %d not claimed once; the host claimed %d\n", wrong,
              kRounds, by_host);
}

void Start() {
  const Timer timer;
  const auto millis = [&timer] {
    return 1e-6 * static_cast<double>(timer.Nanos());
  };
  const Device gpu(DeviceType::kCuda, 0);
  Synchronize(gpu);
  const double started = millis();
  std::size_t free_before = 0, free = 0, total = 0;
  Check(cudaMemGetInfo(&free_before, &total));
  const Tensor a = Ones({1000, 1000}, gpu);
  Synchronize(gpu);
  const double filled = millis();
  MatMul(a, a);
  Synchronize(gpu);
  const double product = millis();
  Check(cudaMemGetInfo(&free, &total));
  std::printf(
      "devices %.0f ms, %zu MiB taken; first kernel %.1f ms; first product "
      "%.1f ms; both took %zu MiB\n",
      started, (total - free_before) >> 20, filled - started, product - filled,
      (free_before - free) >> 20);
}

void Aliases() {
  StalledStream();
  std::vector<std::pair<CudaStreamHandle, CudaEventHandle>> others;
  for (int i = 0; i < 40; ++i) {
    others.emplace_back(NewStream(), NewEvent());
    LaunchNothing(others.back().first);
    Check(cudaEventRecord(others.back().second, others.back().first));
  }
  sleep(1);
  std::string behind;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (cudaEventQuery(others[i].second) == cudaErrorNotReady) {
      behind += " " + std::to_string(i);
    }
  }
  std::printf("of 40 streams behind the stalled one:%s\n",
              behind.empty() ? " none" : behind.c_str());
}

void Costs() {
  const CudaStreamHandle stream = NewStream();
  const CudaEventHandle event = NewEvent();
  void *from = nullptr, *to = nullptr;
  Check(cudaMalloc(&from, 4096));
  Check(cudaMalloc(&to, 4096));
  const Calls calls = {
      {"cudaSetDevice", [] { cudaSetDevice(0); }},
      {"launch", [stream] { LaunchNothing(stream); }},
      {"cudaGetLastError", [] { cudaGetLastError(); }},
      {"cudaEventRecord", [=] { cudaEventRecord(event, stream); }},
      {"cudaEventQuery", [=] { cudaEventQuery(event); }},
      {"record and synchronize",
       [=] {
         cudaEventRecord(event, stream);
         cudaEventSynchronize(event);
       }},
      {"cudaStreamSynchronize", [=] { cudaStreamSynchronize(stream); }},
      {"copy of 4 KiB within the device",
       [=] { Check(RealCudaApi().CopyAsync(to, from, 4096, stream)); }},
      {"host function", [=] { CallNothing(stream); }},
      {"graph of 1",
       [=, graph = NewGraph(1)] { RealCudaApi().LaunchGraph(graph, stream); }},
      {"graph of 8",
       [=, graph = NewGraph(8)] { RealCudaApi().LaunchGraph(graph, stream); }},
      {"graph of 64",
       [=, graph = NewGraph(64)] { RealCudaApi().LaunchGraph(graph, stream); }},
  };
  for (const auto& [name, call] : calls) {
    constexpr int kCalls = 500;
    std::int64_t best = 0;
    for (int round = 0; round < 5; ++round) {
      Check(cudaStreamSynchronize(stream));
      const Timer timer;
      for (int i = 0; i < kCalls; ++i) call();
      const std::int64_t nanos = timer.Nanos() / kCalls;
      best = round == 0 || nanos < best ? nanos : best;
    }
    std::printf("%s %d ns; ", name, static_cast<int>(best));
  }
  std::printf("\n");
}

// The clock of CudaGpu may be read after the events that it dates.
void TimeBackwards() {
  const CudaStreamHandle stream = NewStream();
  const CudaEventHandle first = NewEvent(), second = NewEvent();
  Check(cudaEventRecord(first, stream));
  usleep(10'000);
  Check(cudaEventRecord(second, stream));
  Check(cudaStreamSynchronize(stream));
  float millis = 0;
  Check(cudaEventElapsedTime(&millis, second, first));
  std::printf("%.3f ms; it should be about -10\n", static_cast<double>(millis));
}

const Calls& Cases() {
  using Stream = CudaStreamHandle;
  static void* data = nullptr;
  static const auto& cases = *new Calls{
      {"start_EAGER", Start},
      {"start_LAZY", Start},
      {"stalled_cudaMalloc",
       [] { Behind([](Stream) { Check(cudaMalloc(&data, 1 << 20)); }); }},
      {"stalled_cudaMalloc_and_cudaFree",
       [] {
         Behind([](Stream) {
           Check(cudaMalloc(&data, 1 << 20));
           Check(cudaFree(data));
         });
       }},
      {"stalled_cudaHostAlloc",
       [] { Behind([](Stream) { Check(cudaHostAlloc(&data, 1 << 20, 0)); }); }},
      {"stalled_new_stream", [] { Behind([](Stream) { NewStream(); }); }},
      {"stalled_new_event", [] { Behind([](Stream) { NewEvent(); }); }},
      {"stalled_destroy_stream", DestroyStreams},
      {"stalled_first_product", FirstProduct},
      {"stalled_graph", Graphs},
      {"stalled_copy", Copies},
      {"stalled_forty_pairs", FortyPairs},
      {"kernels", [] { Fill(LaunchNothing); }},
      {"kernels_and_two_timed_events",
       [] {
         const CudaEventHandle begin = NewEvent(), end = NewEvent();
         Fill([=](Stream stream) {
           Check(cudaEventRecord(begin, stream));
           LaunchNothing(stream);
           Check(cudaEventRecord(end, stream));
         });
       }},
      {"host_functions", [] { Fill(CallNothing); }},
      {"host_functions_and_events",
       [] {
         const CudaEventHandle event = NewEvent();
         Fill([=](Stream stream) {
           CallNothing(stream);
           Check(cudaEventRecord(event, stream));
         });
       }},
      {"beside_a_full_queue", BesideAFullQueue},
      {"claims", Claims},
      {"aliases", Aliases},
      {"costs", Costs},
      {"time_backwards", TimeBackwards},
  };
  return cases;
}

int RunAll(const char* program, const char* only) {
  int failed = 0;
  for (const auto& [name, function] : Cases()) {
    if (only != nullptr && std::strcmp(only, name) != 0) continue;
    std::printf("%-34s ", name);
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const char* const mode = std::strstr(name, "LAZY") ? "LAZY" : "EAGER";
      setenv("CUDA_MODULE_LOADING", mode, /*overwrite=*/1);
      setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
      execl("/proc/self/exe", program, "--case", name, nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      ++failed;
      std::printf("ended with status %d\n", status);
    }
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  if (argc < 3) return d2l::RunAll(argv[0], argc == 2 ? argv[1] : nullptr);
  for (const auto& [name, function] : d2l::Cases()) {
    if (std::strcmp(argv[2], name) != 0) continue;
    // Keeps the output of a case that is blocked later.
    std::setvbuf(stdout, nullptr, _IONBF, 0);
    std::signal(SIGALRM, d2l::OnAlarm);
    const bool starts = std::strncmp(name, "start", 5) == 0;
    alarm(starts || std::strcmp(name, "stalled_first_product") == 0 ? 60 : 10);
    if (!starts) d2l::Check(cudaSetDevice(0));
    function();
    _exit(0);  // a stalled stream is not waited for
  }
  return 2;
}
