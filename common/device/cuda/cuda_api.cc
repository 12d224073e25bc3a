// The CUDA runtime behind CudaApi.

#include "common/device/cuda/cuda_api.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "common/device/cuda/cuda_errors.h"

namespace d2l {
namespace {

static_assert(std::is_same_v<CudaStreamHandle, cudaStream_t>);
static_assert(std::is_same_v<CudaEventHandle, cudaEvent_t>);

static_assert(kCudaSuccess == cudaSuccess);
static_assert(kCudaInvalidValue == cudaErrorInvalidValue);
static_assert(kCudaMemoryAllocation == cudaErrorMemoryAllocation);
static_assert(kCudaCudartUnloading == cudaErrorCudartUnloading);
static_assert(kCudaEccUncorrectable == cudaErrorECCUncorrectable);
static_assert(kCudaNoKernelImageForDevice == cudaErrorNoKernelImageForDevice);
static_assert(kCudaNvlinkUncorrectable == cudaErrorNvlinkUncorrectable);
static_assert(kCudaUnsupportedPtxVersion == cudaErrorUnsupportedPtxVersion);
static_assert(kCudaInvalidResourceHandle == cudaErrorInvalidResourceHandle);
static_assert(kCudaNotReady == cudaErrorNotReady);
static_assert(kCudaIllegalAddress == cudaErrorIllegalAddress);
static_assert(kCudaLaunchOutOfResources == cudaErrorLaunchOutOfResources);
static_assert(kCudaLaunchTimeout == cudaErrorLaunchTimeout);
static_assert(kCudaContextIsDestroyed == cudaErrorContextIsDestroyed);
static_assert(kCudaAssert == cudaErrorAssert);
static_assert(kCudaHardwareStackError == cudaErrorHardwareStackError);
static_assert(kCudaIllegalInstruction == cudaErrorIllegalInstruction);
static_assert(kCudaMisalignedAddress == cudaErrorMisalignedAddress);
static_assert(kCudaInvalidAddressSpace == cudaErrorInvalidAddressSpace);
static_assert(kCudaInvalidPc == cudaErrorInvalidPc);
static_assert(kCudaLaunchFailure == cudaErrorLaunchFailure);
static_assert(kCudaNotPermitted == cudaErrorNotPermitted);
static_assert(kCudaUnknown == cudaErrorUnknown);

// An error stays with the thread until somebody takes it; a kernel launch that
// comes later must not find it.
int Taken(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) cudaGetLastError();
  return error;
}

class RealCuda final : public CudaApi {
 public:
  int SetDevice(int gpu) override { return Taken(cudaSetDevice(gpu)); }

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
};

}  // namespace

CudaApi& RealCudaApi() {
  static RealCuda& api = *new RealCuda;
  return api;
}

}  // namespace d2l
