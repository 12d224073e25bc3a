// The training program as a user sees it: output, files, signals, and refused
// flags. Never speed.

#include "chapters/multi_gpu/train/train.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstddef>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "chapters/multi_gpu/train/train_testing.h"
#include "common/base/child_process.h"
#include "common/base/console/text.h"
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
  for (const char* flag :
       {"net", "init", "epochs", "batch_size", "lr", "momentum", "data_dir",
        "images", "save", "resume", "devices", "num_gpus", "split", "allreduce",
        "shard", "report_memory", "mpi_timeout_s"}) {
    EXPECT_THAT(r.output, HasSubstr(absl::StrCat("\n--", flag, " (default: ")));
    EXPECT_THAT(r.output, ContainsRegex(absl::StrCat("Example: .*--", flag)));
  }
  for (const char* group : {"Training", "Images", "Checkpoints", "Devices"}) {
    EXPECT_THAT(r.output, HasSubstr(absl::StrCat("\n\n", group, "\n\n--")));
  }
  for (const absl::string_view line : absl::StrSplit(r.output, '\n')) {
    EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST_F(TrainTest, EndsWithTheCoursesLineAndNamesTheData) {
  const ProgramResult r =
      Train({"--images=300", "--epochs=2", "--save=" + File("a.safetensors")});
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(
      r.output,
      AllOf(
          HasSubstr("lenet, 129068 parameters"),
          HasSubstr("generated data, seed 0: 300 images to train on, 50 to"),
          ContainsRegex("\nepoch 2/2  loss [0-9.]+  training 0\\.[0-9]+  "
                        "test 0\\.[0-9]+  [0-9.]+ s  [0-9]+/s\n"),
          ContainsRegex("\ntest accuracy [01]\\.[0-9][0-9] on generated data, "
                        "seed 0, [0-9.]+ s/epoch, on \\[cpu:0\\]\n")));
  // It is no terminal: nothing is drawn or overwritten.
  EXPECT_THAT(r.output, AllOf(Not(HasSubstr("\033")), Not(HasSubstr("\r"))));
}

TEST_F(TrainTest, SpeaksChinese) {
  const ProgramResult r = RunProgram(
      "env",
      With({"LC_ALL=zh_CN.UTF-8", kProgram}, With(kSmall, {"--epochs=1"})));
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, HasSubstr("第1/1轮"));
}

// Also in another run, with another kind of shards.
TEST_F(TrainTest, ShardsChangeNoBitAndMemoryIsReported) {
  const std::vector<std::string> two =
      With(kSmall, {"--devices=cpu:0,cpu:1", "--report_memory"});
  const std::string file = File("shard.safetensors");
  Train(With(two, {"--epochs=3", "--save=" + file}));
  const std::string unbroken = InHex(file);
  std::vector<std::string> flags = With(two, {"--epochs=1"});
  for (const char* shard : {"optimizer", "gradients", "none"}) {
    const ProgramResult r =
        Train(With(flags, {absl::StrCat("--shard=", shard), "--save=" + file}));
    EXPECT_EQ(r.exit_code, 0) << r.output;
    EXPECT_THAT(r.output,
                AllOf(HasSubstr("activations"), HasSubstr("\n  cpu:1")));
    const std::string next =
        absl::StrCat("--epochs=", flags.back() == "--epochs=1" ? 2 : 3);
    flags = {"--resume=" + file, "--devices=cpu:0,cpu:1", "--report_memory",
             next};
  }
  EXPECT_TRUE(InHex(file) == unbroken);
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
    EXPECT_THAT(Unwrapped(Train({"--resume=" + file}).output),
                HasSubstr(absl::StrCat(
                    "Resumed from ", file, ": ", std::stoi(found[2]) + 1,
                    " epochs are trained; for more, say --epochs=",
                    2 * (std::stoi(found[2]) + 1), ".")));
    const std::string unbroken = File("unbroken.safetensors");
    Train(With(kSmall, {epochs, "--save=" + unbroken}));
    EXPECT_TRUE(InHex(file) == InHex(unbroken));
    EXPECT_THAT(InHex(file), HasSubstr("momentum.3.weight "));
  }
}

