// Compares with what PyTorch prints: print_golden.json, made by
// tests/make_print_golden.py.

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "common/base/comma_locale_testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

const Device kCpu(DeviceType::kCpu, 0);

DType ParseDType(const std::string& name) {
  for (const DType dtype :
       {DType::kFloat32, DType::kFloat64, DType::kInt64, DType::kUInt8}) {
    if (name == DTypeName(dtype)) return dtype;
  }
  ADD_FAILURE() << "unknown dtype " << name;
  return DType::kFloat32;
}

// A tensor of these numbers: on a CPU device, memory can be written directly.
Tensor Make(const nlohmann::json& golden) {
  const Shape shape(golden.at("shape").get<std::vector<std::int64_t>>());
  const auto texts = golden.at("values").get<std::vector<std::string>>();
  const DType dtype = ParseDType(golden.at("dtype"));
  const Tensor tensor(Memory(kCpu).Allocate(texts.size() * DTypeSize(dtype),
                                            DefaultStream(kCpu)),
                      kCpu, dtype, shape);
  Synchronize(kCpu);  // the block may still be in use by earlier work
  VisitDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      T value;
      if constexpr (std::is_floating_point_v<T>) {
        value = static_cast<T>(std::stod(texts[i]));
      } else {
        value = static_cast<T>(std::stoll(texts[i]));
      }
      std::memcpy(static_cast<T*>(tensor.data()) + i, &value, sizeof(value));
    }
  });
  return tensor;
}

TEST(Print, AsPyTorchDoes) {
  std::ifstream file("common/ops/print_golden.json");
  ASSERT_TRUE(file) << "print_golden.json is not among the test's data";
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_GT(golden.at("cases").size(), 50u);
  for (const nlohmann::json& one : golden.at("cases")) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    EXPECT_EQ(ToString(Make(one)), one.at("text").get<std::string>());
  }
}

TEST(Print, ANonContiguousViewIsReadInOrder) {
  const Tensor x = Make({{"shape", {2, 3}},
                         {"dtype", "int64"},
                         {"values", {"1", "2", "3", "4", "5", "6"}}});
  EXPECT_EQ(ToString(Tensor::View(x, 0, {3, 2}, {1, 3})),
            "tensor([[1, 4],\n"
            "        [2, 5],\n"
            "        [3, 6]], device='cpu:0')");
}

// A summary reads what it shows: these would need terabytes.
TEST(Print, AHugeTensorTakesNoTime) {
  const Tensor one = Full({1}, 3, kCpu, DType::kUInt8);
  EXPECT_EQ(ToString(Expand(one, {std::int64_t{1} << 40})),
            "tensor([3, 3, 3,  ..., 3, 3, 3], device='cpu:0', "
            "dtype=torch.uint8)");
  const Tensor row = Arange(2, kCpu, DType::kInt64);
  EXPECT_EQ(ToString(Expand(row, {std::int64_t{1} << 40, 2})),
            "tensor([[0, 1],\n"
            "        [0, 1],\n"
            "        [0, 1],\n"
            "        ...,\n"
            "        [0, 1],\n"
            "        [0, 1],\n"
            "        [0, 1]], device='cpu:0')");
}

class PrintTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(PrintTest);

// AsPyTorchDoes holds the host's text; views of every device's memory print
// alike.
TEST_P(PrintTest, ViewsPrintAsTheirCopiesDo) {
  for (const Shape& shape : {Shape{1001}, Shape{7, 143}, Shape{1200, 2},
                             Shape{3, 7, 50}, Shape{11, 1, 13, 8}}) {
    const Tensor x = Reshape(Randn({shape.numel()}, device()), shape);
    const int last = x.dim() - 1;
    for (const Tensor& view :
         {x, Transpose(x, 0, last), Slice(x, 0, 1, x.size(0))}) {
      std::string text = ToString(view);
      const std::string copy = ToString(To(Contiguous(view), kCpu));
      const std::string name = device().ToString();
      text.replace(text.find(name), name.size(), kCpu.ToString());
      EXPECT_EQ(text, copy);
    }
  }
}

TEST(Print, HasAPointInEveryLocale) {
  const CommaLocale comma;
  EXPECT_EQ(ToString(FromVector<float>({0.5, 1.25}, {2}, kCpu)),
            "tensor([0.5000, 1.2500], device='cpu:0')");
  EXPECT_EQ(ToString(FromVector<float>({0.5, 1.25e30}, {2}, kCpu)),
            "tensor([5.0000e-01, 1.2500e+30], device='cpu:0')");
}

TEST(Print, AnUndefinedTensorSaysSo) {
  EXPECT_EQ(ToString(Tensor()), "tensor(undefined)");
}

}  // namespace
}  // namespace d2l
