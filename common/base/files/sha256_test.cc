#include "common/base/files/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace d2l {
namespace {

// FIPS 180-4's examples.
TEST(Sha256Test, IsTheStandards) {
  EXPECT_EQ(Sha256().Hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  hash.Update("a");
  hash.Update("");
  hash.Update("bc");
  EXPECT_EQ(hash.Hex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Sha256 long_one;
  for (int i = 0; i < 1000; ++i) long_one.Update(std::string(1000, 'a'));
  EXPECT_EQ(long_one.Hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace d2l
