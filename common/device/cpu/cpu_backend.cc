// The CPU back end: virtual devices on one machine.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/machine.h"
#include "common/device/backend.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/device/device.h"

namespace d2l {
namespace {

// Two cache lines, which the processor fetches together. What a worker writes
// must not share them with what the program's own thread writes, such as the
// bookkeeping of the block: an operation would cost half as much again.
constexpr std::size_t kAlignment = 128;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Reading how much is free costs a fraction of what so many fresh pages do.
constexpr std::int64_t kUncheckedBytes = std::int64_t{32} << 20;

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, 10, "model name") != 0) continue;
    const std::string::size_type colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

class VirtualCpus final : public Backend {
 public:
  VirtualCpus() {
    PhysicalDevice machine;
    machine.name = ProcessorName();
    machine.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                           sysconf(_SC_PAGESIZE);
    machine.cores = UsableCores();
    inventory_.devices.push_back(machine);
  }

  DeviceType type() const override { return DeviceType::kCpu; }
  const DeviceInventory& Inventory() override { return inventory_; }

  std::unique_ptr<Stream> NewStream(Device device, int /*physical_index*/,
                                    int index,
                                    const StreamOptions& options) override {
    return std::make_unique<CpuStream>(
        device, index, options,
        options.beside ? std::make_shared<ThreadPool>(options.cores)
                       : PoolOf(device, options.cores));
  }

  void* Allocate(int physical_index, std::size_t bytes) override {
    const auto size = static_cast<std::int64_t>(bytes);
    // Linux grants more memory than there is, and kills processes that use it.
    if (unchecked_.fetch_add(size) + size >= kUncheckedBytes) {
      if (size > FreeMemory(physical_index)) return nullptr;
      unchecked_.store(0);
    }
    void* const data = AllocateUnchecked(bytes);
    if (data != nullptr) promised_.fetch_add(size);
    return data;
  }

  void Free(int /*physical_index*/, void* data, std::size_t bytes) override {
    promised_.fetch_sub(static_cast<std::int64_t>(bytes));
    if (bytes < kHugePage) {
      std::free(data);
    } else {
      munmap(data, bytes);
    }
  }

  void* AllocatePinned(std::size_t bytes) override {
    return Allocate(0, bytes);
  }
  void FreePinned(void* data, std::size_t bytes) override {
    Free(0, data, bytes);
  }

  std::int64_t FreeMemory(int /*physical_index*/) override {
    return std::min(FreeHostMemory(promised_.load()),
                    inventory_.devices[0].memory_bytes);
  }

 private:
  static void* AllocateUnchecked(std::size_t bytes) {
    if (bytes < kHugePage) {
      void* data = nullptr;
      const std::size_t padded =
          (bytes + kAlignment - 1) / kAlignment * kAlignment;
      return posix_memalign(&data, kAlignment, padded) == 0 ? data : nullptr;
    }
    // Fresh pages cost more than the arithmetic on them; huge pages cost less.
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    madvise(data, bytes, MADV_HUGEPAGE);
    return data;
  }

  // The pool that the streams of `device` share.
  std::shared_ptr<ThreadPool> PoolOf(Device device, int cores) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::weak_ptr<ThreadPool>& known = pools_[device.index()];
    std::shared_ptr<ThreadPool> pool = known.lock();
    if (pool == nullptr || pool->cores() != cores) {
      pool = std::make_shared<ThreadPool>(cores);
      known = pool;
    }
    return pool;
  }

  DeviceInventory inventory_;
  std::atomic<std::int64_t> promised_{0};   // allocated and not freed
  std::atomic<std::int64_t> unchecked_{0};  // allocated since the last check

  std::mutex mutex_;                                // guards pools_
  std::map<int, std::weak_ptr<ThreadPool>> pools_;  // by the device's index
};

}  // namespace

Backend& CpuBackend() {
  static VirtualCpus& backend = *new VirtualCpus;
  return backend;
}

}  // namespace d2l
