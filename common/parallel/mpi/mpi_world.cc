#include "common/parallel/mpi/mpi_world.h"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <future>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/ordered_sum.h"
#include "common/kernels/op_tables.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// MPI counts bytes in an int.
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 30;

void Check(int result, const std::string& doing) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw std::runtime_error(
      absl::StrCat(doing, ": MPI says: ", std::string(text, length)));
}

// Requests in progress, and the other processes' ranks that they are for.
class Requests {
 public:
  Requests(std::string doing, double timeout_seconds, int tag)
      : doing_(std::move(doing)),
        timeout_seconds_(timeout_seconds),
        tag_(tag) {}

  void Send(const void* data, std::int64_t bytes, int process) {
    ForPieces(bytes, [&](std::int64_t at, int count) {
      Check(MPI_Isend(static_cast<const char*>(data) + at, count, MPI_BYTE,
                      process, tag_, MPI_COMM_WORLD, New(process)),
            doing_);
    });
  }
  void Receive(void* data, std::int64_t bytes, int process) {
    ForPieces(bytes, [&](std::int64_t at, int count) {
      Check(MPI_Irecv(static_cast<char*>(data) + at, count, MPI_BYTE, process,
                      tag_, MPI_COMM_WORLD, New(process)),
            doing_);
    });
  }
  // process: -1 for a collective, which is with all processes.
  MPI_Request* New(int process) {
    processes_.push_back(process);
    requests_.push_back(MPI_REQUEST_NULL);
    return &requests_.back();
  }

  void Wait() {
    const Timer timer;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      for (;;) {
        int done = 0;
        Check(MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE), doing_);
        if (done != 0) break;
        if (timer.Seconds() > timeout_seconds_) Refuse(processes_[i]);
        sched_yield();  // for the other processes of this machine
      }
    }
    requests_.clear();
    processes_.clear();
  }

 private:
  template <typename F>
  static void ForPieces(std::int64_t bytes, const F& f) {
    for (std::int64_t at = 0; at < bytes; at += kMaxBytes) {
      f(at, static_cast<int>(std::min(kMaxBytes, bytes - at)));
    }
  }

  [[noreturn]] void Refuse(int process) const {
    throw std::runtime_error(absl::StrFormat(
        "%s: %s has not answered for %g s", doing_,
        process < 0 ? "another rank" : absl::StrCat("rank ", process),
        timeout_seconds_));
  }

  const std::string doing_;
  const double timeout_seconds_;
  const int tag_;
  std::vector<MPI_Request> requests_;
  std::vector<int> processes_;
};

// Memory for received data until it is added. Each thread keeps its own for its
// next call: fresh memory costs more than the addition.
struct Block {
  std::unique_ptr<char[]> data;
  std::size_t bytes;
};
thread_local std::vector<Block> scratch;

struct ExchangeArgs {
  CollectiveSchedule schedule;  // of all ranks, without the host's memory
  DType dtype;
  std::int64_t numel;
  std::vector<void*> local;  // of the ranks process * local.size() and on
  int process;
  double timeout_seconds;
  int tag;             // of the messages: differs from the last call's
  std::string during;  // "", or the beginning of messages: "batch 3: "
};

// Makes one schedule's moves, on plain memory; the caller waits. Every process
// makes the moves that it takes part in, in the schedule's order: it posts the
// sends and receives of a step, waits for them, and then makes its own
// additions. Sends are posted before any wait, so no two processes wait for
// each other.
class Exchanger {
 public:
  explicit Exchanger(const ExchangeArgs& args)
      : args_(args),
        size_(static_cast<std::int64_t>(DTypeSize(args.dtype))),
        per_process_(static_cast<int>(args.local.size())),
        add_(kernels::cpu::BinaryLoop(kernels::BinaryOp::kAdd, args.dtype,
                                      kernels::cpu::Operands::kVectorVector)) {}

  void Run() {
    std::vector<Move> step;
    args_.schedule.ForEach([&](const Move& move) {
      if (!step.empty() && step[0].step != move.step) RunStep(step);
      step.push_back(move);
    });
    RunStep(step);
  }

