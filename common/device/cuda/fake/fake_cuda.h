// FakeCuda: a model of the CUDA runtime for tests, on the CPU.
//
//   FakeCuda cuda;
//   CudaGpu gpu(cuda, 0, "sm_90", 4, {900});
//   CudaStream stream(gpu, device, 0, options);
//   stream.Launch(label, [&](const CudaLaunch& to) {
//     cuda.LaunchKernel(to.stream, [=] { y[0] = x[0] + 1; });
//   });
//
// FakeCuda does what the runtime's documentation promises, in the way that
// exposes most mistakes: a stream is a thread of its own that runs what is
// enqueued in order; an event can be recorded again, and a wait refers to the
// latest record at its call; a copy from pageable memory has read its source
// when the call returns, one to pageable memory returns when it is done; GPUs
// have clocks of their own; once a GPU's context is lost every call on it
// fails, and no host function is called any more. "Kernels" are functions of
// the test.
//
// FakeCuda blocks where CUDA may block: allocating and freeing memory, and
// making streams and graphs, waits for all work of the GPU; for page-locked
// memory, of all GPUs. (CUDA frees destroyed streams and graphs once their work
// is done.) A call that enqueues on a stream whose queue is full waits for
// room, and meanwhile every other call that enqueues waits, too. If such a wait
// lasts for half a minute, as it does for a stalled stream, the program ends
// with a message.
//
// A GPU's memory is not the host's: on x86 processors with protection keys, an
// access from a thread other than a stream's, or from a host function, faults,
// as on a machine with a GPU. Elsewhere such an access is not detected.
//
// A captured stream runs nothing. A call that CUDA does not permit on it, or on
// events recorded on it, returns CUDA's error and invalidates the capture.
// Unlike in CUDA, other streams cannot join a capture.
//
// violations() lists the invalid calls: calls from a host function, uses of a
// stream or an event while another device is current, uses of memory or a graph
// that does not exist.
//
// Thread-safe. Destroy it after every stream on it; it waits for their threads.

#ifndef D2L_COMMON_DEVICE_CUDA_FAKE_FAKE_CUDA_H_
#define D2L_COMMON_DEVICE_CUDA_FAKE_FAKE_CUDA_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/stream/error_record.h"

namespace d2l {

class FakeCuda final : public CudaApi {
 public:
  struct Options {
    int gpus = 1;
    // Of each GPU.
    std::size_t memory_bytes = std::size_t{1} << 30;
    // CUDA may run the host functions of all streams one at a time.
    bool serial_host_functions = true;
    // Which GPUs can use each other's memory; none if false.
    bool peers = true;
    // The bound of one stream's queue; a host function counts 17. CUDA does not
    // document its own bound.
    std::size_t most_queued = 1024;
    // The number of hardware queues, which the streams share in turn: while one
    // stream waits for a word, the others of its queue wait too.
    int hardware_queues = 1 << 20;
  };

  FakeCuda() : FakeCuda(Options()) {}
  explicit FakeCuda(const Options& options);
  ~FakeCuda() override;

  int CreateStream(CudaStreamHandle* stream) override;
  int DestroyStream(CudaStreamHandle stream) override;
  int CreateEvent(bool timed, CudaEventHandle* event) override;
  int RecordEvent(CudaEventHandle event, CudaStreamHandle stream) override;
  int QueryEvent(CudaEventHandle event) override;
  int SynchronizeEvent(CudaEventHandle event) override;
  int WaitEvent(CudaStreamHandle stream, CudaEventHandle event) override;
  int ElapsedMillis(CudaEventHandle begin, CudaEventHandle end,
                    float* millis) override;
  int CopyAsync(void* dst, const void* src, std::size_t bytes,
                CudaStreamHandle stream) override;
  int LaunchHostFunction(CudaStreamHandle stream, void (*function)(void*),
                         void* data) override;
  int WaitForWord(CudaStreamHandle stream, const std::uint32_t* word,
                  std::uint32_t least) override;
  int WriteWord(CudaStreamHandle stream, std::uint64_t* word,
                std::uint64_t value) override;
  int BeginCapture(CudaStreamHandle stream) override;
  int EndCapture(CudaStreamHandle stream, CudaGraphHandle* graph) override;
  int LaunchGraph(CudaGraphHandle graph, CudaStreamHandle stream) override;
  int DestroyGraph(CudaGraphHandle graph) override;
  int TakeLaunchError() override;
  int Allocate(std::size_t bytes, void** data) override;
  int Free(void* data) override;
  int AllocatePinned(std::size_t bytes, void** data) override;
  int FreePinned(void* data) override;
  int MemoryInfo(std::size_t* free, std::size_t* total) override;
  int EnablePeerAccess(int gpu, int peer) override;
  std::string ErrorText(int error) override;

