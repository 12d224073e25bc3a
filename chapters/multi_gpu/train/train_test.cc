// The training program as a user sees it: output, files, signals, and refused
// flags. Never speed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/train_testing.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/safetensors/safetensors.h"
#include "nlohmann/json.hpp"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST_F(TrainTest, HelpSaysWhatEachFlagDoes) {
  const ProgramResult r = Train({"--help"});
  EXPECT_EQ(r.exit_code, 0);
  for (const char* flag : {"net",
                           "init",
                           "epochs",
                           "batch_size",
                           "lr",
                           "momentum",
                           "seed",
                           "data_dir",
                           "images",
                           "save",
                           "resume",
                           "devices",
                           "num_gpus",
                           "allreduce",
                           "split",
                           "max_in_flight",
                           "mpi_timeout_s",
                           "check_every",
                           "json",
                           "svg",
                           "shard",
                           "report_memory",
                           "device_memory_mb"}) {
    EXPECT_THAT(r.output, HasSubstr(absl::StrCat("\n--", flag, " (default: ")));
    EXPECT_THAT(r.output, ContainsRegex(absl::StrCat("Example: .*--", flag)));
  }
  EXPECT_THAT(r.output, HasSubstr("970 steps"));
  for (const absl::string_view line : absl::StrSplit(r.output, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST_F(TrainTest, NamesTheFlagThatIsNearToAnUnknownOne) {
  for (const auto& [words, wanted] :
       {std::pair{With({}, {"--lr", "-1", "--epoch=3"}),
                  "--epoch=3 asked for; there is no such flag. Say "
                  "--epochs=3, or --help for a list of all flags."},
        {With({}, {"-batchsize"}), "Say --batch_size, or --help"},
        {With({}, {"--nonsense"}),
         "--nonsense asked for; there is no such flag. Say --help for a list"},
        {With({}, {"--epochs=1", "--", "--epoch=3"}),
         "\"--epoch=3\" is not a flag"}}) {
    const ProgramResult r = Train(words);
    EXPECT_EQ(r.exit_code, 1);
    EXPECT_THAT(Unwrapped(r.output), HasSubstr(wanted));
  }
}

TEST_F(TrainTest, EndsWithTheCoursesLineAndNamesTheData) {
  const ProgramResult r = Train(With(
      kSmall, {"--epochs=3", "--json=" + File("a.json"),
               "--svg=" + File("a.svg"), "--save=" + File("a.safetensors")}));
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(
      r.output,
      AllOf(
          HasSubstr("generated data, seed 0: 600 images to train on, 100 to"),
          ContainsRegex("\nepoch 3/3  loss [0-9.]+  training 0\\.[0-9]+  "
                        "test 0\\.[0-9]+  [0-9.]+ s  [0-9]+/s\n"),
          ContainsRegex("\ntest accuracy [01]\\.[0-9][0-9] on generated data, "
                        "seed 0, [0-9.]+ s/epoch, on \\[cpu:0\\]\n")));
  // It is no terminal: nothing is drawn or overwritten.
  EXPECT_THAT(r.output, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\r"))));

  const auto json = nlohmann::json::parse(ReadFile(File("a.json")));
  EXPECT_EQ(json["data"]["name"], "generated data, seed 0");
  EXPECT_EQ(json["options"]["momentum"], "0.5");
  EXPECT_EQ(json["parameters"], 784 * 256 + 256 + 256 * 10 + 10);
  EXPECT_EQ(json["devices"][0]["name"], "cpu:0");
  ASSERT_EQ(json["epochs"].size(), 3u);
  EXPECT_LT(json["epochs"][2]["training_loss"],
            json["epochs"][0]["training_loss"]);
  EXPECT_THAT(ReadFile(File("a.svg")),
              AllOf(HasSubstr("<svg"), HasSubstr("test accuracy")));
}

TEST_F(TrainTest, TrainsTheBooksLeNetUnlessAnotherNetIsNamed) {
  const ProgramResult r = Train({"--images=300", "--epochs=1"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, AllOf(HasSubstr("lenet, 129068 parameters"),
                              HasSubstr("\ntest accuracy 0.")));
}

TEST_F(TrainTest, TrainsTheBooksResNet) {
  const ProgramResult r =
      Train({"--net=resnet18", "--images=4", "--batch_size=4", "--epochs=1"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("resnet18, 11175818 parameters"));
}

TEST_F(TrainTest, ASeedGivesTheSameNumbers) {
  std::vector<std::string> bits;
  for (const char* seed : {"--seed=1", "--seed=1", "--seed=2"}) {
    const std::string file = File("seed.safetensors");
    Train(With(kSmall, {"--epochs=1", seed, "--save=" + file}));
    bits.push_back(InHex(file));
  }
  EXPECT_EQ(bits[0], bits[1]);
  EXPECT_NE(bits[0], bits[2]);
}

TEST_F(TrainTest, ShardsChangeNoBitAndMemoryIsReported) {
  std::vector<std::string> bits;
  for (const char* shard : {"none", "optimizer", "gradients", "parameters"}) {
    const std::string file = File("shard.safetensors");
    const ProgramResult r = Train(
        With(kSmall, {"--epochs=1", "--devices=cpu:0,cpu:1", "--report_memory",
                      absl::StrCat("--shard=", shard), "--save=" + file}));
    EXPECT_EQ(r.exit_code, 0) << r.output;
    bits.push_back(InHex(file));
    for (const char* name : {"cpu:0", "cpu:1"}) {
      EXPECT_THAT(r.output, HasSubstr(absl::StrCat(name, ", measured")));
      EXPECT_THAT(r.output, HasSubstr(absl::StrCat(name, ", predicted")));
    }
  }
  EXPECT_EQ(bits[1], bits[0]);
  EXPECT_EQ(bits[2], bits[0]);
  EXPECT_EQ(bits[3], bits[0]);
  const ProgramResult r =
      Train(With(kSmall, {"--devices=cpu:0,cpu:1", "--shard=gradient"}));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("Say --shard=gradients."));
  const ProgramResult one = Train(With(kSmall, {"--shard=gradients"}));
  EXPECT_EQ(one.exit_code, 1);
  EXPECT_THAT(Unwrapped(one.output), HasSubstr("there is 1. Say --num_gpus=2"));
}

// A whole batch, also if the last one of an epoch is not.
TEST_F(TrainTest, ReportsTheMemoryOfAWholeBatch) {
  std::vector<std::string> lines;
  for (const char* images : {"--images=60", "--images=61", "--images=119"}) {
    const ProgramResult r = Train({"--net=linear", "--batch_size=60", images,
                                   "--epochs=1", "--report_memory"});
    EXPECT_EQ(r.exit_code, 0) << r.output;
    lines.push_back(r.output.substr(r.output.find("cpu:0, predicted")));
    EXPECT_EQ(lines.back(), lines[0]);
  }
}

// Testing is with batches that are not larger.
TEST_F(TrainTest, TestsInTheMemoryOfAStep) {
  const ProgramResult r =
      Train({"--net=lenet", "--images=600", "--batch_size=16", "--epochs=1",
             "--device_memory_mb=5"});
  EXPECT_EQ(r.exit_code, 0) << r.output;
}

TEST_F(TrainTest, TakesNoMoreMemoryThanItMay) {
  const ProgramResult r =
      Train({"--net=resnet18", "--images=8", "--batch_size=4", "--epochs=1",
             "--device_memory_mb=64"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(Unwrapped(r.output), HasSubstr("[out of memory]"));
  EXPECT_EQ(Train({"--net=linear", "--device_memory_mb=-1"}).exit_code, 1);
}

// The signal may come at any time, also between two epochs.
TEST_F(TrainTest, WhatCtrlCSavedGoesOnAsTheUnbrokenRun) {
  for (const int number : {SIGINT, SIGTERM}) {
    const std::string file = File("it's broken.safetensors");
    const std::string quoted = "'" + File("it'\\''s broken.safetensors'");
    Child child(
        With(With({kProgram}, kSmall), {"--epochs=1000000", "--save=" + file}),
        Child::Output::kPipe);
    ASSERT_TRUE(child.ReadUntil("epoch       3/1000000")) << child.output;
    child.Kill(number);
    EXPECT_EQ(child.Wait(), 128 + number) << child.output;
    EXPECT_THAT(
        child.output,
        HasSubstr("  bazel run //chapters/multi_gpu:train -- --resume=" +
                  quoted + " --devices=cpu:0\n"));
    std::smatch found;
    ASSERT_TRUE(std::regex_search(
        child.output, found,
        std::regex("Saved after batch ([0-9]+) of 19 of epoch ([0-9]+): ")))
        << child.output;
    const std::string epochs =
        absl::StrCat("--epochs=", std::stoi(found[2]) + 1);

    const ProgramResult resumed = Train({"--resume=" + file, epochs});
    EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
    EXPECT_THAT(resumed.output, HasSubstr("Resumed from " + file));
    const std::string unbroken = File("unbroken.safetensors");
    Train(With(kSmall, {epochs, "--save=" + unbroken}));
    EXPECT_TRUE(InHex(file) == InHex(unbroken));
    EXPECT_THAT(InHex(file), HasSubstr("momentum.3.weight "));
  }
}

TEST_F(TrainTest, SeveralDevicesGoOnAsTheUnbrokenRun) {
  const std::vector<std::string> flags =
      With(kSmall, {"--devices=cpu:0,cpu:1,cpu:2", "--num_gpus=2",
                    "--split=3:1", "--allreduce=ring", "--max_in_flight=1"});
  const std::string file = File("broken.safetensors");
  const ProgramResult first =
      Train(With(flags, {"--epochs=1", "--save=" + file}));
  EXPECT_EQ(first.exit_code, 0) << first.output;
  EXPECT_THAT(first.output, HasSubstr(" s/epoch, on [cpu:0, cpu:1]\n"));
  const std::string one = InHex(file);
  const ProgramResult resumed = Train({"--resume=" + file, "--epochs=2"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  const std::string unbroken = File("unbroken.safetensors");
  Train(With(flags, {"--epochs=2", "--save=" + unbroken}));
  EXPECT_TRUE(InHex(file) == InHex(unbroken));
  EXPECT_FALSE(InHex(file) == one);
  const ProgramResult other =
      Train({"--resume=" + file, "--num_gpus=1", "--epochs=3"});
  EXPECT_THAT(Unwrapped(other.output),
              HasSubstr("--num_gpus=1 asked for; the training in " + file +
                        " has --num_gpus=2"));
  const ProgramResult fewer =
      Train({"--resume=" + file, "--devices=cpu:0", "--epochs=3"});
  EXPECT_THAT(Unwrapped(fewer.output),
              HasSubstr("is on 2 devices; --devices=cpu:0 has 1. Leave "
                        "--devices out"));
}

TEST_F(TrainTest, SaysThatWhatItGoesOnWithIsOther) {
  const std::string file = File("a.safetensors");
  Train(With(kSmall, {"--epochs=1", "--save=" + file}));
  absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(file, Device());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT(checkpoint->options["hardware"], HasSubstr("cpu ("));
  const ProgramResult same = Train({"--resume=" + file, "--epochs=2"});
  EXPECT_THAT(same.output, Not(HasSubstr("It was made with")));
  checkpoint->options["hardware"] = "cuda (a GPU)";
  checkpoint->options["test_data"] = "others";
  ASSERT_TRUE(SaveCheckpoint(*checkpoint, file).ok());
  const ProgramResult other = Train({"--resume=" + file, "--epochs=2"});
  EXPECT_EQ(other.exit_code, 0);
  EXPECT_THAT(Unwrapped(other.output),
              AllOf(HasSubstr("It was made with cuda (a GPU), and this is cpu"),
                    HasSubstr("It was made with others, and this is 100 ")));
  checkpoint->progress.next.batch = 20;
  ASSERT_TRUE(SaveCheckpoint(*checkpoint, file).ok());
  const ProgramResult beyond = Train({"--resume=" + file, "--epochs=2"});
  EXPECT_EQ(beyond.exit_code, 1);
  EXPECT_THAT(Unwrapped(beyond.output),
              HasSubstr("there is no batch 20 of epoch 1"));
}

TEST_F(TrainTest, ASecondCtrlCEndsItAtOnce) {
  Child child(
      With(With({kProgram}, kSmall), {"--epochs=1000000", "--save=/dev/null"}),
      Child::Output::kPipe);
  ASSERT_TRUE(child.ReadUntil("epoch       1/1000000")) << child.output;
  // Both signals arrive before the thread can stop in order.
  child.Kill(SIGSTOP);
  child.Kill(SIGINT);
  child.Kill(SIGTERM);
  child.Kill(SIGCONT);
  const int exit_code = child.Wait();
  EXPECT_TRUE(exit_code == 128 + SIGINT || exit_code == 128 + SIGTERM)
      << exit_code;
  EXPECT_THAT(child.output, Not(HasSubstr("Saved after")));
}

TEST_F(TrainTest, AKilledRunGoesOnFromItsLastEpoch) {
  const std::string file = File("killed.safetensors");
  Child child(
      With(With({kProgram}, kSmall), {"--epochs=1000000", "--save=" + file}),
      Child::Output::kPipe);
  ASSERT_TRUE(child.ReadUntil("epoch       4/1000000")) << child.output;
  child.Kill(SIGKILL);
  EXPECT_EQ(child.Wait(), 128 + SIGKILL);
  const absl::StatusOr<Checkpoint> left = LoadCheckpoint(file, Device());
  ASSERT_TRUE(left.ok()) << left.status();
  const std::string epochs =
      absl::StrCat("--epochs=", left->progress.epochs.size() + 1);
  Train({"--resume=" + file, epochs});
  const std::string unbroken = File("unbroken.safetensors");
  Train(With(kSmall, {epochs, "--save=" + unbroken}));
  EXPECT_TRUE(InHex(file) == InHex(unbroken));
}

TEST_F(TrainTest, ATerminalShowsCurvesAndABar) {
  const std::string file = File("terminal.safetensors");
  Child child(
      With(With({kProgram}, kSmall), {"--epochs=1000000", "--save=" + file}),
      Child::Output::kTerminal);
  ASSERT_TRUE(child.ReadUntil("epoch       3/1000000")) << child.output;
  EXPECT_THAT(child.output, AllOf(HasSubstr("test accuracy"),
                                  ContainsRegex("/1000000 \\[[# ]*\\]"),
                                  HasSubstr("\033[J")));
  child.Type('\3');  // Ctrl-C
  EXPECT_EQ(child.Wait(), 130) << child.output;
  EXPECT_THAT(child.output, HasSubstr("Saved after batch"));
  EXPECT_TRUE(LoadCheckpoint(file, Device()).ok());
}

TEST_F(TrainTest, SaysWhereTheLossBecameNaN) {
  const ProgramResult r =
      Train(With(kSmall, {"--lr=1e30", "--save=" + File("nan.safetensors")}));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(Unwrapped(r.output),
              AllOf(ContainsRegex("in batch [0-9]+ of epoch 1, where the loss "
                                  "was [A-Za-z0-9+.]+\\. Training stopped"),
                    HasSubstr("smaller learning rate: --lr=1e+29.")));
  // Includes the last step, after which no loss is computed.
  const ProgramResult last =
      Train({"--net=linear", "--images=20", "--lr=1e300", "--batch_size=20",
             "--epochs=1", "--devices=cpu:0", "--save=" + File("last")});
  EXPECT_THAT(Unwrapped(last.output), HasSubstr("in batch 1 of epoch 1"));
  EXPECT_EQ(ReadFile(File("last")), "");
  // The message offers only files that this run has saved.
  const std::string first = File("first.safetensors");
  Train(With(kSmall, {"--epochs=1", "--save=" + first}));
  const ProgramResult resumed =
      Train({"--resume=" + first, "--save=" + File("nan.safetensors"),
             "--lr=1e30", "--epochs=2"});
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_THAT(Unwrapped(resumed.output),
              AllOf(HasSubstr("of epoch 2, where"),
                    HasSubstr("smaller learning rate: --lr=1e+29. ")));
}

TEST_F(TrainTest, SaysThatItIsStillAtChance) {
  const ProgramResult r =
      Train(With(kSmall, {"--init=book", "--lr=1e-9", "--epochs=4"}));
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("Still at chance after 38 steps: try --init=xavier. "
                        "The book's N(0, 0.01)"));
  EXPECT_EQ(r.output.find("Still"), r.output.rfind("Still"));
}

TEST_F(TrainTest, AFullDiskIsSaidAndIsAnError) {
  const ProgramResult r =
      Train(With(kSmall, {"--epochs=1", "--save=/dev/full"}));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, AllOf(HasSubstr("/dev/full: No space left on device"),
                              HasSubstr("test accuracy")));
}

TEST_F(TrainTest, WhatCannotBeWrittenIsSaidAndIsAnError) {
  for (const char* flag : {"--json=/dev/full", "--svg=/dev/full"}) {
    const ProgramResult r = Train(With(kSmall, {"--epochs=1", flag}));
    EXPECT_EQ(r.exit_code, 1);
    EXPECT_THAT(Unwrapped(r.output),
                HasSubstr("Error: cannot write /dev/full: No space left on "
                          "device. The disk is full."));
  }
  const ProgramResult r = RunProgram(
      "sh", With({"-c", "ulimit -f 1; exec \"$0\" \"$@\"", kProgram},
                 With(kSmall, {"--epochs=1", "--save=" + File("a")})));
  EXPECT_EQ(r.exit_code, 1) << r.output;
  EXPECT_THAT(Unwrapped(r.output),
              AllOf(HasSubstr("/a: File too large. ulimit -f limits"),
                    HasSubstr("test accuracy")));
}

TEST_F(TrainTest, MoreImagesThanMemoryAreRefused) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs all addresses";
#endif
  const ProgramResult r = RunProgram(
      "sh", With({"-c", "ulimit -v 500000; exec \"$0\" \"$@\"", kProgram},
                 With(kSmall, {"--epochs=1", "--images=1000000"})));
  EXPECT_EQ(r.exit_code, 1) << r.output;
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("Error: --images=1000000 asked for, which take 1.05 GB "
                        "of memory; 0."));
}

// The book's LeNet in PyTorch: net.load_state_dict(load_file(FILE),
// strict=False) loads the tensors with these names.
TEST_F(TrainTest, PyTorchLoadsWhatWasSaved) {
  const std::string file = File("lenet.safetensors");
  const ProgramResult r = Train({"--images=60", "--epochs=1", "--momentum=0.5",
                                 "--devices=cpu:0", "--save=" + file});
  ASSERT_EQ(r.exit_code, 0) << r.output;
  const auto saved = safetensors::LoadFile(file, Device());
  ASSERT_TRUE(saved.ok()) << saved.status();
  std::vector<std::string> shapes;
  for (const auto& [name, tensor] : saved->tensors) {
    if (absl::StartsWith(name, "momentum.")) continue;
    shapes.push_back(name + " " + tensor.shape().ToString());
  }
  EXPECT_THAT(shapes,
              UnorderedElementsAre("0.weight (20, 1, 3, 3)", "0.bias (20)",
                                   "3.weight (50, 20, 5, 5)", "3.bias (50)",
                                   "7.weight (128, 800)", "7.bias (128)",
                                   "9.weight (10, 128)", "9.bias (10)"));
  const std::string line =
      "net.load_state_dict(safetensors.torch.load_file(\"lenet.safetensors\"), "
      "strict=False)";
  EXPECT_THAT(Unwrapped(Train({"--help"}).output), HasSubstr(line));
  for (const char* name : {"train.md", "train.zh.md"}) {
    EXPECT_THAT(ReadFile(absl::StrCat("chapters/multi_gpu/", name)),
                HasSubstr(line));
  }
}

// Somebody else made this checkpoint.
TEST_F(TrainTest, AFilesTextsAreShownAndDoNothing) {
  const std::string file = File("a.safetensors");
  Train(With(kSmall, {"--epochs=1", "--save=" + file}));
  const absl::StatusOr<Checkpoint> checkpoint = LoadCheckpoint(file, Device());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  for (const char* name :
       {"net", "init", "lr", "seed", "split", "allreduce", "data_dir", "data",
        "hardware", "processes", "test_data"}) {
    Checkpoint changed = *checkpoint;
    changed.options[name] = "\x1b[2J\nError: " + std::string(5000, 'x');
    ASSERT_TRUE(SaveCheckpoint(changed, file).ok());
    const ProgramResult r = Train({"--resume=" + file, "--epochs=2"});
    EXPECT_THAT(r.output, AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1b[2J"),
                                Not(HasSubstr("\nError: xxx"))))
        << name;
    EXPECT_LT(r.output.size(), 4000u) << name;
  }
}

TEST_F(TrainTest, WhatMakesNoSenseIsRefusedWithAdvice) {
  const std::string file = File("a.safetensors");
  ASSERT_EQ(Train(With(kSmall, {"--epochs=1", "--save=" + file})).exit_code, 0);
  const std::string bytes = ReadFile(file);
  ASSERT_TRUE(WriteAtomically(File("short"), bytes.substr(0, 5000)).ok());
  std::string lying = bytes;
  lying.replace(lying.find("\\\"net\\\":\\\"mlp"), 13, "\\\"net\\\":\\\"xyz");
  ASSERT_TRUE(WriteAtomically(File("lying"), lying).ok());
  struct Case {
    std::vector<std::string> flags;
    std::vector<std::string> wanted;
  };
  const Case cases[] = {
      {{"--net=lnear"}, {"--net=lnear asked for", "Say --net=linear"}},
      {{"--init=xaver"}, {"there are xavier, book", "Say --init=xavier"}},
      {{"--epochs=0"}, {"--epochs=0 asked for; the least is 1"}},
      {{"--batch_size=-1"}, {"--batch_size=-1 asked for"}},
      {{"--images=0"}, {"--images=0 asked for"}},
      {{"--lr=nan"}, {"--lr=nan asked for"}},
      {{"--lr=-1"}, {"--lr=-1 asked for"}},
      {{"--momentum=1"}, {"--momentum=1 asked for"}},
      {{"--epochs=x"}, {"'x'"}},
      {{"--nonsense"}, {"nonsense"}},
      {{"lenet"}, {"\"lenet\" is not a flag"}},
      {{"--devices=cpu:x"}, {"cpu:x"}},
      {{"--devices=cpu:0", "--num_gpus=2"},
       {"--num_gpus=2 asked for; --devices=cpu:0 has 1."}},
      {{"--num_gpus=-1"}, {"--num_gpus=-1 asked for"}},
      {{"--num_gpus=2", "--split=1"}, {"has 1 weight for 2 devices"}},
      {{"--allreduce=rng"}, {"rng", "bidirectional_ring"}},
      {{"--allreduce=nccl", "--num_gpus=2"}, {"cpu:0", "--allreduce=split"}},
      {{"--max_in_flight=0"}, {"--max_in_flight=0 asked for"}},
      {{"--data_dir=/nowhere"}, {"/nowhere"}},
      {{"--save=/nowhere/x"}, {"--save: cannot write /nowhere/x"}},
      {{"--json=" + File("b"), "--svg=" + File("b")}, {"name the same file"}},
      {{"--images=1000000000000"},
       {"--images=1000000000000 asked for, which take 1.05e+06 GB of memory",
        " GB are free. Say --images="}},
      {{"--images=9223372036854775807"}, {"take 9.65e+12 GB of memory"}},
      {{"--resume=" + file, "--json=" + file}, {"name the same file"}},
      {{"--net=\x1b[2J"}, {"--net=\\x1b[2J asked for"}},
      {{"--resume=/nowhere"}, {"cannot read /nowhere"}},
      {{"--resume=" + File("short")}, {"is no safetensors file"}},
      {{"--resume=" + File("lying")}, {"--net=xyz asked for"}},
      {{"--resume=" + file, "--net=linear"},
       {"--net=linear asked for", "has --net=mlp"}},
      {{"--resume=" + file, "--batch_size=64"},
       {"--batch_size=64 asked for", "has --batch_size=32"}},
      {{"--resume=" + file, "--seed=5"}, {"--seed=5", "has --seed=0"}},
      {{"--resume=" + file, "--momentum=0"}, {"has --momentum=0.5"}},
      {{"--resume=" + file, "--images=700"},
       {"trained on 600 images", "has 700 images"}},
  };
  for (const Case& test : cases) {
    const ProgramResult r = Train(test.flags);
    SCOPED_TRACE(test.flags.back());
    EXPECT_EQ(r.exit_code, 1) << r.output;
    const std::string text = Unwrapped(r.output);
    for (const std::string& wanted : test.wanted) {
      EXPECT_THAT(text, HasSubstr(wanted));
    }
  }
}

}  // namespace
}  // namespace d2l
