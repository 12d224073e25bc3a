// Checkpoints: resuming at every batch, and refused files.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "chapters/multi_gpu/train/train.h"
#include "common/autograd/tape.h"
#include "common/base/files/atomic_file.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device_table.h"
#include "common/device/testing/testing.h"
#include "common/nn/layers.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A training of 5 batches an epoch, the last one smaller, with momentum and
// with buffers.
struct SmallTraining {
  explicit SmallTraining(std::uint64_t seed)
      : device(Seeded(seed)),
        net(nn::BatchNorm2d(1, /*eps=*/1e-5, /*momentum=*/0.1, device),
            nn::Flatten(), nn::Linear(784, 10, device)) {}

  static Device Seeded(std::uint64_t seed) {
    ManualSeed(seed, AllDevices()[0]);
    return AllDevices()[0];
  }

  // Trains from progress.next on, until these batches are over.
  void Train(std::int64_t batches_in_all) {
    batches.SetPosition(progress.next);
    while (progress.next.epoch * 5 + progress.next.batch < batches_in_all) {
      const std::optional<Batch> batch = batches.Next();
      progress.next = batches.position();
      if (!batch) {
        progress.epochs.push_back({});
        continue;
      }
      GradientTape tape(nn::Parameters(net));
      const Tensor y = net(batch->images);
      sgd.Step(tape.Backward(nn::CrossEntropyLoss(y, batch->labels)));
    }
  }

  std::vector<float> State() {
    std::vector<float> state;
    const auto add = [&](const Tensor& x) {
      const std::vector<float> values = ToVector<float>(To(x, DType::kFloat32));
      state.insert(state.end(), values.begin(), values.end());
    };
    for (const auto& [name, tensor] : nn::NamedState(net)) add(tensor);
    for (const Tensor& x : sgd.momentum_buffers()) {
      if (x.defined()) add(x);
    }
    return state;
  }

  const Dataset data = GenerateImages(70);
  const Device device;
  nn::Sequential net;
  nn::SGD sgd{nn::Parameters(net), {/*lr=*/0.1, /*momentum=*/0.9}};
  DataLoader batches{data, {16}, device};
  TrainingProgress progress;
};

class CheckpointTest : public testing::Test {
 protected:
  const TemporaryDirectory directory_;
  const std::string file_ = directory_.path() + "/run.safetensors";
};

TEST_F(CheckpointTest, ResumedAtAnyBatchEqualsTheUnbrokenRun) {
  SmallTraining unbroken(1);
  unbroken.Train(10);
  for (int stop_at = 0; stop_at <= 10; ++stop_at) {
    SmallTraining broken(1);
    broken.Train(stop_at);
    ASSERT_TRUE(SaveCheckpoint({{{"net", "a"}}, broken.progress}, broken.net,
                               broken.sgd, file_)
                    .ok());
    SmallTraining resumed(99);
    const absl::StatusOr<Checkpoint> loaded = LoadCheckpoint(file_);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->options.at("net"), "a");
    ASSERT_TRUE(LoadState(file_, resumed.net, resumed.sgd).ok());
    resumed.progress = loaded->progress;
    resumed.Train(10);
    EXPECT_TRUE(resumed.State() == unbroken.State()) << stop_at;
  }
}

TEST_F(CheckpointTest, AnotherNetworksStateChangesNothing) {
  SmallTraining run(1);
  run.Train(1);
  const std::vector<float> before = run.State();
  ASSERT_TRUE(SaveCheckpoint({}, run.net, run.sgd, file_).ok());
  const safetensors::NamedTensors saved =
      safetensors::LoadFile(file_, run.device)->tensors;
  const auto refusal = [&](const std::string& name, const Tensor& value) {
    safetensors::NamedTensors tensors = saved;
    tensors.erase(name);
    if (value.defined()) tensors[name] = value;
    EXPECT_TRUE(safetensors::SaveFile(tensors, file_).ok());
    const absl::Status status = LoadState(file_, run.net, run.sgd);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(run.State() == before);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal("2.bias", Tensor()),
              HasSubstr("Missing key(s) in state_dict: \"2.bias\""));
  EXPECT_THAT(refusal("2.bias", Ones({9}, run.device)),
              AllOf(HasSubstr("Size([9])"), HasSubstr("Size([10])")));
  EXPECT_THAT(refusal("5.bias", Ones({10}, run.device)),
              HasSubstr("Unexpected key(s) in state_dict: \"5.bias\""));
  // None, or of another shape.
  for (const Tensor& momentum : {Tensor(), Ones({9}, run.device)}) {
    EXPECT_THAT(refusal("momentum.2.bias", momentum),
                HasSubstr("the momentum of 3 parameters, and Sequential has "
                          "4"));
  }
}

TEST_F(CheckpointTest, FilesThatAreNoneAreRefused) {
  const std::string format = "d2l training checkpoint 4";
  const std::string good =
      R"({"options": {}, "progress": {"next": {"epoch": 0, "batch": 1},
          "samples": 3, "right": 1, "loss_sum": 2.5, "seconds": 1,
          "epochs": []}})";
  const auto load = [&](const safetensors::Metadata& metadata) {
    const Tensor a = Ones({2}, AllDevices()[0]);
    EXPECT_TRUE(safetensors::SaveFile({{"a", a}}, file_, metadata).ok());
    return std::string(LoadCheckpoint(file_).status().message());
  };
  EXPECT_EQ(load({{format, good}}), "");
  EXPECT_THAT(load({}),
              AllOf(HasSubstr(file_ + " is not a checkpoint of train"),
                    HasSubstr("nn::LoadStateDict")));
  EXPECT_THAT(load({{"d2l training checkpoint 3", good}}),
              HasSubstr("no \"" + format));
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{
           {"options", "other"},
           {"progress", "other"},
           {"{}", R"({"net": 3})"},
           {"\"batch\": 1", "\"batch\": \"1\""},
           {"2.5", "null"},
           {"\"epoch\": 0", "\"epoch\": 1"},
           {"[]", "[[1, 2]]"},
           {good, "{"},
           {good, std::string(100'000, '[')},
           {good, "\"\\u001b" + std::string(5000, 'x')}}) {
    std::string text = good;
    const std::string said =
        load({{format, text.replace(text.find(from), from.size(), to)}});
    EXPECT_THAT(said, AllOf(HasSubstr(file_ + " is not a checkpoint of train"),
                            Not(HasSubstr("\x1b"))));
    EXPECT_LT(said.size(), 500u);
  }
}

}  // namespace
}  // namespace d2l
