#include "common/lesson/run/run_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/source_location.h"
#include "common/ops/ops.h"
#include "common/profiler/profile.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const SourceLocation kHere("lesson.cc", 7);

// A cell that requests `count` operations.
void Request(int count) {
  Tensor x = Ones({2, 3});
  for (int i = 1; i < count; ++i) x = x + 1;
}

// The number of spans in the range of each cell, including the range.
std::map<std::string, int> SpansOf(const Profile& profile) {
  std::map<std::string, int> counts;
  for (const ProfiledSpan& span : profile.spans) {
    const ProfiledSpan* outermost = &span;
    while (outermost->parent >= 0) {
      outermost = &profile.spans[outermost->parent];
    }
    ++counts[outermost->name];
  }
  return counts;
}

TEST(RunProfileTest, EachCellIsARange) {
  RunProfile recorded(3);
  recorded.Record("a/1", kHere, [] { Request(5); });
  recorded.Record("a/2", kHere, [] {});
  recorded.Record("b/1", kHere, [] { Request(2); });
  const Profile profile = recorded.Finish();
  EXPECT_EQ(SpansOf(profile),
            (std::map<std::string, int>{{"a/1", 6}, {"a/2", 1}, {"b/1", 3}}));
  EXPECT_EQ(profile.spans[0].kind, ProfiledKind::kRange);
  EXPECT_EQ(profile.spans[0].line(), kHere);
  EXPECT_FALSE(profile.memory.empty());
  EXPECT_THAT(profile.notes, IsEmpty());
  EXPECT_EQ(profile.cut, 0);
  EXPECT_THAT(recorded.Finish().spans, IsEmpty());
}

TEST(RunProfileTest, ALongCellLeavesRoomForTheOthers) {
  // A bound is rounded up to 512 for each thread.
  RunProfile recorded(4, 4 * 512);
  recorded.Record("short", kHere, [] { Request(3); });
  recorded.Record("long", kHere, [] { Request(1500); });
  recorded.Record("longer", kHere, [] { Request(2500); });
  recorded.Record("last", kHere, [] { Request(4); });
  const Profile profile = recorded.Finish();
  const std::map<std::string, int> spans = SpansOf(profile);
  EXPECT_EQ(spans.at("short"), 4);
  EXPECT_GE(spans.at("long"), 512);
  EXPECT_LE(spans.at("long"), 2 * 512);
  EXPECT_GE(spans.at("longer"), 512);
  EXPECT_LE(spans.at("longer"), 2 * 512);
  EXPECT_EQ(spans.at("last"), 5);
  EXPECT_EQ(profile.cut, 1501 - spans.at("long") + 2501 - spans.at("longer"));
  ASSERT_GE(profile.notes.size(), 3u);
  EXPECT_THAT(profile.notes[0],
              StartsWith(absl::StrCat("long: ", 1501 - spans.at("long"),
                                      " calls were not recorded")));
  EXPECT_THAT(profile.notes.back(), HasSubstr("--cell=ID"));
}

TEST(RunProfileTest, MoreCellsThanSaidAreRecorded) {
  RunProfile recorded(0, 1);
  recorded.Record("a", kHere, [] { Request(2); });
  recorded.Record("b", kHere, [] { Request(3); });
  const Profile profile = recorded.Finish();
  EXPECT_EQ(SpansOf(profile), (std::map<std::string, int>{{"a", 3}, {"b", 4}}));
}

}  // namespace
}  // namespace d2l
