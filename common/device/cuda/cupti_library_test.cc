// With the library, as far as it works without a driver.

#include "common/device/cuda/cupti_library.h"

#include <cupti.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/device/cuda/cupti_api.h"
#include "common/device/cuda/cupti_timer.h"
#include "common/device/device_times.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

TEST(CuptiLibraryTest, SaysWhereItLooked) {
  try {
    LoadCupti({"/nowhere/a", "/nowhere/b"});
    FAIL() << "nothing thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no libcupti.so.1"));
    EXPECT_THAT(error.what(), HasSubstr(" in /nowhere/a, /nowhere/b."));
  }
  EXPECT_EQ(CuptiFolders().front(), "") << "the system's search";
  EXPECT_EQ(CuptiFolders()[1], D2L_CUPTI_LIBRARY_FOLDER);
}

// A buffer as CUPTI fills it, record behind record, each as long as the newest
// structure of its kind, which is longer than what is read of it.
class Buffer {
 public:
  template <typename Activity>
  void Add(const Activity& activity) {
    std::memcpy(bytes_ + used_, &activity, sizeof(activity));
    used_ += sizeof(activity);
  }
  std::uint8_t* bytes() { return bytes_; }
  std::size_t used() const { return used_; }

 private:
  alignas(8) std::uint8_t bytes_[4096] = {};
  std::size_t used_ = 0;
};

template <typename Activity>
Activity Work(CUpti_ActivityKind kind, std::uint32_t call, std::uint64_t begin,
              std::uint64_t end) {
  Activity work;
  std::memset(&work, 0xff, sizeof(work));
  work.kind = kind;
  work.correlationId = call;
  work.start = begin;
  work.end = end;
  return work;
}

CUpti_ActivityExternalCorrelation PushedId(CUpti_ExternalCorrelationKind kind,
                                           std::uint32_t call,
                                           std::uint64_t id) {
  CUpti_ActivityExternalCorrelation pushed = {};
  pushed.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  pushed.externalKind = kind;
  pushed.correlationId = call;
  pushed.externalId = id;
  return pushed;
}

TEST(CuptiLibraryTest, ReadsWhatCuptiWrites) {
  const std::string folder = D2L_CUPTI_LIBRARY_FOLDER;
  if (!std::filesystem::exists(folder + "/libcupti.so.13") ||
      CUPTI_API_VERSION < 130000) {
    GTEST_SKIP() << folder
                 << " has no CUPTI 13, which this test is written for";
  }
  const CuptiLibrary cupti = LoadCupti({"/nowhere", folder});
  constexpr std::uint64_t kLarge = 1'795'292'772'376'007'105;
  Buffer buffer;
  buffer.Add(Work<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                          1, kLarge, kLarge + 1));
  buffer.Add(PushedId(kCuptiIdKind, 2, kLarge + 2));
  CUpti_ActivityAPI call = {};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.correlationId = 2;
  buffer.Add(call);
  buffer.Add(PushedId(CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, 2, 77));
  buffer.Add(
      Work<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY, 3, 30, 31));
  buffer.Add(
      Work<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, 4, 40, 41));
  buffer.Add(
      Work<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, 5, 50, 51));

  const std::vector<CuptiRecord> records =
      RecordsIn(cupti, buffer.bytes(), buffer.used());
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].kind, CuptiRecord::Kind::kWork);
  EXPECT_EQ(records[0].call, 1u);
  EXPECT_EQ(records[0].begin, kLarge);
  EXPECT_EQ(records[0].end, kLarge + 1);
  EXPECT_EQ(records[1].kind, CuptiRecord::Kind::kPushedId);
  EXPECT_EQ(records[1].call, 2u);
  EXPECT_EQ(records[1].id, kLarge + 2);
  for (std::uint32_t i = 2; i < 5; ++i) {
    EXPECT_EQ(records[i].kind, CuptiRecord::Kind::kWork);
    EXPECT_EQ(records[i].call, i + 1);
    EXPECT_EQ(records[i].begin, 10 * (i + 1));
    EXPECT_EQ(records[i].end, 10 * (i + 1) + 1);
  }
  EXPECT_TRUE(RecordsIn(cupti, buffer.bytes(), 0).empty());
}

TEST(CuptiLibraryTest, ItsClockRuns) {
  const std::string folder = D2L_CUPTI_LIBRARY_FOLDER;
  if (!std::filesystem::exists(folder + "/libcupti.so")) {
    GTEST_SKIP() << folder << " has no CUPTI";
  }
  const CuptiLibrary cupti = LoadCupti({folder});
  std::uint64_t before = 0;
  std::uint64_t after = 0;
  EXPECT_EQ(cupti.timestamp(&before), CUPTI_SUCCESS);
  EXPECT_EQ(cupti.timestamp(&after), CUPTI_SUCCESS);
  EXPECT_GT(before, 0u);
  EXPECT_GE(after, before);
  const char* text = nullptr;
  EXPECT_EQ(cupti.result_string(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, &text),
            CUPTI_SUCCESS);
  EXPECT_STREQ(text, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
}

// With a GPU and permission it begins; without, it says why not.
TEST(RealCuptiTest, BeginsOrSaysWhyNot) {
  CuptiTimer& timer = *new CuptiTimer(RealCuptiApi());
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<DeviceTimes> times = timer.Begin();
    if (times->available()) {
      EXPECT_THAT(times->Notes(), IsEmpty());
    } else {
      EXPECT_THAT(times->Notes(), ElementsAre(StartsWith("No kernel times: ")));
      std::cout << times->Notes()[0] << "\n";
    }
    times->End();
  }
}

}  // namespace
}  // namespace d2l
