// The training program, started by mpirun: several processes train one network,
// and end together whatever happens to one of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "chapters/multi_gpu/train/train.h"
#include "chapters/multi_gpu/train/train_testing.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::string> kMpirun = {"mpirun", "--allow-run-as-root",
                                          "--oversubscribe"};

std::vector<std::string> Ranks(int count,
                               const std::vector<std::string>& flags) {
  return With(With(kMpirun, {"-np", absl::StrCat(count), kProgram}), flags);
}

ProgramResult RunCommand(const std::vector<std::string>& words) {
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(60);
  const ProgramResult r = RunProgram(words[0], {words.begin() + 1, words.end()},
                                     {"BUILD_WORKING_DIRECTORY"}, options);
  EXPECT_FALSE(r.timed_out) << r.output;
  return r;
}

class TrainMpiTest : public TrainTest {
 protected:
  // mpirun's folder is in /tmp by default and named by its process number,
  // which two sandboxes may share.
  static void SetUpTestSuite() {
    setenv("OMPI_MCA_orte_tmpdir_base", testing::TempDir().c_str(), 1);
    // Open MPI 5 does not start without a home; Bazel's tests have none.
    setenv("HOME", testing::TempDir().c_str(), 0);
  }
  // A folder with Fashion-MNIST's four files: 40 images to train on, always the
  // same ones, and 3 to test on.
  std::string WriteData(const std::string& name, char test_label) {
    const std::string folder = File(name);
    std::filesystem::create_directory(folder);
    for (const auto& [part, count, label] :
         {std::tuple{"train", '\x28', '\3'}, {"t10k", '\3', test_label}}) {
      const std::string size = {0, 0, 0, count};
      EXPECT_TRUE(
          WriteAtomically(
              absl::StrCat(folder, "/", part, "-images-idx3-ubyte"),
              std::string({0, 0, 8, 3}) + size +
                  std::string({0, 0, 0, 28, 0, 0, 0, 28}) +
                  std::string(static_cast<std::size_t>(count) * 784, '\7'))
              .ok());
      EXPECT_TRUE(WriteAtomically(
                      absl::StrCat(folder, "/", part, "-labels-idx1-ubyte"),
                      std::string({0, 0, 8, 1}) + size +
                          std::string(static_cast<std::size_t>(count), label))
                      .ok());
    }
    return folder;
  }
  // The checkpoint of the same training, unbroken, in one process.
  std::string Unbroken(const std::string& devices, const std::string& epochs) {
    const std::string file = File("unbroken.safetensors");
    const ProgramResult r =
        Train(With(kSmall, {"--devices=" + devices, epochs, "--save=" + file}));
    EXPECT_EQ(r.exit_code, 0) << r.output;
    return InHex(file);
  }
};

TEST_F(TrainMpiTest, RanksSaveWhatOneProcessWithAsManyDevicesSaves) {
  const std::string file = File("ranks.safetensors");
  const ProgramResult r =
      RunCommand(Ranks(3, With(kSmall, {"--epochs=2", "--save=" + file})));
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_EQ(InHex(file), Unbroken("cpu:0,cpu:1,cpu:2", "--epochs=2"));
  // Only the first process prints.
  EXPECT_THAT(r.output, ContainsRegex("on \\[cpu:0\\] in each of 3 processes"));
  EXPECT_EQ(r.output.find("epoch 2/2"), r.output.rfind("epoch 2/2"));
}

TEST_F(TrainMpiTest, ShardsChangeNoBitAndAreGatheredToBeSaved) {
  const std::string file = File("ranks.safetensors");
  const std::string whole = Unbroken("cpu:0,cpu:1,cpu:2", "--epochs=2");
  for (const char* shard : {"optimizer", "gradients"}) {
    const ProgramResult r = RunCommand(Ranks(
        3, With(kSmall, {"--epochs=2", "--save=" + file,
                         absl::StrCat("--shard=", shard), "--report_memory"})));
    EXPECT_EQ(r.exit_code, 0) << r.output;
    EXPECT_EQ(InHex(file), whole) << shard;
    EXPECT_THAT(r.output, HasSubstr("\n  cpu:0 "));
  }
}

TEST_F(TrainMpiTest, AnotherNumberOfRanksGoesOnWithAsManyDevices) {
  const std::string file = File("ranks.safetensors");
  RunCommand(Ranks(2, With(kSmall, {"--devices=cpu:0,cpu:1", "--epochs=1",
                                    "--save=" + file})));
  const ProgramResult four = RunCommand(
      Ranks(4, {"--resume=" + file, "--devices=cpu:0", "--epochs=2"}));
  EXPECT_EQ(four.exit_code, 0) << four.output;
  const ProgramResult one = Train({"--resume=" + file, "--epochs=3"});
  EXPECT_EQ(one.exit_code, 0) << one.output;
  EXPECT_EQ(InHex(file), Unbroken("cpu:0,cpu:1,cpu:2,cpu:3", "--epochs=3"));
  EXPECT_THAT(Train({"--resume=" + file, "--epochs=1"}).output,
              HasSubstr("say --epochs=6."));

  const ProgramResult three = RunCommand(
      Ranks(3, {"--resume=" + file, "--devices=cpu:0", "--epochs=4"}));
  EXPECT_EQ(three.exit_code, 1);
  EXPECT_THAT(
      Unwrapped(three.output),
      HasSubstr("--num_gpus=4 asked for by " + file +
                "; --devices=cpu:0 has 1 in each of 3 processes. Name as"));
}

