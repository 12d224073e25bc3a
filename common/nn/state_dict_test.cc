// State dicts, in memory and in files.

#include "common/nn/state_dict.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/autograd/tape.h"
#include "common/base/files/atomic_file.h"
#include "common/device/failure.h"
#include "common/device/stream_stall.h"
#include "common/nn/layers.h"
#include "common/nn/sgd.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l::nn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string TempPath(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", getpid(), "-", name);
}

// A module as in DataParallel.
class Wrapped : public Module {
 public:
  explicit Wrapped(Device device) : module_(2, 1, true, device) {}
  Tensor Forward(const Tensor& x) override { return module_(x); }
  std::string Name() const override { return "Wrapped"; }
  void Members(MemberVisitor& visitor) override {
    visitor.Child("module", module_);
  }

 private:
  Linear module_;
};

std::string MessageOf(const absl::StatusOr<IncompatibleKeys>& keys) {
  return keys.ok() ? "none" : std::string(keys.status().message());
}

class StateDictTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(StateDictTest);

TEST_P(StateDictTest, LoadsWhatItSaved) {
  const std::string path = TempPath("state");
  Sequential saved(Linear(3, 2, true, device()), ReLU(),
                   Linear(2, 400, false, device()));
  const auto state = StateDict(saved);
  EXPECT_THAT(state,
              ElementsAre(testing::Key("0.bias"), testing::Key("0.weight"),
                          testing::Key("2.weight")));
  ASSERT_TRUE(SaveStateDict(saved, path, {{"epoch", "3"}}).ok());
  const Device other = OtherDevice(device());
  for (const bool by_file : {true, false}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      Sequential loaded(Linear(3, 2, true, other), ReLU(),
                        Linear(2, 400, false, other));
      To(loaded, dtype);
      const std::vector<Tensor> handles = Parameters(loaded);
      const absl::StatusOr<IncompatibleKeys> keys =
          by_file ? LoadStateDict(loaded, path) : LoadStateDict(loaded, state);
      ASSERT_TRUE(keys.ok()) << keys.status();
      EXPECT_THAT(keys->missing_keys, IsEmpty());
      EXPECT_THAT(keys->unexpected_keys, IsEmpty());
      const auto names = NamedParameters(loaded);
      for (std::size_t i = 0; i < handles.size(); ++i) {
        // Existing handles see the loaded values.
        EXPECT_EQ(handles[i].id(), names[i].second.id());
        EXPECT_EQ(handles[i].dtype(), dtype);
        EXPECT_EQ(handles[i].device(), other);
        EXPECT_EQ(ValuesOf(handles[i]), ValuesOf(state.at(names[i].first)));
      }
    }
  }
  EXPECT_EQ(safetensors::LoadFile(path)->metadata.at("epoch"), "3");
}

// PyTorch 2.15.0's messages, and the remedy.
TEST_P(StateDictTest, SaysWhatIsMissingAndUnexpected) {
  Linear linear(2, 1, true, device());
  Wrapped wrapped(device());
  const std::string path = TempPath("wrapped");
  ASSERT_TRUE(SaveStateDict(wrapped, path).ok());
  const std::vector<double> before = ValuesOf(linear.weight());
  const std::string error =
      "Error(s) in loading state_dict for Linear:\n"
      "\tMissing key(s) in state_dict: \"weight\", \"bias\". \n"
      "\tUnexpected key(s) in state_dict: \"module.bias\", \"module.weight\". ";
  const std::string cure =
      "\n\tAll keys begin with \"module.\": they are of a DataParallel. Load "
      "them into one, DataParallel(net), or load them without the prefix: "
      "nn::LoadStateDict(net, nn::ConsumePrefix(";
  EXPECT_THAT(MessageOf(LoadStateDict(linear, StateDict(wrapped))),
              StartsWith(error + cure));
  EXPECT_THAT(MessageOf(LoadStateDict(linear, path)),
              StartsWith(path + ": " + error + cure));
  // Nothing is loaded, which is an error even without `strict`.
  EXPECT_THAT(
      MessageOf(LoadStateDict(linear, path, /*strict=*/false)),
      StartsWith(path + ": " + error +
                 "\n\tNo key is that of a parameter: nothing was loaded." +
                 cure));
  EXPECT_EQ(ValuesOf(linear.weight()), before);
  // The remedy of the message.
  ASSERT_TRUE(
      LoadStateDict(linear, ConsumePrefix(safetensors::LoadFile(path)->tensors,
                                          "module."))
          .ok());
  EXPECT_EQ(ValuesOf(linear.weight()),
            ValuesOf(StateDict(wrapped).at("module.weight")));
  // The reverse case.
  EXPECT_THAT(MessageOf(LoadStateDict(wrapped, StateDict(linear))),
              HasSubstr("Load them into the network that it is made of: "
                        "nn::LoadStateDict(net.module(), …)."));
}

