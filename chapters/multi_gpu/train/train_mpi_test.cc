// The training program, started by mpirun: several processes train one network,
// and end together whatever happens to one of them.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/train_testing.h"
#include "common/base/child_process.h"
#include "common/base/files/atomic_file.h"
#include "common/ops/read.h"

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

// The process id of that rank.
pid_t ProcessOf(pid_t mpirun, int rank) {
  std::ifstream children(
      absl::StrCat("/proc/", mpirun, "/task/", mpirun, "/children"));
  for (pid_t pid = 0; children >> pid;) {
    const std::string environment = absl::StrCat("/proc/", pid, "/environ");
    if (absl::StrContains(ReadFile(environment),
                          absl::StrCat("OMPI_COMM_WORLD_RANK=", rank))) {
      return pid;
    }
  }
  ADD_FAILURE() << "no rank " << rank;
  return -1;
}

// Changes these bytes everywhere in the process's memory. Returns the number of
// places, or -1 if its memory cannot be written.
int FlipABit(pid_t pid, const std::string& bytes) {
  const std::string folder = absl::StrCat("/proc/", pid, "/");
  const int memory = open((folder + "mem").c_str(), O_RDWR | O_CLOEXEC);
  if (memory < 0) return -1;
  kill(pid, SIGSTOP);
  int found = 0;
  std::ifstream maps(folder + "maps");
  for (std::string line; std::getline(maps, line);) {
    std::uint64_t begin = 0, end = 0;
    char dash = 0;
    std::string mode;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> mode;
    if (mode != "rw-p") continue;
    std::string text(end - begin, '\0');
    const ssize_t n =
        pread(memory, text.data(), text.size(), static_cast<off_t>(begin));
    if (n < 0) continue;
    text.resize(static_cast<std::size_t>(n));
    for (std::size_t at = text.find(bytes); at != text.npos;
         at = text.find(bytes, at + 1)) {
      const char other = static_cast<char>(bytes[0] ^ 1);
      found += pwrite(memory, &other, 1, static_cast<off_t>(begin + at)) == 1;
    }
  }
  close(memory);
  kill(pid, SIGCONT);
  return found;
}

