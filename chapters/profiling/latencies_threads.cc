#include "chapters/profiling/latencies_threads.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/profiling/latencies_sampling.h"
#include "chapters/profiling/machine_files.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

[[noreturn]] void ThrowErrno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

// The calling thread, to one CPU.
void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) {
    ThrowErrno(absl::StrCat("a thread could not be pinned to CPU ", cpu));
  }
}

// Two hardware threads of one core share its caches.
bool SameCore(int a, int b) {
  const auto topology = [](int cpu, const char* what) {
    return ReadInt(
        absl::StrCat("/sys/devices/system/cpu/cpu", cpu, "/topology/", what));
  };
  for (const char* what : {"core_id", "physical_package_id"}) {
    const std::optional<std::int64_t> of_a = topology(a, what);
    if (!of_a || of_a != topology(b, what)) return false;
  }
  return true;
}

struct CpuPair {
  int measuring;
  int answering;
};

// Of two cores; nothing if there is only one.
std::optional<CpuPair> TwoCores() {
  const std::vector<int> cpus = AllowedCpus();
  for (const int cpu : cpus) {
    if (!SameCore(cpus[0], cpu) && cpu != cpus[0]) {
      return CpuPair{cpus[0], cpu};
    }
  }
  return std::nullopt;
}

// Both ends of a connection between two threads. RoundTrip sends a word and
// waits for the answer. Answer runs on the other thread; it returns after
// Close, which any thread may call.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void RoundTrip() = 0;
  virtual void Answer() = 0;
  virtual void Close() = 0;
};

// Runs the function on a thread of its own, and afterwards `close`, whatever
// happens.
class PinnedThread {
 public:
  PinnedThread(int cpu, std::function<void()> work, std::function<void()> close)
      : thread_([this, cpu, work = std::move(work), close = std::move(close)] {
          try {
            Pin(cpu);
            work();
          } catch (...) {
            failure_ = std::current_exception();
          }
          close();
        }) {}
  ~PinnedThread() {
    if (thread_.joinable()) thread_.join();
  }
  // What the function threw, or null.
  std::exception_ptr Join() {
    thread_.join();
    return failure_;
  }

 private:
  std::exception_ptr failure_;  // before thread_, which writes it
  std::thread thread_;
};

Measurement MeasureOneWay(const CpuPair& cpus, Connection& connection,
                          const Budget& budget) {
  const auto close = [&] { connection.Close(); };
  std::vector<double> nanos;
  const auto measure = [&] {
    nanos = SampleNanos(budget, [&](std::int64_t n) {
      const Timer timer;
      for (std::int64_t i = 0; i < n; ++i) connection.RoundTrip();
      return timer.Nanos();
    });
  };
  // If one side ends, the connection is closed and the other one ends too.
  PinnedThread answering(
      cpus.answering, [&] { connection.Answer(); }, close);
  std::exception_ptr failure;
  try {
    failure = PinnedThread(cpus.measuring, measure, close).Join();
  } catch (const std::system_error&) {
    failure = std::current_exception();  // there is no thread that closes
    close();
  }
  // Its failure first: it may be what ended the other one.
  if (const std::exception_ptr first = answering.Join()) failure = first;
  if (failure) std::rethrow_exception(failure);
  Measurement result;
  for (const double round_trip : nanos) result.nanos.push_back(round_trip / 2);
  return result;
}

class Flag : public Connection {
 public:
  void RoundTrip() override {
    if (Pass(kAnswered, kSent)) {
      // Without the pause of other spinning loops, which would delay it.
      while (word_.load() == kSent) {
      }
    }
    if (word_.load() == kClosed) {
      throw std::runtime_error("the other thread has ended");
    }
  }
  void Answer() override {
    do {
      while (word_.load() == kAnswered) {
      }
    } while (Pass(kSent, kAnswered));
  }
  void Close() override { word_.store(kClosed); }

 private:
  static constexpr int kAnswered = 0;
  static constexpr int kSent = 1;
  static constexpr int kClosed = 2;