TEST_F(TrainMpiTest, MpisOwnAllReduceTrains) {
  const ProgramResult r =
      RunCommand(Ranks(2, With(kSmall, {"--epochs=3", "--allreduce=mpi"})));
  EXPECT_EQ(r.exit_code, 0) << r.output;
  EXPECT_THAT(r.output, ContainsRegex("epoch 3/3  loss 0\\."));
}

TEST_F(TrainMpiTest, RanksThatDifferAreNamedAndEnd) {
  const std::vector<std::string> small = With(kSmall, {"--epochs=1"});
  const auto two = [&](const std::string& first, const std::string& second) {
    std::vector<std::string> command = kMpirun;
    for (const auto& part : {std::vector<std::string>{"-np", "1", kProgram},
                             With(small, {first}),
                             {":", "-np", "1", kProgram},
                             With(small, {second})}) {
      command.insert(command.end(), part.begin(), part.end());
    }
    return command;
  };
  const std::string save = "--save=" + File("none");
  for (const auto& [first, second, wanted] :
       {std::tuple<std::string, std::string, std::string>{
            "--lr=0.1", "--lr=0.2",
            "--lr: \"0.2\" in this rank and another in rank 0; ranks that "
            "differ do not train one network. Give all 2 ranks the same"},
        {"--images=600", "--images=500", "--images: \"500\" in this rank"},
        {save, "--lr=0.2", "--save: \"\" in this rank"},
        {"--num_gpus=2", "--devices=cpu:0,cpu:1", "--devices: \"cpu:0,cpu:1"},
        {"--data_dir=" + WriteData("a", '\1'),
         "--data_dir=" + WriteData("b", '\2'), "The data: \"40 + 3, "}}) {
    const ProgramResult r = RunCommand(two(first, second));
    EXPECT_EQ(r.exit_code, 1) << r.output;
    EXPECT_THAT(Unwrapped(r.output), HasSubstr("rank 1 of 2: " + wanted));
    EXPECT_EQ(ReadFile(File("none")), "");
  }
  // An error of one process is printed by that process.
  const ProgramResult data =
      RunCommand(two("--epochs=1", "--data_dir=/nowhere"));
  EXPECT_EQ(data.exit_code, 1);
  EXPECT_THAT(data.output,
              AllOf(HasSubstr("rank 1 of 2: "), HasSubstr("/nowhere"),
                    Not(HasSubstr("rank 0 of 2"))));
}

TEST_F(TrainMpiTest, ARankThatDoesNotStartIsWaitedForInVain) {
  const ProgramResult r =
      RunCommand(With(With(With(kMpirun, {"-np", "1", kProgram}), kSmall),
                      {"--mpi_timeout_s=3", ":", "-np", "1", "sleep", "1000"}));
  EXPECT_EQ(r.exit_code, 1) << r.output;
  EXPECT_THAT(Unwrapped(r.output),
              HasSubstr("rank 0 of 2: not all of the 2 processes have started "
                        "MPI within 20 s. Start this program"));
}

TEST_F(TrainMpiTest, WhatAllRefuseIsSaidOnce) {
  for (const auto& [flag, wanted] :
       {std::pair{"--net=lnear", "Say --net=linear"},
        {"--allreduce=host",
         "there are split, star, ring, bidirectional_ring, "
         "mpi."},
        {"--num_gpus=3", "start as many processes with one each: mpirun -np 3"},
        {"--mpi_timeout_s=0", "--mpi_timeout_s=0 asked for"},
        {"--lr=1e30", "left the finite numbers"}}) {
    const ProgramResult r = RunCommand(Ranks(2, With(kSmall, {flag})));
    EXPECT_EQ(r.exit_code, 1);
    const std::string text = Unwrapped(r.output);
    EXPECT_THAT(text, AllOf(HasSubstr("rank 0 of 2: "), HasSubstr(wanted)));
    EXPECT_EQ(text.find(wanted), text.rfind(wanted));
  }
}

TEST_F(TrainMpiTest, CtrlCSavesAndGoesOnAsTheUnbrokenRun) {
  const std::string file = File("broken.safetensors");
  Child child(Ranks(2, With(kSmall, {"--epochs=1000000", "--save=" + file})),
              Child::Output::kPipe);
  ASSERT_TRUE(child.ReadUntil("epoch       3/1000000")) << child.output;
  child.Kill(SIGINT);
  EXPECT_NE(child.Wait(), 0) << child.output;
  EXPECT_THAT(child.output, AllOf(HasSubstr("Saved after batch "),
                                  HasSubstr("  mpirun -np 2 ")));
  // Only the first process prints it.
  EXPECT_THAT(child.output, HasSubstr("rank 0 of 2: asked to stop in batch "));
  EXPECT_THAT(child.output, Not(HasSubstr("rank 1 of 2: asked to stop")));
  const absl::StatusOr<Checkpoint> left = LoadCheckpoint(file);
  ASSERT_TRUE(left.ok()) << left.status();
  const std::string epochs =
      absl::StrCat("--epochs=", left->progress.epochs.size() + 1);
  const ProgramResult resumed =
      RunCommand(Ranks(2, {"--resume=" + file, "--devices=cpu:0", epochs}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(InHex(file), Unbroken("cpu:0,cpu:1", epochs));
}

}  // namespace
}  // namespace d2l