// The names come from somebody else's file.
TEST_P(StateDictTest, NamesAreShownAndNotAllOfThem) {
  Linear linear(2, 1, true, device());
  safetensors::NamedTensors state = StateDict(linear);
  const Tensor zero = Zeros({}, device());
  state["a\x1b[2J\n权重"] = zero;
  state[std::string(5000, 'b')] = zero;
  for (int i = 0; i < 20'000; ++i) state[absl::StrCat("c", i)] = zero;
  const std::string message = MessageOf(LoadStateDict(linear, state));
  EXPECT_THAT(message, HasSubstr("\"a\\x1b[2J\\n权重\", \"bbb"));
  EXPECT_THAT(message, HasSubstr(" and 19992 more."));
  EXPECT_LT(message.size(), 500u);
}

TEST_P(StateDictTest, ShapesAreAnErrorInAnyCase) {
  Sequential net(Linear(2, 1, true, device()), Linear(3, 2, true, device()));
  const std::vector<double> first = ValuesOf(Parameters(net)[0]);
  const safetensors::NamedTensors state = {{"0.weight", Ones({1, 2}, device())},
                                           {"0.bias", Ones({1}, device())},
                                           {"1.weight", Ones({3, 2}, device())},
                                           {"1.bias", Ones({}, device())}};
  const std::string path = TempPath("shapes");
  ASSERT_TRUE(safetensors::SaveFile(state, path).ok());
  const std::string error =
      "Error(s) in loading state_dict for Sequential:\n"
      "\tsize mismatch for 1.weight: copying a param with shape "
      "torch.Size([3, 2]) from checkpoint, the shape in current model is "
      "torch.Size([2, 3]).\n"
      "\tsize mismatch for 1.bias: copying a param with shape torch.Size([]) "
      "from checkpoint, the shape in current model is torch.Size([2]).";
  for (const bool strict : {true, false}) {
    EXPECT_EQ(MessageOf(LoadStateDict(net, state, strict)), error);
    EXPECT_EQ(MessageOf(LoadStateDict(net, path, strict)), path + ": " + error);
  }
  EXPECT_EQ(ValuesOf(Parameters(net)[0]), first);
}

TEST_P(StateDictTest, LoadsAPartIfNotStrict) {
  const std::string path = TempPath("part");
  const safetensors::NamedTensors state = {{"bias", Ones({1}, device())},
                                           {"more", Ones({1}, device())}};
  ASSERT_TRUE(safetensors::SaveFile(state, path).ok());
  for (const bool by_file : {true, false}) {
    Linear linear(2, 1, true, device());
    const std::vector<double> weight = ValuesOf(linear.weight());
    EXPECT_THAT(MessageOf(LoadStateDict(linear, state)),
                HasSubstr("Missing key(s) in state_dict: \"weight\". \n\t"
                          "Unexpected key(s) in state_dict: \"more\". "));
    const absl::StatusOr<IncompatibleKeys> keys =
        by_file ? LoadStateDict(linear, path, false)
                : LoadStateDict(linear, state, false);
    ASSERT_TRUE(keys.ok()) << keys.status();
    EXPECT_THAT(keys->missing_keys, ElementsAre("weight"));
    EXPECT_THAT(keys->unexpected_keys, ElementsAre("more"));
    EXPECT_EQ(ValuesOf(linear.weight()), weight);
    EXPECT_EQ(ValuesOf(linear.bias()), std::vector<double>{1});
  }
}

TEST_P(StateDictTest, NothingIntoNothing) {
  Sequential net;
  const std::string path = TempPath("nothing");
  ASSERT_TRUE(SaveStateDict(net, path).ok());
  EXPECT_TRUE(LoadStateDict(net, path).ok());
  Linear linear(2, 1, true, device());
  EXPECT_THAT(MessageOf(LoadStateDict(linear, path, false)),
              HasSubstr("nothing was loaded"));
}

TEST_P(StateDictTest, FilesThatAreNone) {
  Linear linear(2, 1, true, device());
  EXPECT_EQ(LoadStateDict(linear, TempPath("none")).status().code(),
            absl::StatusCode::kNotFound);
  const std::string path = TempPath("half");
  ASSERT_TRUE(SaveStateDict(linear, path).ok());
  const std::vector<double> before = ValuesOf(linear.weight());
  const std::string bytes = ReadFile(path);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_EQ(LoadStateDict(linear, path).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(ValuesOf(linear.weight()), before);
  EXPECT_EQ(SaveStateDict(linear, "/dev/full").code(),
            absl::StatusCode::kUnavailable);
}

// Parameters computed from a bad label refuse to be used until they are loaded
// again: then training continues normally.
TEST_P(StateDictTest, LoadingMendsWhatFailed) {
  const std::string path = TempPath("failed");
  Linear net(700, 400, true, device());  // more than one part of a read
  const Tensor x = RandomTensor({2, 700}, device());
  SGD sgd(Parameters(net), {0.1});
  const auto labels_of = [&](std::int64_t label) {
    return FromVector<std::int64_t>({1, label}, {2}, device());
  };
  const auto step = [&](const Tensor& labels) {
    GradientTape tape(Parameters(net));
    sgd.Step(tape.Backward(CrossEntropyLoss(net(x), labels)));
  };
  ASSERT_TRUE(SaveStateDict(net, path).ok());
  step(labels_of(2));
  const std::vector<double> expected = ValuesOf(net.weight());
  for (const bool by_file : {true, false}) {
    ASSERT_TRUE(LoadStateDict(net, path).ok());
    const auto state = safetensors::LoadFile(path, device());
    const Tensor bad = labels_of(400);
    {
      // Without the stall, the step itself would throw on a fast device.
      StreamStall hold(DefaultStream(device()));
      step(bad);
    }
    EXPECT_THROW(WaitToRead(net.weight()), AsyncError);
    RunOnce([] {});  // discards the error
    EXPECT_THROW(WaitToRead(net.weight()), AsyncError);
    const absl::StatusOr<IncompatibleKeys> keys =
        by_file ? LoadStateDict(net, path) : LoadStateDict(net, state->tensors);
    ASSERT_TRUE(keys.ok()) << keys.status();
    step(labels_of(2));
    EXPECT_EQ(ValuesOf(net.weight()), expected);
  }
}

}  // namespace
}  // namespace d2l::nn
