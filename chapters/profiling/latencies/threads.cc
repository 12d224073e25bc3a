#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstddef>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies/measure.h"
#include "common/base/console/language.h"

namespace d2l {
namespace {

void Check(int error, const std::string& what) {
  if (error != 0) throw std::system_error(error, std::generic_category(), what);
}

cpu_set_t CpusOf(pthread_t thread) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  Check(pthread_getaffinity_np(thread, sizeof(cpus), &cpus),
        "the CPUs of a thread are not known");
  return cpus;
}

void Pin(pthread_t thread, int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  Check(pthread_setaffinity_np(thread, sizeof(cpus), &cpus),
        absl::StrCat("a thread could not be pinned to CPU ", cpu));
}

enum class Turn { kOurs, kTheirs, kClosed };

// A word that two threads pass to each other. RoundTrip hands it over and waits
// until it is back; Answer runs on the other thread until Close is called. Both
// watch it, without the pause of other spinning loops, which would delay the
// answer.
class WatchedWord {
 public:
  void RoundTrip() {
    turn_.store(Turn::kTheirs);
    while (turn_.load() == Turn::kTheirs) {
    }
  }
  void Answer() {
    while (true) {
      const Turn turn = turn_.load();
      if (turn == Turn::kClosed) return;
      if (turn == Turn::kTheirs) turn_.store(Turn::kOurs);
    }
  }
  void Close() { turn_.store(Turn::kClosed); }

 private:
  alignas(64) std::atomic<Turn> turn_{Turn::kOurs};
};

// Half of a round trip between this thread on the CPU `here` and another one.
std::vector<double> SampleOneWay(int here, int there, const Budget& budget) {
  const cpu_set_t allowed = CpusOf(pthread_self());
  const absl::Cleanup unpin = [&] {
    pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
  };
  Pin(pthread_self(), here);
  WatchedWord word;
  std::thread other([&] { word.Answer(); });
  const absl::Cleanup end = [&] {
    word.Close();
    other.join();
  };
  Pin(other.native_handle(), there);
  std::vector<double> samples = SampleEach(budget, [&] { word.RoundTrip(); });
  for (double& seconds : samples) seconds /= 2;
  return samples;
}

}  // namespace

std::vector<int> AllowedCores() {
  const cpu_set_t allowed = CpusOf(pthread_self());
  std::vector<int> cores;
  std::set<std::string> seen;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed)) continue;
    std::string siblings = absl::StrCat("CPU ", cpu);  // if /sys does not say
    std::ifstream(absl::StrCat("/sys/devices/system/cpu/cpu", cpu,
                               "/topology/thread_siblings_list")) >>
        siblings;
    if (seen.insert(siblings).second) cores.push_back(cpu);
  }
  return cores;
}

OnCpu::OnCpu(int cpu) : before_(CpusOf(pthread_self())) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<std::size_t>(cpu), &cpus);
  pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

OnCpu::~OnCpu() {
  pthread_setaffinity_np(pthread_self(), sizeof(before_), &before_);
}

Measurement MeasureCacheLine(const Budget& budget) {
  const std::vector<int> cores = AllowedCores();
  if (cores.size() < 2) {
    return NotMeasured(
        Say("it needs two cores, and this process may use only one."));
  }
  return {SampleOneWay(cores[0], cores[1], budget),
          Say("half of a round trip between threads on CPU %d and CPU %d that "
              "watch and write a flag in turn.",
              cores[0], cores[1])};
}

}  // namespace d2l
