#include "common/parallel/mpi/mpi_world.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iostream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/ops/primitive/record.h"
#include "common/parallel/mpi/exchange.h"
#include "common/tensor/tensor.h"

namespace d2l {

namespace {

// MPI waits for ever for a process that does not join, and cannot be asked to
// stop. A start takes longer than an answer, seconds where the machine is busy.
int InitInTime(double timeout_seconds, int* level) {
  const double limit_seconds = std::clamp(timeout_seconds, 20.0, 1e6);
  std::promise<void> joined;
  std::thread watch = StartThread("MPI", [&] {
    const std::chrono::duration<double> limit(limit_seconds);
    if (joined.get_future().wait_for(limit) == std::future_status::ready) {
      return;
    }
    std::cerr << Wrap(
        Say("not all of the %d processes have started MPI within %g s. Start "
            "this program as every one of them.",
            MpiWorld::StartedProcesses(), limit_seconds),
        absl::StrFormat("rank %d of %d: ", MpiWorld::StartedProcess(),
                        MpiWorld::StartedProcesses()));
    _exit(1);
  });
  const int result =
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, level);
  joined.set_value();
  watch.join();
  return result;
}

}  // namespace

bool MpiWorld::BuiltIn() { return true; }

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Start(
    const MpiOptions& options) {
  int level = 0;
  if (InitInTime(options.timeout_seconds, &level) != MPI_SUCCESS) {
    return absl::FailedPreconditionError(
        "MPI does not start; is this the first MpiWorld of the process, and "
        "was the program started by mpirun?");
  }
  if (level < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        "this MPI cannot be called by one thread after another "
        "(MPI_THREAD_SERIALIZED); use Debian's openmpi-bin");
  }
  // A lost process is the failure of an operation, not the end of this one.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int process = 0, processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  return std::unique_ptr<MpiWorld>(new MpiWorld(options, process, processes));
}

MpiWorld::~MpiWorld() { MPI_Finalize(); }

void MpiWorld::Abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  throw std::logic_error("MPI_Abort has returned");
}

Work MpiWorld::AllReduceAsync(Replicas local,
                              std::optional<AllReduceAlgorithm> algorithm,
                              SourceLocation at) {
  const char* const name = "allreduce";
  CheckReplicas(name, local, at);
  const auto refuse = [at](const std::string& what) {
    throw std::invalid_argument(absl::StrFormat(
        "[allreduce] %s; requested at %s", what, at.ToString()));
  };
  for (const Tensor& x : local) {
    if (x.device().type() != DeviceType::kCpu) {
      refuse("MPI sends from the memory of CPU devices; got " + x.Describe());
    }
  }
  if (!IsFloatingPoint(local[0].dtype())) {
    refuse("float32 or float64 wanted; got " + local[0].Describe());
  }
  if (algorithm == AllReduceAlgorithm::kHost) {
    refuse("\"host\" is for the devices of one process; use split");
  }
  const int ranks = processes_ * static_cast<int>(local.size());
  mpi::ExchangeArgs args{
      AllReduceSchedule(algorithm.value_or(AllReduceAlgorithm::kSplit), ranks),
      local[0].dtype(),
      local[0].numel(),
      {},
      process_,
      options_.timeout_seconds,
      NextTag(/*gathers=*/false),
      during_};
  stream_ = &CommunicationStream(local[0].device());
  for (const Tensor& x : local) args.local.push_back(x.data());
  return RunOnOneStream(
      name, local,
      [args = std::move(args), by_mpi = !algorithm.has_value()] {
        by_mpi ? mpi::AllReduceByMpi(args) : mpi::Exchange(args);
      },
      at);
}

std::vector<std::uint64_t> MpiWorld::Gather(std::uint64_t value,
                                            SourceLocation at) {
  // Behind all other calls, since MPI takes one at a time.
  if (stream_ != nullptr) stream_->Synchronize(at);
  return mpi::AllGatherValues(value, processes_, during_,
                              options_.timeout_seconds,
                              NextTag(/*gathers=*/true));
}

// Without the numbers a process that has left out a call would take messages of
// another call, and another length, for its own.
int MpiWorld::NextTag(bool gathers) {
  constexpr unsigned kCalls = 1 << 14;  // 2 * kCalls - 1 is MPI's least limit
  return static_cast<int>(2 * (calls_++ % kCalls) + (gathers ? 1 : 0));
}

}  // namespace d2l