TEST_F(TrainTest, SeveralDevicesGoOnAsTheUnbrokenRun) {
  const std::vector<std::string> flags =
      With(kSmall, {"--devices=cpu:0,cpu:1,cpu:2", "--num_gpus=2",
                    "--split=3:1", "--allreduce=ring"});
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
              HasSubstr("--num_gpus=2 asked for by " + file +
                        "; --devices=cpu:0 has 1. Name as many"));
}

TEST_F(TrainTest, CtrlCOnATerminalEndsTheLineThatChanges) {
  const std::string file = File("terminal.safetensors");
  Child child(
      With(With({kProgram}, kSmall), {"--epochs=1000000", "--save=" + file}),
      Child::Output::kTerminal);
  ASSERT_TRUE(child.ReadUntil("epoch       3/1000000")) << child.output;
  EXPECT_THAT(child.output, ContainsRegex("\r\033\\[Kepoch       3/1000000"));
  child.Type('\3');  // Ctrl-C
  EXPECT_EQ(child.Wait(), 130) << child.output;
  EXPECT_THAT(child.output, HasSubstr("Saved after batch"));
  EXPECT_TRUE(LoadCheckpoint(file).ok());
}

// A line that the terminal breaks would be drawn again below itself.
TEST_F(TrainTest, TheLineThatChangesFitsIntoTheTerminal) {
  for (const int columns : {120, 40, 25, 10}) {
    Child child(With(With({kProgram}, kSmall), {"--epochs=1000000"}),
                Child::Output::kTerminal, columns);
    ASSERT_TRUE(child.ReadUntil("\repoch")) << child.output;
    child.Kill(SIGKILL);
    child.Wait();
    int drawn = 0;
    for (const absl::string_view line : absl::StrSplit(child.output, '\r')) {
      absl::string_view shown = line;
      if (!absl::ConsumeSuffix(&shown, "\033[K")) continue;
      ++drawn;
      EXPECT_LT(TextColumns(shown), static_cast<std::size_t>(columns)) << line;
    }
    EXPECT_GT(drawn, 0);
  }
}

// A file's name is text of others: it neither commands the terminal nor looks
// like a line of the program, and the command to go on can be typed.
TEST_F(TrainTest, NamesOfFilesAreShownWithoutControlCharacters) {
  const std::string name = File("a\033[2J\nError: \xff'\\.safetensors");
  const std::string shown = File("a\\x1b[2J\\nError: \\xff'\\.safetensors");
  Child child(
      With(With({kProgram}, kSmall), {"--epochs=1000000", "--save=" + name}),
      Child::Output::kPipe);
  ASSERT_TRUE(child.ReadUntil("epoch       2/1000000")) << child.output;
  child.Kill(SIGINT);
  EXPECT_EQ(child.Wait(), 130) << child.output;
  const std::size_t command = child.output.rfind(" --resume=");
  ASSERT_NE(command, std::string::npos) << child.output;
  EXPECT_THAT(child.output, HasSubstr(shown + ". Go on with"));
  const ProgramResult resumed =
      RunProgram("bash", {"-c", absl::StrCat(kProgram, " --epochs=1",
                                             child.output.substr(command))});
  EXPECT_THAT(resumed.output, HasSubstr("Resumed from " + shown));
  ASSERT_TRUE(WriteAtomically(name, "no checkpoint").ok());
  for (const std::string& output :
       {child.output, resumed.output, Train({"--resume=" + name}).output,
        Train({"--save=" + name + "/b"}).output,
        Train({"--data_dir=" + name}).output,
        Train({"--net=" + name}).output}) {
    EXPECT_EQ(PrintableText(output, "\n"), output);
    EXPECT_THAT(output, Not(ContainsRegex("\n *Error: .xff"))) << output;
  }
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
                    Not(HasSubstr("is of the end of"))));
}

