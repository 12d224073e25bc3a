#include "common/parallel/mpi/exchange.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/timer.h"
#include "common/kernels/cpu/elementwise_loops.h"
#include "common/kernels/cpu/ordered_sum.h"
#include "common/kernels/op_tables.h"

namespace d2l::mpi {
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

// Requests on their way, and the ranks of other processes they are for.
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
  // For a collective, which is with all processes.
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

// What a move receives is kept in until it is added. Each thread keeps its own
// for its next call: fresh memory costs more than the addition.
struct Block {
  std::unique_ptr<char[]> data;
  std::size_t bytes;
};
thread_local std::vector<Block> scratch;

// Makes one schedule's moves.
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
    std::vector<char*> received;  // for each move, of other processes
    std::size_t used = 0;
    for (const Move& move : step) Post(move, requests, used, received);
    requests.Wait();
    for (std::size_t i = 0; i < step.size(); ++i) Make(step[i], received[i]);
    step.clear();
  }

  // Memory of `scratch`, from number `used` on.
  static char* Take(std::size_t bytes, std::size_t& used) {
    if (used == scratch.size()) scratch.push_back({nullptr, 0});
    Block& block = scratch[used++];
    if (block.bytes < bytes) block = {std::make_unique<char[]>(bytes), bytes};
    return block.data.get();
  }

  void Post(const Move& move, Requests& requests, std::size_t& used,
            std::vector<char*>& received) {
    const int first = move.op == MoveOp::kSum ? 0 : move.from;
    const int last =
        move.op == MoveOp::kSum ? args_.schedule.ranks() - 1 : move.from;
    const std::int64_t bytes = Numel(move) * size_;
    char* added = nullptr;
    if (IsLocal(move.to) && move.op != MoveOp::kCopy) {
      const int others = move.op == MoveOp::kSum
                             ? args_.schedule.ranks() - per_process_
                             : (IsLocal(move.from) ? 0 : 1);
      added = Take(bytes * others, used);
    }
    char* to = move.op == MoveOp::kCopy ? At(move.to, move) : added;
    for (int from = first; from <= last; ++from) {
      if (IsLocal(move.to) && !IsLocal(from)) {
        requests.Receive(to, bytes, from / per_process_);
        to += bytes;
      } else if (!IsLocal(move.to) && IsLocal(from)) {
        requests.Send(At(from, move), bytes, move.to / per_process_);
      }
    }
    received.push_back(added);
  }

  // What is left to do when all has arrived.
  void Make(const Move& move, const char* received) {
    if (!IsLocal(move.to)) return;
    char* const out = At(move.to, move);
    const std::int64_t numel = Numel(move);
    if (move.op == MoveOp::kCopy) {
      if (IsLocal(move.from) && numel > 0) {
        std::memcpy(out, At(move.from, move), numel * size_);
      }
      return;
    }
    if (move.op == MoveOp::kAdd) {
      const void* const from =
          IsLocal(move.from) ? At(move.from, move) : received;
      add_(out, out, from, nullptr, numel);
      return;
    }
    std::vector<const void*> inputs;
    for (int rank = 0; rank < args_.schedule.ranks(); ++rank) {
      inputs.push_back(IsLocal(rank) ? At(rank, move) : received);
      if (!IsLocal(rank)) received += numel * size_;
    }
    kernels::cpu::OrderedSum({args_.dtype, numel, out, std::move(inputs)});
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

}  // namespace

void Exchange(const ExchangeArgs& args) { Exchanger(args).Run(); }

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

std::vector<std::uint64_t> AllGatherValues(std::uint64_t value, int processes,
                                           const std::string& during,
                                           double timeout_seconds, int tag) {
  // Kept, since MPI may write to them after a failure as well.
  static std::uint64_t sent;
  static auto& values = *new std::vector<std::uint64_t>;
  sent = value;
  values.resize(processes);
  int mine = 0;
  Check(MPI_Comm_rank(MPI_COMM_WORLD, &mine), during);
  values[mine] = value;
  // Not MPI_Allgather, which does not tell who is missing.
  Requests requests(absl::StrCat(during, "comparing a number"), timeout_seconds,
                    tag);
  for (int other = 0; other < processes; ++other) {
    if (other == mine) continue;
    requests.Send(&sent, sizeof(sent), other);
    requests.Receive(&values[other], sizeof(sent), other);
  }
  requests.Wait();
  return values;
}

}  // namespace d2l::mpi