class TrainMpiTest : public TrainTest {
 protected:
  // mpirun's folder is in /tmp by default and named by its process number,
  // which two sandboxes may share.
  static void SetUpTestSuite() {
    setenv("OMPI_MCA_orte_tmpdir_base", testing::TempDir().c_str(), 1);
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
  for (const char* shard : {"optimizer", "gradients", "parameters"}) {
    const ProgramResult r = RunCommand(
        Ranks(3, With(kSmall, {"--epochs=2", "--save=" + file,
                               absl::StrCat("--shard=", shard),
                               "--report_memory", "--check_every=2"})));
    EXPECT_EQ(r.exit_code, 0) << r.output;
    EXPECT_EQ(InHex(file), whole) << shard;
    EXPECT_THAT(r.output, HasSubstr("cpu:0, predicted"));
  }
  const ProgramResult refused = RunCommand(
      Ranks(2, With(kSmall, {"--devices=cpu:0,cpu:1", "--shard=parameters"})));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(Unwrapped(refused.output),
              HasSubstr("there are 2 processes with 2 devices each. Say mpirun "
                        "-np 4 and --devices=cpu:0, or --shard=gradients."));
}

TEST_F(TrainMpiTest, AnotherNumberOfRanksGoesOnWithAsManyDevices) {
  const std::string file = File("ranks.safetensors");
  RunCommand(Ranks(2, With(kSmall, {"--devices=cpu:0,cpu:1", "--epochs=1",
                                    "--save=" + file})));
  const ProgramResult four = RunCommand(
      Ranks(4, {"--resume=" + file, "--devices=cpu:0", "--epochs=2"}));
  EXPECT_EQ(four.exit_code, 0) << four.output;
  EXPECT_THAT(Unwrapped(four.output),
              HasSubstr("made with 2 processes of 2 devices, and this is 4 "
                        "processes of 1 device: as many devices in all, so the "
                        "numbers stay the same"));
  const ProgramResult one =
      Train({"--resume=" + file, "--epochs=3", "--lang=zh"});
  EXPECT_EQ(one.exit_code, 0) << one.output;
  EXPECT_THAT(one.output, HasSubstr("制作它时是4个进程、每个1个设备"));
  EXPECT_EQ(InHex(file), Unbroken("cpu:0,cpu:1,cpu:2,cpu:3", "--epochs=3"));
  EXPECT_THAT(Train({"--resume=" + file, "--epochs=1"}).output,
              HasSubstr("say --epochs=6."));

  const ProgramResult three = RunCommand(
      Ranks(3, {"--resume=" + file, "--devices=cpu:0", "--epochs=4"}));
  EXPECT_EQ(three.exit_code, 1);
  EXPECT_THAT(
      Unwrapped(three.output),
      AllOf(HasSubstr("4 devices asked for by " + file),
            HasSubstr("3 processes cannot have as many each. Start 4")));
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
    return With(
        With(With(kMpirun, {"-np", "1", kProgram}), With(small, {first})),
        With({":", "-np", "1", kProgram}, With(small, {second})));
  };
  const std::string save = "--save=" + File("none");
  for (const auto& [first, second, wanted] :
       {std::tuple<std::string, std::string, std::string>{
            "--lr=0.1", "--lr=0.2",
            "--lr is \"0.1\" in rank 0 and \"0.2\" in rank 1. Give all 2"},
        {"--images=600", "--images=500", "--images is \"600\" in rank 0 and"},
        {save, "--seed=0",
         "--save is \"" + File("none") + "\" in rank 0 and \"\" in rank 1"},
        {"--seed=0", save, "--save is \"\" in rank 0 and \"" + File("none")},
        {"--num_gpus=2", "--devices=cpu:0,cpu:1", "--num_gpus is \"2\" in"},
        {"--check_every=5", "--seed=0", "--check_every is \"5\" in rank 0"},
        {"--data_dir=" + WriteData("a", '\1'),
         "--data_dir=" + WriteData("b", '\2'),
         "The test data is \"3 images with the SHA-256 "}}) {
    const ProgramResult r = RunCommand(two(first, second));
    EXPECT_EQ(r.exit_code, 1) << r.output;
    EXPECT_THAT(Unwrapped(r.output), HasSubstr("rank 0 of 2: " + wanted));
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

// Simulates a memory fault of rank 1. With this rate the parameters stay as
// they are, so that the test can find them.
TEST_F(TrainMpiTest, ParametersThatDifferAreFoundWhereverTheyBegin) {
  const std::string file = File("weights.safetensors");
  const std::vector<std::string> flags =
      With(kSmall, {"--lr=1e-30", "--check_every=1000000"});
  ASSERT_EQ(RunCommand(Ranks(2, With(flags, {"--epochs=1", "--save=" + file})))
                .exit_code,
            0);
  const absl::StatusOr<Checkpoint> saved = LoadCheckpoint(file, Device());
  ASSERT_TRUE(saved.ok()) << saved.status();
  const std::vector<float> weights =
      ToVector<float>(saved->state.tensors.at("3.weight"));
  const std::string bytes(reinterpret_cast<const char*>(weights.data()), 64);
  std::string output;
  const auto run = [&](const std::string& flag) {
    Child child(Ranks(2, With(With(flags, {"--epochs=1000000"}), {flag})),
                Child::Output::kPipe);
    ASSERT_TRUE(child.ReadUntil("epoch ")) << child.output;
    const int found = FlipABit(ProcessOf(child.pid(), 1), bytes);
    if (found < 0) GTEST_SKIP() << "the memory of a process cannot be written";
    EXPECT_GT(found, 0);
    child.Wait();
    output = Unwrapped(child.output);
  };
  run("--check_every=5");
  if (IsSkipped()) return;
  EXPECT_THAT(output,
              ContainsRegex("rank 0 of 2: Parameters after step [0-9]+, before "
                            "batch [0-9]+ of epoch [0-9]+, of rank 1 are not"));
  run("--save=/dev/null");
  EXPECT_THAT(output, HasSubstr("rank 0 of 2: Parameters before saving of "));
  // On a busy machine the training may be over before the fault.
  for (int epochs = 100; epochs < 10'000; epochs *= 4) {
    run(absl::StrCat("--epochs=", epochs));
    if (!absl::StrContains(output, "test accuracy")) break;
  }
  EXPECT_THAT(output,
              HasSubstr("rank 0 of 2: Parameters at the end of rank 1"));
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
        {"--allreduce=host", "adds in one process; there are 2"},
        {"--num_gpus=3", "Start 3 processes"},
        {"--num_gpus=8",
         "--num_gpus=8 asked for; --devices=cpu:0 in each "
         "process has 1. Say --num_gpus=2,"},
        {"--mpi_timeout_s=0", "--mpi_timeout_s=0 asked for"},
        {"--check_every=0", "--check_every=0 asked for"},
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
  const absl::StatusOr<Checkpoint> left = LoadCheckpoint(file, Device());
  ASSERT_TRUE(left.ok()) << left.status();
  const std::string epochs =
      absl::StrCat("--epochs=", left->progress.epochs.size() + 1);
  const ProgramResult resumed =
      RunCommand(Ranks(2, {"--resume=" + file, "--devices=cpu:0", epochs}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.output;
  EXPECT_EQ(InHex(file), Unbroken("cpu:0,cpu:1", epochs));
}

// A rank is killed or stopped: the others end, and the saved file resumes.
TEST_F(TrainMpiTest, WhenARankIsLostTheOthersEndAndSayHowToGoOn) {
  for (const int number : {SIGKILL, SIGSTOP}) {
    for (const int rank : {0, 1}) {
      const std::string file = File("lost.safetensors");
      Child child(Ranks(2, With(kSmall, {"--epochs=1000000", "--save=" + file,
                                         "--mpi_timeout_s=5"})),
                  Child::Output::kPipe);
      ASSERT_TRUE(child.ReadUntil("epoch       3/1000000")) << child.output;
      kill(ProcessOf(child.pid(), rank), number);
      EXPECT_NE(child.Wait(), 0);
      const std::string text = Unwrapped(child.output);
      EXPECT_THAT(
          text,
          AllOf(HasSubstr(number == SIGSTOP
                              ? absl::StrCat("rank ", rank,
                                             " has not answered for 5 s")
                              : absl::StrCat("process rank ", rank, " with")),
                ContainsRegex(absl::StrCat("rank ", 1 - rank, " of 2: ")),
                ContainsRegex("batch [0-9]+ of epoch [0-9]+"),
                HasSubstr(absl::StrCat("mpirun -np 2 ", kProgram,
                                       " --resume=", file))));
      const absl::StatusOr<Checkpoint> left = LoadCheckpoint(file, Device());
      ASSERT_TRUE(left.ok()) << left.status();
      const std::string epochs =
          absl::StrCat("--epochs=", left->progress.epochs.size() + 1);
      RunCommand(Ranks(2, {"--resume=" + file, "--devices=cpu:0", epochs}));
      EXPECT_EQ(InHex(file), Unbroken("cpu:0,cpu:1", epochs));
    }
  }
}

}  // namespace
}  // namespace d2l
