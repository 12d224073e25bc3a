#include "common/device/cuda/nvtx_ranges.h"

#include <nvtx3/nvToolsExt.h>

#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "common/device/nvtx_range.h"

namespace d2l {
namespace {

class NvtxMarker final : public RangeMarker {
 public:
  explicit NvtxMarker(nvtxDomainHandle_t domain) : domain_(domain) {}

  void Push(const char* literal) override {
    nvtxEventAttributes_t range = Range();
    range.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    range.message.registered = Register(literal);
    nvtxDomainRangePushEx(domain_, &range);
  }
  void Push(const std::string& name) override {
    nvtxEventAttributes_t range = Range();
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name.c_str();
    nvtxDomainRangePushEx(domain_, &range);
  }
  void Pop() override { nvtxDomainRangePop(domain_); }

 private:
  static nvtxEventAttributes_t Range() {
    nvtxEventAttributes_t range = {};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    return range;
  }

  // The tool's handle for a name, so that it need not copy it for every range.
  nvtxStringHandle_t Register(const char* literal) {
    std::lock_guard<std::mutex> lock(mutex_);
    nvtxStringHandle_t& handle = handles_[literal];
    if (handle == nullptr) {
      handle = nvtxDomainRegisterStringA(domain_, literal);
    }
    return handle;
  }

  const nvtxDomainHandle_t domain_;
  std::mutex mutex_;  // guards handles_
  absl::flat_hash_map<const char*, nvtxStringHandle_t> handles_;
};

}  // namespace

bool MarkRangesForNvtx() {
  // Null without a tool.
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("d2l");
  if (domain == nullptr) return false;
  SetRangeMarker(new NvtxMarker(domain));  // as long as the process
  return true;
}

}  // namespace d2l