  // Not a store, which would overwrite a Close.
  bool Pass(int from, int to) {
    return word_.compare_exchange_strong(from, to);
  }

  alignas(64) std::atomic<int> word_{kAnswered};
};

class Sleepers : public Connection {
 public:
  void RoundTrip() override {
    std::unique_lock<std::mutex> lock(mutex_);
    sent_ = true;
    changed_.notify_one();
    changed_.wait(lock, [&] { return !sent_ || closed_; });
    if (closed_) throw std::runtime_error("the other thread has ended");
  }
  void Answer() override {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return sent_ || closed_; });
      if (closed_) return;
      sent_ = false;
      changed_.notify_one();
    }
  }
  void Close() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool sent_ = false;    // guarded by mutex_
  bool closed_ = false;  // guarded by mutex_
};

class Pipes : public Connection {
 public:
  Pipes() {
    if (pipe(there_) != 0) ThrowErrno("there is no pipe");
    if (pipe(back_) != 0) {
      const int error = errno;
      close(there_[0]);
      close(there_[1]);
      errno = error;
      ThrowErrno("there is no pipe");
    }
  }
  ~Pipes() override {
    for (const int fd : {there_[0], there_[1], back_[0], back_[1]}) close(fd);
  }
  void RoundTrip() override {
    if (!Send(there_[1], kWord) || Receive(back_[0]) != kWord) {
      throw std::runtime_error("the other thread has ended");
    }
  }
  void Answer() override {
    while (Receive(there_[0]) == kWord && Send(back_[1], kWord)) {
    }
  }
  // A word that ends each side: closing a descriptor that another thread reads
  // from would race.
  void Close() override {
    Send(there_[1], kEnd);
    Send(back_[1], kEnd);
  }

 private:
  static constexpr char kWord = 'x';
  static constexpr char kEnd = '.';
  // There are at most a few bytes in a pipe, so that writing never blocks.
  static bool Send(int fd, char word) { return write(fd, &word, 1) == 1; }
  static char Receive(int fd) {
    char word = kEnd;
    return read(fd, &word, 1) == 1 ? word : kEnd;
  }
  int there_[2];
  int back_[2];
};

Measurement MeasureOnTwoCores(Connection& connection, const char* how,
                              const Budget& budget) {
  const std::optional<CpuPair> cpus = TwoCores();
  if (!cpus) {
    return NotMeasured(
        "it needs two cores, and this process may use only one.");
  }
  Measurement result = MeasureOneWay(*cpus, connection, budget);
  result.how = absl::StrFormat(how, cpus->measuring, cpus->answering);
  return result;
}

}  // namespace

std::vector<int> AllowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    // More CPUs than the set has room for, or a sandbox.
    return {0};
  }
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

Measurement MeasureCacheLine(const Budget& budget) {
  Flag flag;
  return MeasureOnTwoCores(
      flag,
      "half of a round trip of a flag that the threads on CPU %d and CPU %d "
      "watch and write in turn.",
      budget);
}

Measurement MeasureWakeUp(const Budget& budget) {
  Sleepers sleepers;
  return MeasureOnTwoCores(
      sleepers,
      "half of a round trip between threads on CPU %d and CPU %d that sleep on "
      "a condition variable in turn.",
      budget);
}

Measurement MeasureContextSwitch(const Budget& budget) {
  const int cpu = AllowedCpus().front();
  Pipes pipes;
  Measurement result = MeasureOneWay({cpu, cpu}, pipes, budget);
  result.how = absl::StrFormat(
      "half of a round trip of a byte through pipes between two threads, both "
      "on CPU %d: one switch, one write, one read.",
      cpu);
  return result;
}

Measurement MeasureThread(const Budget& budget) {
  Measurement result;
  result.nanos = SampleNanos(budget, [&](std::int64_t n) {
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) std::thread([] {}).join();
    return timer.Nanos();
  });
  result.how = "a std::thread that does nothing, created and joined.";
  return result;
}

}  // namespace d2l
