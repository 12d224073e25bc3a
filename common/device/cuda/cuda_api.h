// CudaApi: the calls that the back end makes into the CUDA runtime, and no
// others.
//
//   CudaApi& api = RealCudaApi();
//   void* event = nullptr;
//   if (const int error = api.CreateEvent(/*timed=*/true, &event)) {
//     std::cerr << api.ErrorText(error) << "\n";
//   }
//
// A thin interface: what the back end does with streams, events and failures is
// the same on a model of a GPU, so it is tested on machines without one
// (fake_cuda.h). Kernels do not go through it; they are launched on the stream
// itself. No CUDA headers here.
//
// Every function returns a cudaError_t as an int, 0 for success, and leaves
// nothing behind for cudaGetLastError. Streams and events are handles of the
// runtime. Thread-safe. A function that names no device works on the one that
// the thread has set; so do all functions of events: from a thread that has
// none, CUDA would make a context on GPU 0, which takes 0.3 s and hundreds of
// megabytes.

#ifndef D2L_COMMON_DEVICE_CUDA_CUDA_API_H_
#define D2L_COMMON_DEVICE_CUDA_CUDA_API_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The runtime's own names: cudaStream_t, cudaEvent_t and cudaGraphExec_t point
// to these.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace d2l {

using CudaStreamHandle = CUstream_st*;  // the same type as cudaStream_t
using CudaEventHandle = CUevent_st*;
using CudaGraphHandle = CUgraphExec_st*;

namespace internal {
// How many kernels this thread has launched, which the calls below do not show;
// see StreamOptions::max_queued_launches.
inline thread_local std::uint64_t kernels_launched = 0;
// Set by a launch that takes a GPU far longer than an event: a library's
// product, a grid of more than kLongGrid threads. CudaStream then makes a
// checkpoint behind it.
inline thread_local bool long_kernel_launched = false;
// Each thread usually takes several elements, so the grid touches over 4 MB.
inline constexpr std::uint64_t kLongGrid = 1 << 18;
}  // namespace internal

class CudaApi {
 public:
  virtual ~CudaApi() = default;

  // Makes `gpu` the thread's current device, at no cost if it is already.
  int SetDevice(int gpu) {
    if (gpu == current_gpu_) return 0;
    const int error = SwitchDevice(gpu);
    current_gpu_ = error == 0 ? gpu : -1;
    return error;
  }

  // A stream that does not wait for the legacy default stream.
  virtual int CreateStream(CudaStreamHandle* stream) = 0;
  virtual int DestroyStream(CudaStreamHandle stream) = 0;

  // timed: usable with ElapsedMillis; others cost a little less.
  virtual int CreateEvent(bool timed, CudaEventHandle* event) = 0;
  // Stream and event are of one device. An event can be recorded again.
  virtual int RecordEvent(CudaEventHandle event, CudaStreamHandle stream) = 0;
  // 0 once the work of the latest record is done, kCudaNotReady before.
  virtual int QueryEvent(CudaEventHandle event) = 0;
  virtual int SynchronizeEvent(CudaEventHandle event) = 0;
  // The stream's next work starts after the event's latest record as of now.
  // The event may be another device's.
  virtual int WaitEvent(CudaStreamHandle stream, CudaEventHandle event) = 0;
  // Both are timed, done, and of one device. The resolution is about 0.5 us.
  virtual int ElapsedMillis(CudaEventHandle begin, CudaEventHandle end,
                            float* millis) = 0;

  // From or to any memory; asynchronous unless one side is pageable.
  virtual int CopyAsync(void* dst, const void* src, std::size_t bytes,
                        CudaStreamHandle stream) = 0;
  // Calls function(data) when the stream gets there. It must make no CUDA
  // calls. It is not called once the GPU's context is lost.
  virtual int LaunchHostFunction(CudaStreamHandle stream,
                                 void (*function)(void*), void* data) = 0;
  // The stream's next work starts once *word has reached `least`: once their
  // difference, as an int32_t, is not negative. The host changes the word,
  // which is in memory of AllocatePinned.
  virtual int WaitForWord(CudaStreamHandle stream, const std::uint32_t* word,
                          std::uint32_t least) = 0;
  // Sets *word, which is in memory of AllocatePinned, as the stream's next
  // work.
  virtual int WriteWord(CudaStreamHandle stream, std::uint64_t* word,
                        std::uint64_t value) = 0;
  // From here on, work enqueued on the stream is recorded and not run, in
  // CUDA's relaxed mode: other streams and allocations work as before. Waiting
  // for the stream, or for an event recorded on it, is an error, and makes
  // EndCapture fail.
  virtual int BeginCapture(CudaStreamHandle stream) = 0;
  // Also ends a capture that has failed. The graph is ready to be launched.
  virtual int EndCapture(CudaStreamHandle stream, CudaGraphHandle* graph) = 0;
  // Runs what was recorded, with the arguments that it had then, as the
  // stream's next work. Not in two streams at once.
  virtual int LaunchGraph(CudaGraphHandle graph, CudaStreamHandle stream) = 0;
  // Launches that are already enqueued still run.
  virtual int DestroyGraph(CudaGraphHandle graph) = 0;
  // Returns and clears the error of this thread's kernel launches.
  virtual int TakeLaunchError() = 0;

  virtual int Allocate(std::size_t bytes, void** data) = 0;
  virtual int Free(void* data) = 0;
  // Page-locked for every device, at the same address on each.
  virtual int AllocatePinned(std::size_t bytes, void** data) = 0;
  virtual int FreePinned(void* data) = 0;
  virtual int MemoryInfo(std::size_t* free, std::size_t* total) = 0;

  // Lets `gpu` use the memory of `peer` directly. 0 also if it already does,
  // or cannot: copies between them then go through the host.
  virtual int EnablePeerAccess(int gpu, int peer) = 0;

  // "cudaErrorIllegalAddress: an illegal memory access was encountered".
  virtual std::string ErrorText(int error) = 0;

 protected:
  virtual int SwitchDevice(int gpu) = 0;

 private:
  inline static thread_local int current_gpu_ = -1;
};

// The CUDA runtime; lives as long as the process. Defined in cuda_api.cc, which
// only --config=cuda builds.
CudaApi& RealCudaApi();

// The GPU architectures that this binary has machine code for, in rising order:
// {800, 900} for sm_80,sm_90 (--//:cuda_archs). In built_archs.cu.
std::vector<int> BuiltArchs();

// CudaApi::WriteWord by a kernel, without taking its error. In write_word.cu.
void LaunchWriteWord(CudaStreamHandle stream, std::uint64_t* word,
                     std::uint64_t value);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_CUDA_API_H_