  // Launches a kernel, as <<<…>>> does.
  void LaunchKernel(CudaStreamHandle stream, std::function<void()> kernel);
  // These kernels call ReportFromHost instead of ErrorReporter::Report.

  // Whether the host is kept from accessing GPU memory.
  static bool GuardsMemory();
  // Whether kernels can use these bytes: a GPU's memory, or pinned.
  bool IsReachable(const void* data, std::size_t bytes);
  // The start and the size of the allocation that holds the address; null and 0
  // if there is none.
  std::pair<const void*, std::size_t> BlockOf(const void* address);
  // Whether a kernel of the GPU can use the allocation that holds the address:
  // its own memory, pinned memory, that of a GPU to which it has access.
  bool MayUse(int gpu, const void* address);

  // For a kernel: makes an error that loses the GPU's context.
  void Crash(int gpu, int error);
  // The next call of this function returns `error` and does nothing.
  // "LaunchKernel" is one of them.
  void FailNext(const std::string& function, int error);
  // From now on every call fails, as if the runtime had ended.
  void Unload();

  // How often a call waited for room in a stream's queue.
  std::int64_t waits_for_room();
  // How often a function was called; "" counts all calls, "pageable copies"
  // those calls of CopyAsync that wait.
  std::int64_t Calls(const std::string& function);
  int events_created() { return static_cast<int>(Calls("CreateEvent")); }
  std::set<std::pair<int, int>> peers();
  std::vector<std::string> violations();

 protected:
  int SwitchDevice(int gpu) override;

 private:
  // The point in a stream at which an event was recorded.
  struct Point {
    int gpu;
    bool done = false;
    std::int64_t nanos = 0;
  };
  struct Graph {
    int gpu;
    bool spoiled = false;
    std::vector<std::function<void()>> work;
  };
  struct Event {
    int gpu;
    bool timed;
    std::shared_ptr<Point> latest;
    std::shared_ptr<Graph> captured_in;  // the latest record is a part of it
  };
  struct Work {
    std::function<void()> run;
    std::size_t entries;  // of the stream's queue
  };
  struct Stream {
    int gpu;
    std::deque<Work> work;
    std::size_t entries = 0;  // of all work that is not done
    int queue;
    bool stalled = false;            // it waits for a word
    std::shared_ptr<Graph> capture;  // null unless it is captured
    std::uint64_t pushed = 0;
    std::uint64_t done = 0;
    bool closing = false;
    std::thread thread;
  };
  struct Block {
    std::size_t bytes;
    int gpu;  // kHost if pinned
  };
  static constexpr int kHost = -1;

  using Lock = std::unique_lock<std::mutex>;

  // Called first by every function: the error to return, 0 to go on.
  int Enter(const char* function, int gpu);
  // Enter for functions that enqueue, and for those that query an event.
  int EnterOn(const char* function, const Stream& stream);
  int EnterFor(const char* function, const Event& event);
  // Enter for functions that work on the thread's current device.
  int EnterCurrent(const char* function);
  void Serve(Stream& stream);
  // May wait for room.
  void Push(Lock& lock, Stream& stream, std::function<void()> work,
            std::size_t entries = 1);
  // Waits until `ready`; `what` names the call that waits.
  void WaitUntil(Lock& lock, const char* what,
                 const std::function<bool()>& ready);
  bool SharesStalledQueue(const Stream& stream) const;
  // Waits for the work of a GPU; of all if it is kHost.
  void WaitForWork(Lock& lock, const char* what, int gpu);
  void Stop(Stream& stream, Lock& lock);
  const Block* Find(const void* data, std::size_t bytes);
  // Else notes a violation that names the use: "a write of a word".
  bool IsPinned(const void* data, std::size_t bytes, const char* use);
  int CheckCurrent(const char* function, int gpu);
  int AllocateBlock(std::size_t bytes, int gpu, void** data);
  int FreeBlock(void* data, bool pinned);

  const Options options_;
  std::mutex host_functions_;  // held while one runs, if they are serial

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<int> lost_;  // by GPU: its error, or 0
  std::vector<std::size_t> used_;
  bool unloaded_ = false;
  bool no_room_ = false;  // a call waits for room
  std::int64_t waits_for_room_ = 0;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> events_;
  std::map<CudaGraphHandle, std::shared_ptr<Graph>> graphs_;
  std::map<std::uintptr_t, Block> blocks_;
  std::map<std::string, std::int64_t> calls_;
  std::map<std::string, int> fail_next_;
  std::set<std::pair<int, int>> peers_;
  std::vector<std::string> violations_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CUDA_FAKE_FAKE_CUDA_H_
