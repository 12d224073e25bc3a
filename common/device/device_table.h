// The device table: the devices of this process, their streams and memory.
//
//   absl::Status status = InitializeDevices("cpu:0,cpu:1");  // once, in main
//   for (const DeviceInfo& info : Devices()) std::cout << info.Describe();
//   Stream& stream = CurrentStream(Device::Parse("cpu:1"));
//   Synchronize(stream.device());
//
// Each entry has a name of its own. Its kind says what it runs on:
//   virtual  cpu:N, with its own streams, memory account and share of the
//            CPU's cores: see device.h. Two of them run in parallel on two
//            cores; one with both spreads a large operation over them.
//   logical  one of several devices that share a GPU, each with its own
//            streams. "cuda:0,cuda:0" makes cuda:0 and cuda:1 on GPU 0.
//   real     a GPU of its own.
//   modelled a model of a GPU, on the CPU, in programs built for tests
//            (--config=emulate_cuda).
// CUDA entries are numbered in the order of the list: "cuda:1" alone makes
// the device cuda:0, on GPU 1, as CUDA_VISIBLE_DEVICES=1 would.
//
// The table is fixed by the first call that needs it. Streams and memory in it
// live until the process ends; then operations still queued are skipped, and an
// unreported failure is printed on stderr. All functions are thread-safe,
// except as stated.

#ifndef D2L_COMMON_DEVICE_DEVICE_TABLE_H_
#define D2L_COMMON_DEVICE_DEVICE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/source_location.h"
#include "common/device/backend.h"
#include "common/device/cpu/virtual_timing.h"
#include "common/device/device.h"
#include "common/device/memory/memory.h"
#include "common/device/stream.h"

namespace d2l {

enum class DeviceKind { kVirtual, kLogical, kReal, kModelled };

// "virtual", "logical", "real", "modelled".
const char* DeviceKindName(DeviceKind kind);

struct DeviceInfo {
  Device device;
  DeviceKind kind = DeviceKind::kVirtual;
  int physical_index = 0;
  std::string name;  // of the hardware
  std::int64_t memory_bytes = 0;
  int cores = 0;           // its share, for a virtual device
  std::string capability;  // "sm_90"; empty for a CPU

  // "cpu:0 (virtual, 1 core of Intel Xeon)", "cuda:1 (logical, on GPU 0,
  // NVIDIA H200)".
  std::string Describe() const;
};

struct DeviceOptions {
  // "auto" makes at least this many devices, on shared hardware if need be. 1
  // to 64.
  int min_devices = 2;
  // The bound of every stream's queue; see Stream.
  StreamOptions stream;
  // The bound on memory in flight, in bytes: see DeviceMemory.
  std::int64_t max_bytes_in_flight = std::int64_t{1} << 30;
};

// Makes the table. spec: "auto" (every GPU there is; without one, virtual CPU
// devices), or a list such as "cpu:0,cpu:1", "cuda:0,cuda:0",
// "cpu:0,cuda:0". InvalidArgument for a malformed list or option, NotFound
// for a device that is not there, FailedPrecondition if there is a table
// already.
absl::Status InitializeDevices(absl::string_view spec = "auto",
                               const DeviceOptions& options = {});

// The devices that InitializeDevices would make of `spec` on this hardware.
// "auto" chooses no models.
absl::StatusOr<std::vector<DeviceInfo>> ResolveDevices(
    absl::string_view spec, int min_devices, const DeviceInventory& cpu,
    const DeviceInventory& cuda);

// The table, in the order of the list. Makes it from "auto" if there is none.
const std::vector<DeviceInfo>& Devices();

bool HasDevice(Device device);

// How many ranks a topology needs for every device of the table to be one: the
// greatest index and 1.
int RanksOfDevices();

// These throw std::invalid_argument if the device is not in the table; the
// message lists the table.
const DeviceInfo& GetDeviceInfo(Device device);
Stream& DefaultStream(Device device);
// A further stream of the device, which lives as long as the table: make a
// few and keep them.
Stream& NewStream(Device device);
// A further stream with its own bound on its queue, from 1 to
// StreamOptions::kUnbounded; throws std::invalid_argument for other bounds.
Stream& NewStream(Device device, std::int64_t max_queued_operations);
// A further stream whose work takes none of the device's cores
// (StreamOptions::beside).
Stream& NewStreamBeside(Device device);
// The copy stream of `receiver` (stream.h), a stream of the table's; made by
// the first call. In work that runs on a stream, or is captured, `receiver`
// itself.
Stream& CopyStream(Stream& receiver);
// The device's stream for copying finished results to the host: such copies do
// not wait for work queued on the other streams.
Stream& ReadStream(Device device);
DeviceMemory& Memory(Device device);
// Host memory for copies to and from `device` that overlap with work.
DeviceMemory& PinnedMemory(Device device);

// The stream on which this thread's operations on `device` are enqueued: the
// default stream, unless a StreamGuard says otherwise.
Stream& CurrentStream(Device device);

// While a guard lives, `stream` is its device's current stream on this thread.
// Guards nest.
class StreamGuard {
 public:
  explicit StreamGuard(Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  const Device device_;
  Stream* const previous_;
};

// While a scope lives, work of the virtual CPU devices lasts as `timing` says.
// The constructor and the destructor wait for these devices. One at a time; no
// other thread may enqueue work on them while a scope begins or ends. The
// constructor throws std::invalid_argument if there is another scope, the pace
// is negative, or a device is no rank of the links' topology.
class VirtualTimingScope {
 public:
  explicit VirtualTimingScope(const VirtualTiming& timing);
  ~VirtualTimingScope();
  VirtualTimingScope(const VirtualTimingScope&) = delete;
  VirtualTimingScope& operator=(const VirtualTimingScope&) = delete;

  // How many seconds later than on its device's clock the last operation has
  // ended: no more than a tenth of a millisecond unless other programs have
  // taken cores that the devices needed.
  double LateSeconds() const { return 1e-9 * timing_->late.load(); }

 private:
  std::unique_ptr<internal::ActiveTiming> timing_;
};

// The pace of the present scope; 0 without one.
double VirtualPace();

// Waits for every stream of the device (torch.cuda.synchronize). Throws
// AsyncError if any work on them failed, the first failure of the first
// such stream.
void Synchronize(Device device,
                 SourceLocation noticed_at = SourceLocation::Current());

// The i-th GPU of the table; if it is not there, cpu:0, or else the first
// device of the table (d2l.try_gpu).
Device TryGpu(int i = 0);

// NotFound, with what is there and what to do, if fewer than `count` distinct
// GPUs are behind the table.
absl::Status RequireGpus(int count);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_DEVICE_TABLE_H_