TEST_F(TrainTest, SaysThatItIsStillAtChance) {
  const ProgramResult r =
      Train(With(kSmall, {"--init=book", "--lr=1e-9", "--epochs=4"}));
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("Still at chance after 38 steps: try another --lr, or "
                        "--init=xavier. The book's N(0, 0.01²)"));
  EXPECT_EQ(r.output.find("Still"), r.output.rfind("Still"));
}

TEST_F(TrainTest, AFullDiskIsSaidAndIsAnError) {
  const ProgramResult r =
      Train(With(kSmall, {"--epochs=1", "--save=/dev/full"}));
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.output, AllOf(HasSubstr("/dev/full: No space left on device"),
                              HasSubstr("test accuracy")));
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
TEST_F(TrainTest, TextsOfFilesAndNamesAreShownAndDoNothing) {
  const std::string file = File("\x1b[2J.safetensors");
  Train(With(kSmall, {"--epochs=1", "--save=" + file}));
  const auto saved = safetensors::LoadFile(file, Device());
  ASSERT_TRUE(saved.ok()) << saved.status();
  const auto& [format, text] = *saved->metadata.begin();
  const auto resume = [&, text = text, format = format](const char* name) {
    auto json = nlohmann::json::parse(text);
    json["options"][name] = "\x1b[2J\nError: " + std::string(5000, 'x');
    EXPECT_TRUE(
        safetensors::SaveFile(saved->tensors, file, {{format, json.dump()}})
            .ok());
    const ProgramResult r = Train({"--resume=" + file, "--epochs=2"});
    EXPECT_THAT(r.output, AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1b[2J"),
                                Not(HasSubstr("\nError: xxx"))))
        << name;
    EXPECT_LT(r.output.size(), 4000u) << name;
    return r.exit_code;
  };
  EXPECT_EQ(resume("unknown"), 0);
  for (const char* name :
       {"net", "init", "lr", "split", "allreduce", "data_dir", "data"}) {
    EXPECT_EQ(resume(name), 1);
  }
}

// An older version has hashed the images in another way.
TEST_F(TrainTest, ACheckpointWithAnotherHashOfTheImagesIsResumed) {
  const std::string file = File("hashed.safetensors");
  Train(With(kSmall, {"--epochs=1", "--save=" + file}));
  const auto saved = safetensors::LoadFile(file, Device());
  ASSERT_TRUE(saved.ok()) << saved.status();
  const auto resume = [&](const std::string& before, const std::string& after) {
    safetensors::Metadata metadata = saved->metadata;
    std::string& text = metadata.begin()->second;
    EXPECT_THAT(text, HasSubstr(before));
    text = absl::StrReplaceAll(text, {{before, after}});
    EXPECT_TRUE(safetensors::SaveFile(saved->tensors, file, metadata).ok());
    return Train({"--resume=" + file, "--epochs=2"}).exit_code;
  };
  EXPECT_EQ(resume("fnv1a ", "fnv1a 1"), 1);
  EXPECT_EQ(resume("fnv1a ", ""), 0);
  EXPECT_EQ(resume(", fnv1a ", "0, "), 1);
}

