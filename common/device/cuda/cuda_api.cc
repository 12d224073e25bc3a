// The CUDA runtime behind CudaApi.

#include "common/device/cuda/cuda_api.h"

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

static_assert(std::is_same_v<CudaStreamHandle, cudaStream_t>);
static_assert(std::is_same_v<CudaEventHandle, cudaEvent_t>);
static_assert(std::is_same_v<CudaGraphHandle, cudaGraphExec_t>);

// CUDA keeps an error in the thread until it is cleared; a later kernel launch
// must not find it.
int Taken(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) cudaGetLastError();
  return error;
}

// The driver's cuStreamWaitValue32; null if it has none. The program is not
// linked with the driver, so that it starts on machines without one.
PFN_cuStreamWaitValue32_v11070 DriversWaitValue() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  const int error = Taken(cudaGetDriverEntryPointByVersion(
      "cuStreamWaitValue32", &function, 11070, cudaEnableLegacyStream, &found));
#else
  const int error = Taken(cudaGetDriverEntryPoint(
      "cuStreamWaitValue32", &function, cudaEnableLegacyStream, &found));
#endif
  return error == 0 && found == cudaDriverEntryPointSuccess
             ? reinterpret_cast<PFN_cuStreamWaitValue32_v11070>(function)
             : nullptr;
}

struct AwaitedWord {
  const std::uint32_t* word;
  std::uint32_t least;
};

void PollWord(void* data) {
  const std::unique_ptr<const AwaitedWord> awaited(
      static_cast<const AwaitedWord*>(data));
  while (static_cast<std::int32_t>(
             __atomic_load_n(awaited->word, __ATOMIC_ACQUIRE) -
             awaited->least) < 0) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

class RealCuda final : public CudaApi {
 public:
  int CreateStream(CudaStreamHandle* stream) override {
    return Taken(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  }
  int DestroyStream(CudaStreamHandle stream) override {
    return Taken(cudaStreamDestroy(stream));
  }

  int CreateEvent(bool timed, CudaEventHandle* event) override {
    return Taken(cudaEventCreateWithFlags(
        event, timed ? cudaEventDefault : cudaEventDisableTiming));
  }
  int RecordEvent(CudaEventHandle event, CudaStreamHandle stream) override {
    return Taken(cudaEventRecord(event, stream));
  }
  int QueryEvent(CudaEventHandle event) override {
    return Taken(cudaEventQuery(event));
  }
  int SynchronizeEvent(CudaEventHandle event) override {
    return Taken(cudaEventSynchronize(event));
  }
  int WaitEvent(CudaStreamHandle stream, CudaEventHandle event) override {
    return Taken(cudaStreamWaitEvent(stream, event, 0));
  }
  int ElapsedMillis(CudaEventHandle begin, CudaEventHandle end,
                    float* millis) override {
    return Taken(cudaEventElapsedTime(millis, begin, end));
  }

  int CopyAsync(void* dst, const void* src, std::size_t bytes,
                CudaStreamHandle stream) override {
    return Taken(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, stream));
  }
  int LaunchHostFunction(CudaStreamHandle stream, void (*function)(void*),
                         void* data) override {
    return Taken(cudaLaunchHostFunc(stream, function, data));
  }
  // This is an operation of the stream and not a host function that waits: CUDA
  // may run all streams' host functions on one thread, where those of other
  // streams would never get their turn. It is not a kernel that waits, either:
  // that would occupy the GPU, and a GPU that also drives a screen ends kernels
  // after seconds.
  int WaitForWord(CudaStreamHandle stream, const std::uint32_t* word,
                  std::uint32_t least) override {
    static const auto wait = DriversWaitValue();
    if (wait != nullptr) {
      const CUresult error = wait(stream, reinterpret_cast<CUdeviceptr>(word),
                                  least, CU_STREAM_WAIT_VALUE_GEQ);
      if (error != CUDA_ERROR_NOT_SUPPORTED) return error;
    }
    // Linux drivers of CUDA 12 have it; elsewhere a host function polls.
    auto* const awaited = new AwaitedWord{word, least};
    const int error = LaunchHostFunction(stream, PollWord, awaited);
    if (error != 0) delete awaited;
    return error;
  }

  int WriteWord(CudaStreamHandle stream, std::uint64_t* word,
                std::uint64_t value) override {
    LaunchWriteWord(stream, word, value);
    return cudaGetLastError();
  }

  int BeginCapture(CudaStreamHandle stream) override {
    return Taken(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  }
  int EndCapture(CudaStreamHandle stream, CudaGraphHandle* graph) override {
    cudaGraph_t recorded = nullptr;
    int error = Taken(cudaStreamEndCapture(stream, &recorded));
    if (error == 0) {
      error = Taken(cudaGraphInstantiateWithFlags(graph, recorded, 0));
    }
    if (recorded != nullptr) Taken(cudaGraphDestroy(recorded));
    return error;
  }
  int LaunchGraph(CudaGraphHandle graph, CudaStreamHandle stream) override {
    return Taken(cudaGraphLaunch(graph, stream));
  }
  int DestroyGraph(CudaGraphHandle graph) override {
    return Taken(cudaGraphExecDestroy(graph));
  }
  int TakeLaunchError() override { return cudaGetLastError(); }

  int Allocate(std::size_t bytes, void** data) override {
    return Taken(cudaMalloc(data, bytes));
  }
  int Free(void* data) override { return Taken(cudaFree(data)); }
  int AllocatePinned(std::size_t bytes, void** data) override {
    return Taken(cudaHostAlloc(data, bytes,
                               cudaHostAllocPortable | cudaHostAllocMapped));
  }
  int FreePinned(void* data) override { return Taken(cudaFreeHost(data)); }
  int MemoryInfo(std::size_t* free, std::size_t* total) override {
    return Taken(cudaMemGetInfo(free, total));
  }

  int EnablePeerAccess(int gpu, int peer) override {
    int can = 0;
    const int error = Taken(cudaDeviceCanAccessPeer(&can, gpu, peer));
    if (error != 0 || can == 0) return error;
    if (const int not_set = SetDevice(gpu)) return not_set;
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer, 0);
    const int taken = Taken(enabled);
    return enabled == cudaErrorPeerAccessAlreadyEnabled ? 0 : taken;
  }

  std::string ErrorText(int error) override {
    const auto code = static_cast<cudaError_t>(error);
    return absl::StrCat(cudaGetErrorName(code), ": ", cudaGetErrorString(code));
  }

 protected:
  int SwitchDevice(int gpu) override { return Taken(cudaSetDevice(gpu)); }
};

}  // namespace

CudaApi& RealCudaApi() {
  static RealCuda& api = *new RealCuda;
  return api;
}

}  // namespace d2l
