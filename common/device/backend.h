// Backend: the interface of a kind of device. There are two, CPU and CUDA.
//
//   Backend& cuda = CudaBackend();
//   if (cuda.Inventory().devices.empty()) {
//     std::cerr << cuda.Inventory().why_none << "\n";
//   }
//
// Programs use the device table (device_table.h), which is built on this. Which
// CUDA back end a binary holds is decided by the file linked into it:
// common/device/cuda with --config=cuda, a model of two GPUs on the CPU with
// --config=emulate_cuda, which is for tests, else no_cuda.cc, which has no
// devices and says why. All functions are thread-safe.

#ifndef D2L_COMMON_DEVICE_BACKEND_H_
#define D2L_COMMON_DEVICE_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/device/stream.h"

namespace d2l {

// One piece of hardware.
struct PhysicalDevice {
  std::string name;               // "NVIDIA H200", "Intel Xeon …"
  std::int64_t memory_bytes = 0;  // all of it
  int cores = 0;           // CPU cores that may be used, or GPU multiprocessors
  std::string capability;  // "sm_90"; empty for a CPU
};

struct DeviceInventory {
  std::vector<PhysicalDevice> devices;
  // A sentence that says why there are none, and what to do about it.
  std::string why_none;
  // The devices are models, for tests: a list can name them, but they do not
  // count as devices found, and why_none says so.
  bool modelled = false;
  // "CUDA_VISIBLE_DEVICES=4,5" if that renumbers the devices; else empty.
  std::string renumbered_by;
};

struct StreamOptions {
  // An enqueue waits while this many operations are queued. At least 1. Each
  // costs a CPU stream 256 bytes of address space; kUnbounded means no bound.
  std::int64_t max_queued_operations = 4096;

  // On a GPU an enqueue also waits while this many launches are queued:
  // kernels, copies and events count 1, a host callback 17. CUDA's own queue
  // holds about 1,024 of these, and a call that waits there for room blocks the
  // calls of all threads.
  std::int64_t max_queued_launches = 512;

  static constexpr std::int64_t kUnbounded = std::int64_t{1} << 22;

  // The cores that the streams of a virtual CPU device share. The device table
  // sets it to DeviceInfo::cores.
  int cores = 1;
  // The stream takes none of these, but has as many of its own: for copies and
  // the sums of collectives, as a GPU has copy engines, and NCCL takes a few of
  // its multiprocessors. Of no effect on a GPU.
  bool beside = false;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceType type() const = 0;

  // The devices of this machine; determined once.
  virtual const DeviceInventory& Inventory() = 0;

  // A stream of `device`, which runs on the hardware `physical_index`.
  // index: see Stream.
  virtual std::unique_ptr<Stream> NewStream(Device device, int physical_index,
                                            int index,
                                            const StreamOptions& options) = 0;

  // Memory of the device, aligned to 64 bytes or more; null if there is not
  // enough. Throws std::runtime_error if the device cannot be used any more.
  // Slow: DeviceMemory (memory.h) keeps and reuses what it gets.
  virtual void* Allocate(int physical_index, std::size_t bytes) = 0;
  virtual void Free(int physical_index, void* data, std::size_t bytes) = 0;
  // True if Free and FreePinned wait for all work of the device.
  virtual bool FreeWaits() const { return false; }

  // Host memory to and from which the device can copy asynchronously.
  virtual void* AllocatePinned(std::size_t bytes) = 0;
  virtual void FreePinned(void* data, std::size_t bytes) = 0;

  // Bytes that Allocate could still get.
  virtual std::int64_t FreeMemory(int physical_index) = 0;
};

// The two back ends; they live as long as the process. One is in device/cpu,
// the other in device/cuda or in no_cuda.cc.
Backend& CpuBackend();
Backend& CudaBackend();

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_BACKEND_H_