 private:
  void RunStep(std::vector<Move>& step) {
    if (step.empty()) return;
    Requests requests(absl::StrFormat("%s%s, step %d", args_.during,
                                      args_.schedule.name(), step[0].step),
                      args_.timeout_seconds, args_.tag);
    std::vector<std::vector<const void*>> inputs;  // of each move
    std::size_t used = 0;
    for (const Move& move : step) {
      inputs.push_back(Post(move, requests, used));
    }
    requests.Wait();
    for (std::size_t i = 0; i < step.size(); ++i) {
      if (IsLocal(step[i].to)) Make(step[i], std::move(inputs[i]));
    }
    step.clear();
  }

  // Memory of `scratch`, from number `used` on.
  static char* Take(std::size_t bytes, std::size_t& used) {
    if (used == scratch.size()) scratch.push_back({nullptr, 0});
    Block& block = scratch[used++];
    if (block.bytes < bytes) block = {std::make_unique<char[]>(bytes), bytes};
    return block.data.get();
  }

  // Posts the sends and receives of what the move reads. Returns where the data
  // will be, if the move is this process's.
  std::vector<const void*> Post(const Move& move, Requests& requests,
                                std::size_t& used) {
    const std::int64_t bytes = Numel(move) * size_;
    std::vector<const void*> inputs;
    for (const int from : Sources(move, args_.schedule.ranks())) {
      if (IsLocal(from) && !IsLocal(move.to)) {
        requests.Send(At(from, move), bytes, move.to / per_process_);
      } else if (IsLocal(from)) {
        inputs.push_back(At(from, move));
      } else if (IsLocal(move.to)) {
        char* const into =
            move.op == MoveOp::kCopy ? At(move.to, move) : Take(bytes, used);
        requests.Receive(into, bytes, from / per_process_);
        inputs.push_back(into);
      }
    }
    return inputs;
  }

  // Does the rest of the move when all inputs are there.
  void Make(const Move& move, std::vector<const void*> inputs) {
    char* const out = At(move.to, move);
    const std::int64_t numel = Numel(move);
    if (move.op == MoveOp::kSum) {
      kernels::cpu::OrderedSum({args_.dtype, numel, out, std::move(inputs)});
    } else if (move.op == MoveOp::kAdd) {
      add_(out, out, inputs[0], nullptr, numel);
    } else if (inputs[0] != out && numel > 0) {
      std::memcpy(out, inputs[0], numel * size_);
    }
  }

  bool IsLocal(int rank) const { return rank / per_process_ == args_.process; }
  std::int64_t Begin(int chunk) const {
    return ChunkBegin(args_.numel, args_.schedule.chunks(), chunk);
  }
  std::int64_t Numel(const Move& move) const {
    return Begin(move.chunk + 1) - Begin(move.chunk);
  }
  char* At(int rank, const Move& move) const {
    return static_cast<char*>(args_.local[rank % per_process_]) +
           Begin(move.chunk) * size_;
  }

  const ExchangeArgs& args_;
  const std::int64_t size_;
  const int per_process_;
  const kernels::cpu::LoopFn add_;
};

// MPI_Allreduce of each process's first array. The process's other arrays are
// added to it before, and become copies of it afterwards.
void AllReduceByMpi(const ExchangeArgs& args) {
  const auto add =
      kernels::cpu::BinaryLoop(kernels::BinaryOp::kAdd, args.dtype,
                               kernels::cpu::Operands::kVectorVector);
  void* const sum = args.local[0];
  for (std::size_t i = 1; i < args.local.size(); ++i) {
    add(sum, sum, args.local[i], nullptr, args.numel);
  }
  const std::int64_t size = static_cast<std::int64_t>(DTypeSize(args.dtype));
  const MPI_Datatype type =
      args.dtype == DType::kFloat32 ? MPI_FLOAT : MPI_DOUBLE;
  for (std::int64_t at = 0; at < args.numel; at += kMaxBytes / size) {
    const std::string doing = args.during + "MPI_Allreduce";
    Requests requests(doing, args.timeout_seconds, args.tag);
    const auto count =
        static_cast<int>(std::min(kMaxBytes / size, args.numel - at));
    Check(
        MPI_Iallreduce(MPI_IN_PLACE, static_cast<char*>(sum) + at * size, count,
                       type, MPI_SUM, MPI_COMM_WORLD, requests.New(-1)),
        doing);
    requests.Wait();
  }
  for (std::size_t i = 1; i < args.local.size() && args.numel > 0; ++i) {
    std::memcpy(args.local[i], sum, args.numel * size);
  }
}

