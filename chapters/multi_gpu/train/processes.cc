#include "chapters/multi_gpu/train/processes.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/sha256.h"
#include "common/ops/ops.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/data_parallel/split_batch.h"

namespace d2l {
namespace {

std::atomic<int> stop_signal{0};
std::atomic<pid_t> speaker{0};  // this process prints instead

// Written in turn, so that a signal always finds a complete text: only two
// replacements while it is being written out could spoil it.
char texts[2][1000];
std::atomic<const char*> text{texts[0]};

// Has only calls that are safe in a signal handler.
void OnSignal(int number) {
  if (stop_signal.exchange(number) != 0) {
    RemoveTemporaryFiles();
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  if (speaker != 0 && kill(speaker, 0) == 0) return;
  const char* const to_say = text;
  if (write(STDERR_FILENO, to_say, std::strlen(to_say)) < 0) {
    // There is nowhere to report it.
  }
}

// Sets the text that the first signal prints, cut to 1000 bytes. One thread's.
void SetStopText(const std::string& new_text) {
  char* const other = text == texts[0] ? texts[1] : texts[0];
  std::snprintf(other, sizeof(texts[0]), "%s", new_text.c_str());
  text = other;
}

}  // namespace

int StopSignal() { return stop_signal; }

std::string HashOf(DataParallel& net) {
  Sha256 hash;
  const auto update = [&](const Tensor& x) {
    const auto values = ToVector<double>(To(x, DType::kFloat64));  // exact
    hash.Update({reinterpret_cast<const char*>(values.data()),
                 values.size() * sizeof(double)});
  };
  for (const auto& [name, x] : nn::NamedState(net.module())) update(x);
  if (net.options().shard != Shard::kNone) return hash.Hex();
  for (const Tensor& x : net.sgd().momentum_buffers()) {
    if (x.defined()) update(x);
  }
  return hash.Hex();
}

absl::StatusOr<std::unique_ptr<Processes>> Processes::Start(
    double timeout_seconds) {
  if (MpiWorld::StartedProcesses() == 1) {
    return std::unique_ptr<Processes>(new Processes(nullptr));
  }
  absl::StatusOr<std::unique_ptr<MpiWorld>> world =
      MpiWorld::Start(timeout_seconds);
  if (!world.ok()) return world.status();
  return std::unique_ptr<Processes>(new Processes(*std::move(world)));
}

void Processes::Agree(const absl::Status& mine) const {
  const std::vector<std::string> all = Gather(mine.ok() ? "" : "failed");
  for (int first = 0; first < size(); ++first) {
    if (all[first].empty()) continue;
    throw CommonError(first == rank() ? std::string(mine.message()) : "");
  }
}

void Processes::EndAll(const std::string& message) const {
  throw CommonError(rank() == 0 ? message : "");
}

void Processes::CheckSame(
    const std::map<std::string, std::string>& values) const {
  for (const auto& [name, value] : values) {
    const std::vector<std::string> all = Gather(value);
    for (int rank = 1; rank < size(); ++rank) {
      if (all[rank] == all[0]) continue;
      EndAll(
          Say("%s is \"%s\" in rank 0 and \"%s\" in rank %d. Give all %d ranks "
              "the same flags and data, since ranks that differ do not train "
              "one network.",
              Translated(name), all[0], all[rank], rank, size()));
    }
  }
}

void Processes::CheckEqual(const std::string& value,
                           const std::string& what) const {
  const std::vector<std::string> all = Gather(value);
  std::vector<int> others;
  for (int rank = 0; rank < size(); ++rank) {
    if (all[rank] != all[0]) others.push_back(rank);
  }
  if (others.empty()) return;
  EndAll(absl::StrFormat(
      "%s of rank%s %s are not those of rank 0, of %d ranks. Stopped, since "
      "ranks that differ do not train one network.",
      what, others.size() == 1 ? "" : "s", absl::StrJoin(others, ", "),
      size()));
}

std::vector<GeneratorState> Processes::Gather(
    const std::vector<GeneratorState>& mine) const {
  const std::string all = absl::StrJoin(
      Gather(std::string(reinterpret_cast<const char*>(mine.data()),
                         mine.size() * sizeof(GeneratorState))),
      "");
  std::vector<GeneratorState> states(mine.size() * size());
  std::memcpy(states.data(), all.data(), all.size());
  return states;
}

std::vector<std::string> Processes::Gather(const std::string& mine) const {
  if (!several()) return {mine};
  const std::vector<std::uint64_t> sizes = world_->Gather(mine.size());
  const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> all(size());
  for (std::size_t at = 0; at < most; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    const std::string part = mine.substr(std::min(at, mine.size()));
    std::memcpy(&word, part.data(), std::min(part.size(), sizeof(word)));
    const std::vector<std::uint64_t> words = world_->Gather(word);
    for (int rank = 0; rank < size(); ++rank) {
      all[rank].append(reinterpret_cast<const char*>(&words[rank]),
                       sizeof(word));
    }
  }
  for (int rank = 0; rank < size(); ++rank) all[rank].resize(sizes[rank]);
  return all;
}

std::int64_t Processes::Sum(std::int64_t mine) const {
  if (!several()) return mine;
  const std::vector<std::uint64_t> all = world_->Gather(mine);
  return static_cast<std::int64_t>(
      std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
}

DataParallelOptions Processes::Connect(const TrainOptions& options) {
  DataParallelOptions parallel = options.parallel;
  if (!several()) return parallel;
  parallel.process = rank();
  parallel.processes = size();
  parallel.collective =
      [world = world_.get(),
       algorithm =
           options.by_mpi ? std::nullopt : std::optional(parallel.allreduce)](
          Collective collective, Replicas local, SourceLocation at) {
        return world->RunAsync(collective, local, algorithm, at);
      };
  return parallel;
}

void Processes::StopOnSignals() {
  if (several()) {
    const auto first = static_cast<pid_t>(world_->Gather(getpid())[0]);
    if (rank() == 1 && MpiWorld::StartedProcessOfMachine() > 0) speaker = first;
  } else {
    SetStopText(
        Translated("\nStopping after the steps in flight; another Ctrl-C stops "
                   "at once.\n"));
  }
  for (const int number : {SIGINT, SIGTERM}) {
    // The shell ignores SIGINT for background processes: leave it ignored.
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) signal(number, OnSignal);
  }
}

void Processes::SetDuring(const std::string& where) {
  if (!several()) return;
  world_->SetDuring(where);
  if (rank() > 1) return;  // the second prints it if the first is gone
  SetStopText(absl::StrCat(
      "\n",
      Say("%s: asked to stop in %s. Unless it says that it has saved there:",
          Name(), where),
      "\n", how_to_go_on_));
}

Dataset Processes::Part(Dataset data) const {
  if (!several()) return data;
  const std::vector<std::int64_t> sizes =
      ShardSizes(data.size(), std::vector<int>(size(), 1));
  const std::int64_t begin =
      std::accumulate(sizes.begin(), sizes.begin() + rank(), std::int64_t{0});
  const std::int64_t end = begin + sizes[rank()];
  return {data.name,
          {data.images.begin() + begin * kImagePixels,
           data.images.begin() + end * kImagePixels},
          {data.labels.begin() + begin, data.labels.begin() + end}};
}

void Processes::Complain(const std::string& message) const {
  SetStopText("");  // when one process ends, mpirun stops the others
  if (message.empty()) return;
  std::cerr << Wrap(message, several() ? Name() + ": " : Lead("Error:"))
            << std::flush;
}

void Processes::Fail(const std::string& message) const {
  Complain(message);
  if (!several()) return;
  std::cerr << how_to_go_on_ << std::flush;
  MpiWorld::Abort(1);
}

std::string Processes::Name() const {
  return absl::StrFormat("rank %d of %d", rank(), size());
}

}  // namespace d2l
