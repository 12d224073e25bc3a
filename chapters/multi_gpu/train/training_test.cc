// A step, resuming at every batch, refused files, and shares of processes.

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/report.h"
#include "chapters/multi_gpu/train/train_step.h"
#include "common/autograd/tape.h"
#include "common/base/files/atomic_file.h"
#include "common/data/dataset.h"
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
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr nn::SGDOptions kWithMomentum = {/*lr=*/0.1, /*momentum=*/0.9};

// Has a buffer that training changes, like a batch normalisation.
class RunningShift : public nn::Module {
 public:
  explicit RunningShift(Device device) : mean_(Zeros({8}, device)) {}

  Tensor Forward(const Tensor& x) override {
    if (training()) {
      const NoGradGuard guard;
      mean_ *= 0.9;
      mean_ += Mean(x, 0) * 0.1;
    }
    return x - Clone(mean_);
  }
  std::string Name() const override { return "RunningShift"; }
  void Members(nn::MemberVisitor& visitor) override {
    visitor.Buffer("mean", mean_);
  }

 private:
  Tensor mean_;
};

// The parts of a training program. 70 images: the last batch is smaller.
struct ARun {
  explicit ARun(std::uint64_t seed, const nn::SGDOptions& options = {0.1},
                std::int64_t batch_size = 16, Device on = AllDevices()[0])
      : device(Seeded(seed, on)),
        net(nn::Flatten(), nn::Linear(784, 8, device), nn::Dropout(0.5),
            RunningShift(device), nn::Linear(8, 10, device)),
        sgd(nn::Parameters(net), options),
        batches(data, {batch_size, true, false, /*seed=*/3}, device) {}

  static Device Seeded(std::uint64_t seed, Device device) {
    ManualSeed(seed, device);
    return device;
  }

  // Trains until these epochs are over, or until that batch of all epochs.
  void Train(std::int64_t epochs, std::int64_t stop_at = 1'000'000) {
    while (batches.position().epoch < epochs) {
      progress.next = batches.position();
      if (progress.next.epoch * batches.batches() + progress.next.batch ==
          stop_at) {
        return;
      }
      const std::optional<Batch> batch = batches.Next();
      if (!batch) {
        progress.epochs.push_back({1, progress.loss_sum, 0, 0.5});
        progress.loss_sum = 0;
        progress.next = batches.position();
        continue;
      }
      const StepResult result = TrainStep(net, sgd, *batch);
      progress.loss_sum += Item(result.loss);
    }
  }

  std::string StateInHex() {
    const TrainingState state = CopyState(net, sgd, {device});
    std::string text =
        absl::StrCat(state.generators[0].seed, " ", state.generators[0].offset);
    for (const auto& [name, tensor] : state.tensors) {
      absl::StrAppend(&text, "\n", name);
      for (const float value : ToVector<float>(tensor)) {
        std::uint32_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        absl::StrAppend(&text, " ", absl::Hex(bits));
      }
    }
    return text;
  }

  const Dataset data = GenerateImages(70);
  const Dataset test = GenerateImages(30, 0, 70);
  const Device device;
  nn::Sequential net;
  nn::SGD sgd;
  DataLoader batches;
  DataLoader batches_of_test{test, {7, false}, device};
  TrainingProgress progress;
};

TEST(TrainStep, IsForwardBackwardAndAnUpdate) {
  ARun run(1, kWithMomentum);
  ARun plain(1, kWithMomentum);
  ManualSeed(5, run.device);  // Dropout's
  std::vector<double> figures;
  while (const std::optional<Batch> batch = run.batches.Next()) {
    const StepResult result = TrainStep(run.net, run.sgd, *batch);
    figures.push_back(Item(result.loss));
    figures.push_back(Item(result.right));
  }
  ManualSeed(5, run.device);
  std::vector<double> wanted;
  while (const std::optional<Batch> batch = plain.batches.Next()) {
    GradientTape tape(nn::Parameters(plain.net));
    const Tensor logits = plain.net(batch->images);
    const Tensor loss = nn::CrossEntropyLoss(logits, batch->labels);
    plain.sgd.Step(tape.Backward(loss));
    const auto labels = ToVector<std::int64_t>(batch->labels);
    const auto guesses = ToVector<std::int64_t>(ArgMax(logits, 1));
    int right = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      right += guesses[i] == labels[i] ? 1 : 0;
    }
    wanted.push_back(Item(loss));
    wanted.push_back(right);
  }
  EXPECT_EQ(figures, wanted);
  EXPECT_TRUE(run.StateInHex() == plain.StateInHex());
}

