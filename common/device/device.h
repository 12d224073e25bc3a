// Device: the name of a device, such as cpu:0 or cuda:1.
//
//   Device device = Device::Parse("cuda:1");
//   device.type();      // DeviceType::kCuda
//   device.ToString();  // "cuda:1"
//
// A Device is a value of two small integers. What a name stands for on this
// machine (a GPU, half of one, some of the CPU's cores) is in the device table,
// see device_table.h.
//
// A virtual device, cpu:N, behaves as a GPU does, without one:
//   - Its streams have queues and threads of their own, so calls return before
//     the work is done, and what different streams do is not ordered.
//   - Its streams share its cores: at most as many of their operations compute
//     at once as it has cores. A large operation is spread over those that are
//     free. On one core, two streams take turns.
//   - Copies (Stream::CopyAsync) run beside the computation, as on a GPU's copy
//     engines. Host callbacks and waits for events take no core, either.
//   - Its memory has an account and an allocator of its own. Copies are
//     asynchronous with pinned host memory, and wait with any other.
// But no part of the machine is reserved for it:
//   - No thread is tied to a core. The program's own threads, other programs
//     and copies may use the cores that it counts on.
//   - All memory is the machine's; copies move bytes from DRAM to DRAM.
//   - An operation is never interrupted: two streams on one core take turns
//     between operations, about once a millisecond.

#ifndef D2L_COMMON_DEVICE_DEVICE_H_
#define D2L_COMMON_DEVICE_DEVICE_H_

#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/string_view.h"

namespace d2l {

enum class DeviceType : std::uint8_t { kCpu, kCuda };

inline constexpr int kDeviceTypes = 2;
// How many devices a program can have; their indices are below it.
inline constexpr int kMaxDevices = 64;

// "cpu", "cuda".
const char* DeviceTypeName(DeviceType type);

class Device {
 public:
  // The first CPU device, as in PyTorch.
  constexpr Device() = default;
  constexpr Device(DeviceType type, int index) : type_(type), index_(index) {}

  // Reads "cpu:0", "cuda:1", or a type alone, which means its first device.
  // Throws std::invalid_argument for anything else. Does not check that the
  // device exists.
  static Device Parse(absl::string_view text);

  constexpr DeviceType type() const { return type_; }
  constexpr int index() const { return index_; }
  std::string ToString() const;

  friend constexpr bool operator==(Device a, Device b) {
    return a.type_ == b.type_ && a.index_ == b.index_;
  }
  friend constexpr bool operator!=(Device a, Device b) { return !(a == b); }
  friend constexpr bool operator<(Device a, Device b) {
    return std::tie(a.type_, a.index_) < std::tie(b.type_, b.index_);
  }
  friend std::ostream& operator<<(std::ostream& out, Device device) {
    return out << device.ToString();
  }
  template <typename H>
  friend H AbslHashValue(H h, Device device) {
    return H::combine(std::move(h), device.type_, device.index_);
  }

 private:
  DeviceType type_ = DeviceType::kCpu;
  int index_ = 0;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_DEVICE_H_
