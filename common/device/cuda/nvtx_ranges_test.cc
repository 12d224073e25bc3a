// Uses the test's own tool in place of Nsight Systems.

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "common/device/nvtx_range.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::ElementsAre;

// The calls that the tool has received, one line each.
std::vector<std::string>& Heard() {
  static auto& heard = *new std::vector<std::string>;
  return heard;
}

nvtxDomainHandle_t CreateDomain(const char* name) {
  Heard().push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(std::uintptr_t{7});
}

int PushRange(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
  const bool ours =
      domain == reinterpret_cast<nvtxDomainHandle_t>(std::uintptr_t{7}) &&
      range->version == NVTX_VERSION &&
      range->size == NVTX_EVENT_ATTRIB_STRUCT_SIZE &&
      range->messageType == NVTX_MESSAGE_TYPE_ASCII;
  Heard().push_back(std::string(ours ? "push " : "wrong push ") +
                    range->message.ascii);
  return 0;
}

int PopRange(nvtxDomainHandle_t) {
  Heard().push_back("pop");
  return 0;
}

template <typename F>
void Set(NvtxFunctionTable table, int function, F* f) {
  *table[function] = reinterpret_cast<NvtxFunctionPointer>(f);
}

int Attach(NvtxGetExportTableFunc_t get_export_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(
      get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(
                                  NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  Set(table, NVTX_CBID_CORE2_DomainCreateA, CreateDomain);
  Set(table, NVTX_CBID_CORE2_DomainRangePushEx, PushRange);
  Set(table, NVTX_CBID_CORE2_DomainRangePop, PopRange);
  return 1;
}

TEST(NvtxRangesTest, ThereIsNoToolAndThenThereIs) {
  { NvtxRange unheard("add"); }
  EXPECT_THAT(Heard(), ElementsAre());
  // This is how a tool that is linked into the program registers itself.
  InitializeInjectionNvtx2_fnptr = Attach;
  ASSERT_TRUE(MarkRangesForNvtx());
  static constexpr char kAdd[] = "add";
  for (int i = 0; i < 2; ++i) {
    NvtxRange step(("step " + std::to_string(i)).c_str());
    NvtxRange op(kAdd);
  }
  std::thread([] { NvtxRange range(kAdd); }).join();
  EXPECT_THAT(Heard(), ElementsAre("domain d2l", "push step 0", "push add",
                                   "pop", "pop", "push step 1", "push add",
                                   "pop", "pop", "push add", "pop"));
}

// NVTX looks for a tool once in a process, so this is a process of its own.
TEST(NvtxRangesDeathTest, WithoutAToolNothingIsMarked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const bool marks = MarkRangesForNvtx();
        const NvtxRange range("add");
        const bool set = internal::range_marker.load() != nullptr;
        std::exit(marks || set ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace d2l