TEST(CountRight, IsOfEveryImageWithoutDropout) {
  ARun run(1);
  const std::int64_t counted = *CountRight(run.net, run.batches_of_test);
  EXPECT_TRUE(run.net.training());
  run.net.Eval();
  std::int64_t right = 0;
  while (const std::optional<Batch> batch = run.batches_of_test.Next()) {
    right += Item<std::int64_t>(
        Sum(ArgMax(run.net(batch->images), 1) == batch->labels));
  }
  EXPECT_EQ(counted, right);
  EXPECT_EQ(CountRight(run.net, run.batches_of_test, [] { return true; }),
            std::nullopt);
}

// Uses momentum, which begins undefined, a buffer, and Dropout, which draws
// random numbers.
TEST(Checkpoint, ResumedAtAnyBatchEqualsTheUnbrokenRun) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/run.safetensors";
  ARun unbroken(1, kWithMomentum);
  unbroken.Train(2);  // of 5 batches
  const std::string expected = unbroken.StateInHex();
  for (int stop_at = 0; stop_at <= 10; ++stop_at) {
    ARun broken(1, kWithMomentum);
    broken.Train(2, stop_at);
    ASSERT_TRUE(
        SaveCheckpoint({{{"net", "a net"}},
                        broken.progress,
                        CopyState(broken.net, broken.sgd, {broken.device})},
                       file)
            .ok());

    ARun resumed(99, kWithMomentum);
    const absl::StatusOr<Checkpoint> loaded =
        LoadCheckpoint(file, resumed.device);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->options.at("net"), "a net");
    ASSERT_TRUE(
        RestoreState(loaded->state, resumed.net, resumed.sgd, {resumed.device})
            .ok());
    resumed.batches.SetPosition(loaded->progress.next);
    resumed.progress = loaded->progress;
    resumed.Train(2);
    EXPECT_TRUE(resumed.StateInHex() == expected) << stop_at;
    ASSERT_EQ(resumed.progress.epochs.size(), 2u);
    for (int epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(resumed.progress.epochs[epoch].loss,
                unbroken.progress.epochs[epoch].loss);
    }
  }
}

TEST(Checkpoint, TheWeightsHaveTheNetworksNames) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/run.safetensors";
  ARun run(1, kWithMomentum);
  run.Train(1);
  TrainingState state = CopyState(run.net, run.sgd, {run.device});
  ASSERT_TRUE(SaveCheckpoint({{}, run.progress, state}, file).ok());
  ARun other(2);
  const auto keys = nn::LoadStateDict(other.net, file, /*strict=*/false);
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_THAT(keys->missing_keys, IsEmpty());
  EXPECT_THAT(keys->unexpected_keys, Each(StartsWith("momentum.")));
  EXPECT_EQ(ToVector<float>(nn::StateDict(other.net).at("4.weight")),
            ToVector<float>(state.tensors.at("4.weight")));
}

TEST(Checkpoint, OptionsOfAFileArePrintable) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/run.safetensors";
  Checkpoint checkpoint;
  checkpoint.options = {{"net", "\x1b[2J\n网"},
                        {"data", std::string(5000, 'x')}};
  ASSERT_TRUE(SaveCheckpoint(checkpoint, file).ok());
  const auto loaded = LoadCheckpointHeader(file);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->options.at("net"), "\\x1b[2J\\n网");
  EXPECT_EQ(loaded->options.at("data").size(), 1000u);
}

TEST(Checkpoint, AnotherNetworksStateChangesNothing) {
  ARun run(1);
  const std::string before = run.StateInHex();
  const auto refusal = [&](const std::function<void(TrainingState&)>& change) {
    TrainingState state = CopyState(run.net, run.sgd, {run.device});
    change(state);
    const absl::Status status =
        RestoreState(state, run.net, run.sgd, {run.device});
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(run.StateInHex() == before);
    return std::string(status.message());
  };
  EXPECT_THAT(refusal([](TrainingState& s) { s.generators.clear(); }),
              HasSubstr("on 0 devices, and there are 1"));
  EXPECT_THAT(refusal([](TrainingState& s) { s.tensors.erase("4.bias"); }),
              HasSubstr("Missing key(s) in state_dict: \"4.bias\""));
  EXPECT_THAT(refusal([&](TrainingState& s) {
                s.tensors["4.bias"] = Ones({9}, run.device);
              }),
              AllOf(HasSubstr("Size([9])"), HasSubstr("Size([10])")));
  EXPECT_THAT(refusal([&](TrainingState& s) {
                s.tensors["5.bias"] = Ones({10}, run.device);
              }),
              HasSubstr("Unexpected key(s) in state_dict: \"5.bias\""));
  EXPECT_THAT(refusal([&](TrainingState& s) {
                s.tensors["momentum.1.weight"] = Ones({8, 784}, run.device);
              }),
              HasSubstr("the momentum of 1 parameters, and Sequential has 4"));
  // As many, but of another parameter, or of another shape.
  for (const auto& [name, size] : {std::pair{"5.bias", 10}, {"4.bias", 9}}) {
    EXPECT_THAT(
        refusal([&, name = name, size = size](TrainingState& s) {
          for (const char* key : {"1.weight", "1.bias", "4.weight"}) {
            s.tensors[absl::StrCat("momentum.", key)] =
                OnesLike(s.tensors[key]);
          }
          s.tensors[absl::StrCat("momentum.", name)] = Ones({size}, run.device);
        }),
        HasSubstr("the momentum of 3 parameters, and Sequential has 4"));
  }
}

