// The CUDA back end of a binary that was built without one.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "common/base/console/language.h"
#include "common/device/backend.h"

namespace d2l {
namespace {

class NoCuda final : public Backend {
 public:
  NoCuda() {
    inventory_.why_none =
        Say("This binary was built without CUDA. Rebuild with --config=cuda, "
            "or use --devices=cpu:0,cpu:1.");
  }

  DeviceType type() const override { return DeviceType::kCuda; }
  const DeviceInventory& Inventory() override { return inventory_; }
  std::unique_ptr<Stream> NewStream(Device, int, int,
                                    const StreamOptions&) override {
    throw std::invalid_argument(inventory_.why_none);
  }
  // Without a device there is nothing to allocate or to give back.
  void* Allocate(int, std::size_t) override { return nullptr; }
  void Free(int, void*, std::size_t) override {}
  void* AllocatePinned(std::size_t) override { return nullptr; }
  void FreePinned(void*, std::size_t) override {}
  std::int64_t FreeMemory(int) override { return 0; }

 private:
  DeviceInventory inventory_;
};

}  // namespace

Backend& CudaBackend() {
  static NoCuda& backend = *new NoCuda;
  return backend;
}

}  // namespace d2l
