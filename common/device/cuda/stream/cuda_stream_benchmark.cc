// The cost that the stream adds to CUDA's own calls, measured with a CUDA that
// does nothing: it runs without a GPU, and says nothing about a GPU.

#include <cstddef>
#include <new>
#include <string>

#include "benchmark/benchmark.h"
#include "common/base/source_location.h"
#include "common/device/backend.h"
#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/device.h"
#include "common/device/op_label.h"

namespace d2l {
namespace {

// Every call succeeds and every event is done at once.
class NoOpCuda final : public CudaApi {
 public:
  int CreateStream(CudaStreamHandle* stream) override {
    *stream = nullptr;
    return 0;
  }
  int DestroyStream(CudaStreamHandle) override { return 0; }
  int CreateEvent(bool, CudaEventHandle* event) override {
    // The handle is only compared with null.
    *event = reinterpret_cast<CudaEventHandle>(this);
    return 0;
  }
  int RecordEvent(CudaEventHandle, CudaStreamHandle) override { return 0; }
  int QueryEvent(CudaEventHandle) override { return 0; }
  int SynchronizeEvent(CudaEventHandle) override { return 0; }
  int WaitEvent(CudaStreamHandle, CudaEventHandle) override { return 0; }
  int ElapsedMillis(CudaEventHandle, CudaEventHandle, float*) override {
    return 0;
  }
  int CopyAsync(void*, const void*, std::size_t, CudaStreamHandle) override {
    return 0;
  }
  int LaunchHostFunction(CudaStreamHandle, void (*function)(void*),
                         void* data) override {
    function(data);
    return 0;
  }
  int WaitForWord(CudaStreamHandle, const std::uint32_t*,
                  std::uint32_t) override {
    return 0;
  }
  int WriteWord(CudaStreamHandle, std::uint64_t*, std::uint64_t) override {
    return 0;
  }
  int TakeLaunchError() override { return 0; }
  int BeginCapture(CudaStreamHandle) override { return 0; }
  int EndCapture(CudaStreamHandle, CudaGraphHandle*) override { return 0; }
  int LaunchGraph(CudaGraphHandle, CudaStreamHandle) override { return 0; }
  int DestroyGraph(CudaGraphHandle) override { return 0; }
  int Allocate(std::size_t, void**) override { return 2; }
  int Free(void*) override { return 0; }
  int AllocatePinned(std::size_t bytes, void** data) override {
    *data = ::operator new(bytes, std::align_val_t(64));
    return 0;
  }
  int FreePinned(void*) override { return 0; }
  int MemoryInfo(std::size_t*, std::size_t*) override { return 0; }
  int EnablePeerAccess(int, int) override { return 0; }
  std::string ErrorText(int) override { return ""; }

 protected:
  int SwitchDevice(int) override { return 0; }
};

CudaStream& NewStream() {
  static NoOpCuda& cuda = *new NoOpCuda;
  static CudaGpu& gpu = *new CudaGpu(cuda, 0, "sm_90", 132, {900});
  static auto& stream =
      *new CudaStream(gpu, Device(DeviceType::kCuda, 0), 0, StreamOptions());
  return stream;
}

void BM_LaunchBesideCuda(benchmark::State& state) {
  CudaStream& stream = NewStream();
  OpLabel label("add", SourceLocation("net.cc", 88));
  label.AddInput({256, 128});
  for (auto _ : state) {
    stream.Launch(label, [](const CudaLaunch& to) {
      benchmark::DoNotOptimize(to.stream);
    });
  }
}
BENCHMARK(BM_LaunchBesideCuda);

void BM_RecordBesideCuda(benchmark::State& state) {
  CudaStream& stream = NewStream();
  for (auto _ : state) benchmark::DoNotOptimize(stream.Record());
}
BENCHMARK(BM_RecordBesideCuda);

}  // namespace
}  // namespace d2l

BENCHMARK_MAIN();