// MPI waits for ever for a process that does not join, and cannot be cancelled.
// A start takes longer than an answer: seconds on a busy machine.
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
    double timeout_seconds) {
  int level = 0;
  if (InitInTime(timeout_seconds, &level) != MPI_SUCCESS) {
    return absl::FailedPreconditionError(
        "MPI does not start; is this the first MpiWorld of the process, and "
        "was the program started by mpirun?");
  }
  if (level < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        "this MPI cannot be called by one thread after another "
        "(MPI_THREAD_SERIALIZED); use Debian's openmpi-bin");
  }
  // A lost process fails an operation; it does not end this process.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int process = 0, processes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &process);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  return std::unique_ptr<MpiWorld>(
      new MpiWorld(timeout_seconds, process, processes));
}

MpiWorld::~MpiWorld() { MPI_Finalize(); }

void MpiWorld::Abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  throw std::logic_error("MPI_Abort has returned");
}

Work MpiWorld::RunAsync(Collective collective, Replicas local,
                        std::optional<AllReduceAlgorithm> algorithm,
                        SourceLocation at) {
  constexpr const char* kNames[] = {"allreduce", "reduce_scatter",
                                    "all_gather"};
  const char* const name = kNames[static_cast<int>(collective)];
  CheckReplicas(name, local, at);
  const auto refuse = [name, at](const std::string& what) {
    throw std::invalid_argument(
        absl::StrFormat("[%s] %s; requested at %s", name, what, at.ToString()));
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
  ExchangeArgs args{
      collective == Collective::kReduceScatter ? ReduceScatterSchedule(ranks)
      : collective == Collective::kAllGather
          ? AllGatherSchedule(ranks)
          : AllReduceSchedule(algorithm.value_or(AllReduceAlgorithm::kSplit),
                              ranks),
      local[0].dtype(),
      local[0].numel(),
      {},
      process_,
      timeout_seconds_,
      NextTag(/*gathers=*/false,
              3 * static_cast<std::uint64_t>(local[0].numel()) +
                  static_cast<std::uint64_t>(collective)),
      during_};
  Stream& stream = CommunicationStream(local[0].device());
  // MPI takes one call at a time.
  if (stream_ != nullptr) stream.Wait(stream_->Record(), at);
  stream_ = &stream;
  for (const Tensor& x : local) args.local.push_back(x.data());
  return RunOnOneStream(
      name, local,
      [args = std::move(args), by_mpi = collective == Collective::kAllReduce &&
                                        !algorithm.has_value()] {
        by_mpi ? AllReduceByMpi(args) : Exchanger(args).Run();
      },
      at);
}

std::vector<std::uint64_t> MpiWorld::Gather(std::uint64_t value,
                                            SourceLocation at) {
  // Behind all other calls, since MPI takes one at a time.
  if (stream_ != nullptr) stream_->Synchronize(at);
  // Kept, since MPI may write to them after a failure as well.
  static std::uint64_t sent;
  static auto& values = *new std::vector<std::uint64_t>;
  sent = value;
  values.assign(processes_, value);
  // Not MPI_Allgather, which does not tell which process is missing.
  Requests requests(during_ + "comparing a number", timeout_seconds_,
                    NextTag(/*gathers=*/true));
  for (int other = 0; other < processes_; ++other) {
    if (other == process_) continue;
    requests.Send(&sent, sizeof(sent), other);
    requests.Receive(&values[other], sizeof(sent), other);
  }
  requests.Wait();
  return values;
}

// Without the number of the call and of `what`, a process that has left out a
// call, or made another, would take another call's messages for its own.
int MpiWorld::NextTag(bool gathers, std::uint64_t what) {
  constexpr unsigned kCalls = 1 << 8, kWhat = 61;  // of 2^15 that MPI grants
  return static_cast<int>(2 * (calls_++ % kCalls * kWhat + what % kWhat) +
                          (gathers ? 1 : 0));
}

}  // namespace d2l