TEST(Checkpoint, FilesThatAreNoneAreRefused) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/bad.safetensors";
  const Device device = AllDevices()[0];
  const auto refusal = [&](const safetensors::Metadata& metadata) {
    EXPECT_TRUE(
        safetensors::SaveFile({{"a", Ones({2}, device)}}, file, metadata).ok());
    const absl::Status status = LoadCheckpoint(file, device).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(file + " is not a checkpoint of train: "));
    return std::string(status.message());
  };
  const std::string format = "d2l training checkpoint 3";
  const std::string good =
      R"({"options": {}, "generators": [{"seed": 1, "offset": 2}],
          "progress": {"next": {"epoch": 0, "batch": 1}, "samples": 3,
                       "right": 1, "loss_sum": 2.5, "seconds": 1,
                       "epochs": []}})";
  ASSERT_TRUE(
      safetensors::SaveFile({{"a", Ones({2}, device)}}, file, {{format, good}})
          .ok());
  ASSERT_TRUE(LoadCheckpoint(file, device).ok());

  EXPECT_THAT(refusal({}), HasSubstr("nn::LoadStateDict"));
  EXPECT_THAT(refusal({{"d2l training checkpoint 2", good}}),
              HasSubstr("no \"" + format));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refusal({{format, text}});
  };
  for (const char* name : {"options", "progress", "generators"}) {
    const std::string missing = changed(name, "other");
    EXPECT_THAT(missing, AllOf(HasSubstr(name), HasSubstr("not found")));
  }
  for (const std::string& text :
       {std::string("{"), std::string("[3]"), std::string(100000, '[')}) {
    EXPECT_THAT(refusal({{format, text}}),
                HasSubstr("not the JSON of a checkpoint"));
  }
  const std::string thrown =
      refusal({{format, "\"\\u001b" + std::string(5000, 'x')}});
  EXPECT_THAT(thrown, Not(HasSubstr("\x1b")));
  EXPECT_LT(thrown.size(), 500u);
  changed("{}", R"({"net": 3})");
  changed("\"seed\": 1", "\"seed\": \"1\"");
  changed("\"seed\": 1, ", "");
  changed("\"batch\": 1", "\"batch\": \"1\"");
  changed("2.5", "null");
  changed("\"epoch\": 0", "\"epoch\": 1");
  changed("[]", "[[1, 2]]");
}

TrainingProgress Progress() {
  TrainingProgress progress;
  progress.epochs = {{2, 1.5, 0.4, 0.5}, {2, 0.75, 0.8, 0.7}};
  progress.next = {2, 5};
  progress.samples = 500;
  progress.right = 400;
  progress.loss_sum = 250;
  progress.seconds = 1;
  return progress;
}

TEST(ProgressView, ElsewhereThanOnATerminalAreLinesAlone) {
  std::ostringstream out;
  ProgressView view(out, /*rows=*/0, {10, 1000});
  view.Look(Progress());
  EXPECT_EQ(out.str(), "");
  view.Epoch(Progress());
  view.Line("Saved");
  EXPECT_EQ(out.str(),
            "epoch  2/10  loss 0.7500  training 0.8000  test 0.7000  2.00 s  "
            "500/s\nSaved\n");
}

TEST(ProgressView, ATerminalHasCurvesAndABarThatGoAway) {
  std::ostringstream out;
  {
    ProgressView view(out, /*rows=*/40, {10, 1000});
    view.Look(Progress());
    EXPECT_THAT(out.str(),
                AllOf(HasSubstr("test accuracy"), HasSubstr("training loss"),
                      HasSubstr("epoch 3/10 ["), HasSubstr("#"),
                      HasSubstr("500/s, loss 0.500, accuracy 0.800, "
                                "0:15 left\n")));
  }
  EXPECT_THAT(out.str(), HasSubstr("\033[J"));
  // More samples than an epoch has.
  std::ostringstream full;
  ProgressView overfull(full, /*rows=*/5, {10, 1});
  overfull.Look(Progress());
  EXPECT_THAT(full.str(), HasSubstr("##]"));
  // The terminal is too low for the curves.
  std::ostringstream low;
  ProgressView view(low, /*rows=*/5, {10, 1000});
  view.Look(Progress());
  EXPECT_THAT(low.str(), AllOf(HasSubstr("epoch 3/10 ["),
                               Not(HasSubstr("test accuracy"))));
}

}  // namespace
}  // namespace d2l
