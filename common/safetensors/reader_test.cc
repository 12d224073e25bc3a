#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/device/failure.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::safetensors {
namespace {

using testing::HasSubstr;

// Includes large tensors, any dtype, and memory whose writer had failed.
TEST(ReaderTest, ReadsIntoMemoryThatIsThere) {
  const std::string path =
      absl::StrCat(testing::TempDir(), "/", getpid(), "-into");
  for (const Device device : AllDevices()) {
    const NamedTensors saved = {{"x", Rand({1201, 503}, device)},
                                {"y", Rand({3, 5}, device)},
                                {"z", Rand({2}, device)}};
    ASSERT_TRUE(SaveFile(saved, path).ok());
    absl::StatusOr<Reader> reader = Reader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ(reader->header().entries.size(), 3u);
    Tensor x = Empty({1201, 503}, device);
    const Tensor y = T(Zeros({5, 3}, device, DType::kFloat64));
    const Tensor same = x;
    const Tensor nothing = Gather(Zeros({1, 1}, device), 1,
                                  Full({1, 1}, 7, device, DType::kInt64));
    // On a device that is done early, the copy itself throws.
    EXPECT_THROW(
        {
          CopyTo(nothing, x);
          WaitToRead(x);
        },
        AsyncError);
    RunOnce([] {});  // discards the error
    ASSERT_TRUE(reader->ReadInto({{"x", x}, {"y", y}}).ok());
    EXPECT_EQ(ToVector<float>(same), ToVector<float>(saved.at("x")));
    EXPECT_EQ(ValuesOf(y), ValuesOf(saved.at("y")));
    // Nothing is written if one of the tensors is wrong.
    CopyTo(Zeros({1}, device), x);
    EXPECT_THAT(
        ThrownText([&] {
          reader->ReadInto({{"x", x}, {"z", x}}).IgnoreError();
        }),
        HasSubstr("[ReadInto] \"z\" is a float32 tensor of shape (1201, 503)"));
    EXPECT_THAT(ThrownText([&] {
                  reader->ReadInto({{"x", x}, {"other", x}}).IgnoreError();
                }),
                HasSubstr("has 1 of the 2 tensors that are asked for"));
    EXPECT_EQ(Item(Sum(x)), 0);
    // The file loses its end while it is read.
    ASSERT_EQ(truncate(path.c_str(), 1 << 20), 0);
    const absl::Status lost = reader->ReadInto({{"x", x}});
    EXPECT_EQ(lost.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(lost.message()),
                HasSubstr("it became shorter while it was read; some of the "
                          "tensors were overwritten"));
  }
}

}  // namespace
}  // namespace d2l::safetensors
