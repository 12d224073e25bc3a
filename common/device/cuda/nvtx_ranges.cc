// NVTX is headers only; it calls a tool that has injected itself into the
// program.

#include <nvtx3/nvToolsExt.h>

#include "common/device/nvtx_range.h"

namespace d2l {
namespace {

class NvtxMarker final : public RangeMarker {
 public:
  explicit NvtxMarker(nvtxDomainHandle_t domain) : domain_(domain) {}

  void Push(const char* name) override {
    nvtxEventAttributes_t range = {};
    range.version = NVTX_VERSION;
    range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    range.messageType = NVTX_MESSAGE_TYPE_ASCII;
    range.message.ascii = name;
    nvtxDomainRangePushEx(domain_, &range);
  }
  void Pop() override { nvtxDomainRangePop(domain_); }

 private:
  const nvtxDomainHandle_t domain_;
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
