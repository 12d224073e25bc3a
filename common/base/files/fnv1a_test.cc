#include "common/base/files/fnv1a.h"

#include <string>

#include "gtest/gtest.h"

namespace d2l {
namespace {

// The values that the authors of the hash have published.
TEST(Fnv1aTest, IsThePublishedHash) {
  EXPECT_EQ(Fnv1a().Hex(), "cbf29ce484222325");
  Fnv1a hash;
  hash.Update("foo");
  hash.Update("");
  hash.Update("bar");
  EXPECT_EQ(hash.Hex(), "85944171f73967e8");
  Fnv1a bytes_above_127;
  bytes_above_127.Update("\xff\x01");
  EXPECT_EQ(bytes_above_127.Hex(), "0a99a707b6f60d9d");
}

}  // namespace
}  // namespace d2l
