#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/multi_gpu/train/train.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/parallel/collective/collective.h"

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

std::string Processes::Name() const {
  return absl::StrFormat("rank %d of %d", rank(), size());
}

void Processes::Agree(const absl::Status& mine) const {
  if (!several() && !mine.ok()) throw CommonError(std::string(mine.message()));
  if (!several()) return;
  const std::vector<std::uint64_t> failed = world_->Gather(mine.ok() ? 0 : 1);
  const auto first = std::find(failed.begin(), failed.end(), 1);
  if (first == failed.end()) return;
  throw CommonError(
      first - failed.begin() == rank() ? std::string(mine.message()) : "");
}

void Processes::CheckSame(const std::string& name,
                          const std::string& value) const {
  if (!several()) return;
  const std::uint64_t mine = std::hash<std::string>()(value);
  const bool same = world_->Gather(mine)[0] == mine;
  Agree(same ? absl::OkStatus()
             : absl::FailedPreconditionError(
                   Say("%s: \"%s\" in this rank and another in rank 0; ranks "
                       "that differ do not train one network. Give all %d "
                       "ranks the same flags and data.",
                       Translated(name), value, size())));
}

std::int64_t Processes::Sum(std::int64_t mine) const {
  if (!several()) return mine;
  const std::vector<std::uint64_t> all = world_->Gather(mine);
  return static_cast<std::int64_t>(
      std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
}

void Processes::Connect(std::optional<AllReduceAlgorithm> algorithm,
                        DataParallelOptions* options) const {
  if (!several()) return;
  options->process = rank();
  options->processes = size();
  options->collective = [world = world_.get(), algorithm](Collective collective,
                                                          Replicas local,
                                                          SourceLocation at) {
    return world->RunAsync(collective, local, algorithm, at);
  };
}

void Processes::StopOnSignals() const {
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
      Say("%s: asked to stop in %s. If no line says that it has saved there:",
          Name(), where),
      "\n", how_to_go_on_));
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

}  // namespace d2l
