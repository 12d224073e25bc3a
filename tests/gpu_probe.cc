// What a GPU and its driver do where CUDA's documentation leaves it open, and
// where the back end relies on an answer.
//
//   gpu_probe                  # all cases
//   gpu_probe launches         # one
//
// Each case is a process of its own and ends after ten seconds at the latest: a
// call that waits for a stalled stream would last for ever. It prints one line
// per case; "blocked" in it is a result, and no error.

#include "tests/gpu_probe.h"

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/timer.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

volatile int calls_made = 0;

void Check(int error) {
  if (error == 0) return;
  std::printf("%s\n", RealCudaApi().ErrorText(error).c_str());
  std::exit(1);
}

void OnAlarm(int) {
  char text[64];
  const int length = std::snprintf(text, sizeof(text),
                                   "blocked, after %d calls\n", calls_made);
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

// A stream on which nothing goes on, until *word is 1.
CudaStreamHandle StalledStream(std::uint32_t** word) {
  const CudaStreamHandle stream = NewStream();
  LaunchNothing(stream);  // so that the kernel is loaded
  Check(cudaStreamSynchronize(stream));
  void* data = nullptr;
  Check(RealCudaApi().AllocatePinned(64, &data));
  *word = static_cast<std::uint32_t*>(data);
  **word = 0;
  Check(RealCudaApi().WaitForWord(stream, *word, 1));
  return stream;
}

// Calls `call` behind a stall, and says how long it took.
void Behind(const std::function<void(CudaStreamHandle)>& call) {
  std::uint32_t* word = nullptr;
  const CudaStreamHandle stream = StalledStream(&word);
  const Timer timer;
  call(stream);
  std::printf("%.1f us\n", 1e-3 * static_cast<double>(timer.Nanos()));
}

// Enqueues behind a stall until a call blocks.
void Fill(const std::function<void(CudaStreamHandle)>& enqueue) {
  std::uint32_t* word = nullptr;
  const CudaStreamHandle stream = StalledStream(&word);
  for (; calls_made < 100'000; calls_made = calls_made + 1) enqueue(stream);
  std::printf("not blocked, after %d calls\n", calls_made);
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
  std::uint32_t* word = nullptr;
  StalledStream(&word);
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
  const std::pair<const char*, std::function<void()>> calls[] = {
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

const std::vector<std::pair<const char*, std::function<void()>>>& Cases() {
  using Stream = CudaStreamHandle;
  static void* data = nullptr;
  static const auto& cases =
      *new std::vector<std::pair<const char*, std::function<void()>>>{
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
           [] {
             Behind([](Stream) { Check(cudaHostAlloc(&data, 1 << 20, 0)); });
           }},
          {"stalled_new_stream", [] { Behind([](Stream) { NewStream(); }); }},
          {"stalled_new_event", [] { Behind([](Stream) { NewEvent(); }); }},
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
          {"host_functions",
           [] {
             Fill([](Stream stream) {
               Check(cudaLaunchHostFunc(
                   stream, [](void*) {}, nullptr));
             });
           }},
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
    std::signal(SIGALRM, d2l::OnAlarm);
    alarm(10);
    if (std::strncmp(name, "start", 5) != 0) d2l::Check(cudaSetDevice(0));
    function();
    std::fflush(stdout);
    _exit(0);  // a stalled stream is not waited for
  }
  return 2;
}