TEST_F(TrainTest, FilesThatAreReadAreNotWritten) {
  const std::string labels = File("train-labels-idx1-ubyte");
  const std::string link = File("link");
  ASSERT_TRUE(WriteAtomically(labels, "labels").ok());
  std::filesystem::create_symlink(labels, link);
  std::filesystem::create_hard_link(labels, link + "2");
  for (const std::string& save : {labels, link, link + "2"}) {
    const ProgramResult r = Train({"--data_dir=" + File(""), "--save=" + save});
    EXPECT_EQ(r.exit_code, 1);
    EXPECT_THAT(Unwrapped(r.output),
                AllOf(HasSubstr("--save=" + save + " names a file that is "),
                      HasSubstr("Name another file.")));
    EXPECT_EQ(ReadFile(labels), "labels");
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
    std::string wanted;
  };
  const Case cases[] = {
      {{"--lr", "-1", "--epoch=3"},
       "--epoch=3 asked for; there is no such flag. Say --epochs=3, or --help "
       "for a list of all flags."},
      {{"--save=a", "--save", "b"},
       "--save=a and --save=b asked for; a flag has one value. Leave one of "
       "them out."},
      {{"--nonsense"}, "there is no such flag. Say --help for a list"},
      {{"lenet"}, "\"lenet\" is not a flag"},
      {{"--net=lnear"},
       "--net=lnear asked for; there are lenet, resnet18, mlp, linear. Say "
       "--net=linear."},
      {{"--net=\x1b[2J"}, "--net=\\x1b[2J asked for"},
      {{"--init=xaver"}, "there are xavier, book. Say --init=xavier"},
      {{"--epochs=0"},
       "--epochs=0 asked for; it must be from 1 to 1e+09. Say --epochs=10."},
      {{"--epochs=x"}, "'x'"},
      {{"--batch_size=-1"}, "--batch_size=-1 asked for"},
      {{"--images=0"}, "--images=0 asked for"},
      {{"--images=1000000000000"}, "from 1 to 1e+07"},
      {{"--lr=nan"}, "--lr=nan asked for"},
      {{"--momentum=1"}, "from 0 to 0.9999"},
      {{"--mpi_timeout_s=0"}, "--mpi_timeout_s=0 asked for"},
      {{"--devices=cpu:x"}, "cpu:x"},
      {{"--devices=cpu:0", "--num_gpus=2"},
       "--num_gpus=2 asked for; --devices=cpu:0 has 1. Name as many, such as "
       "--devices=cpu:0,cpu:1, or start as many processes with one each: "
       "mpirun -np 2."},
      {{"--num_gpus=-1"}, "--num_gpus=-1 asked for"},
      {{"--num_gpus=2", "--split=1"}, "has 1 weight for 2 devices"},
      {{"--allreduce=rng"}, "split, star, ring, bidirectional_ring, host"},
      {{"--allreduce=mpi"}, "--allreduce=mpi asked for; there are split"},
      {{"--allreduce=nccl", "--num_gpus=2"}, "NCCL adds on GPUs, and cpu:0 is"},
      {{"--shard=gradient", "--num_gpus=2"}, "Say --shard=gradients."},
      {{"--shard=gradients"}, "there are 1, and --allreduce=split. Say"},
      {{"--shard=optimizer", "--num_gpus=2", "--allreduce=ring"},
       "there are 2, and --allreduce=ring. Say --num_gpus=2 without"},
      {{"--data_dir=/nowhere"}, "/nowhere"},
      {{"--save=/nowhere/x"}, "--save: cannot write /nowhere/x"},
      {{"--resume=/nowhere"}, "cannot read /nowhere"},
      {{"--resume=" + File("short")}, "is no safetensors file"},
      {{"--resume=" + File("lying")}, "--net=xyz asked for"},
      {{"--resume=" + file, "--net=linear"},
       "--net=linear asked for; the training in " + file +
           " has --net=mlp. Leave the flag out"},
      {{"--resume=" + file, "--batch_size=64"}, "has --batch_size=32"},
      {{"--resume=" + file, "--momentum=0"}, "has --momentum=0.5"},
      {{"--resume=" + file, "--images=700"},
       "it was trained on other images (600 + 100, "},
  };
  for (const Case& test : cases) {
    const ProgramResult r = Train(test.flags);
    SCOPED_TRACE(test.flags.back());
    EXPECT_EQ(r.exit_code, 1) << r.output;
    EXPECT_THAT(Unwrapped(r.output), HasSubstr(test.wanted));
  }
}

}  // namespace
}  // namespace d2l
