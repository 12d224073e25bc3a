#include "chapters/profiling/latencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies_core.h"
#include "chapters/profiling/latencies_device.h"
#include "chapters/profiling/latencies_io.h"
#include "chapters/profiling/latencies_memory.h"
#include "chapters/profiling/latencies_sampling.h"
#include "chapters/profiling/latencies_threads.h"
#include "common/device/device.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Budget Short() {
  Budget budget;
  budget.seconds = 0.005;
  return budget;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    const char* const base = std::getenv("TEST_TMPDIR");
    path_ = absl::StrCat(base != nullptr ? base : "/tmp", "/latencies_XXXXXX");
    EXPECT_NE(mkdtemp(&path_[0]), nullptr);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = path_ + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  std::string path_;
};

void ExpectSamples(const std::string& what, const std::vector<double>& nanos) {
  EXPECT_GE(nanos.size(), 6u) << what;
  for (const double sample : nanos) {
    EXPECT_TRUE(std::isfinite(sample) && sample > 0) << what << ": " << sample;
  }
}

// Samples and how they came about, or a reason: one of the two.
void ExpectSamplesOrReason(const std::string& what,
                           const std::vector<double>& nanos,
                           const std::string& how, const std::string& why_not) {
  if (nanos.empty()) {
    EXPECT_THAT(why_not, EndsWith(".")) << what;
    return;
  }
  ExpectSamples(what, nanos);
  EXPECT_EQ(why_not, "") << what;
  EXPECT_THAT(how, EndsWith(".")) << what;
}

TEST(RandomCycle, IsOneCycleThroughAll) {
  for (const std::int64_t count : {1, 2, 3, 5, 64, 1000, 4097}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const std::vector<std::uint32_t> next = RandomCycle(count, seed);
      ASSERT_EQ(static_cast<std::int64_t>(next.size()), count);
      std::set<std::uint32_t> seen;
      std::uint32_t at = 0;
      do {
        seen.insert(at);
        ASSERT_LT(at, next.size());
        at = next[at];
      } while (at != 0 && seen.count(at) == 0);
      EXPECT_EQ(at, 0u) << count;
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count);
    }
  }
  EXPECT_NE(RandomCycle(1000, 1), RandomCycle(1000, 2));
  EXPECT_EQ(RandomCycle(1000, 1), RandomCycle(1000, 1));
}

TEST(RandomCycle, IsInNoOrderThatAPrefetcherKnows) {
  const std::vector<std::uint32_t> next = RandomCycle(10000, 1);
  std::map<std::int64_t, int> strides;
  for (std::size_t i = 0; i < next.size(); ++i) {
    ++strides[static_cast<std::int64_t>(next[i]) -
              static_cast<std::int64_t>(i)];
  }
  // Each of the 20,000 strides comes up about once at most.
  for (const auto& [stride, count] : strides) EXPECT_LT(count, 20) << stride;
}

TEST(PointerChase, VisitsEveryLineOnceAndComesBack) {
  const std::unique_ptr<PointerChase> chase = PointerChase::Allocate(3 * kMiB);
  ASSERT_NE(chase, nullptr);
  // The last is built over a larger one.
  for (const std::int64_t bytes :
       {std::int64_t{64}, std::int64_t{200}, 3 * kMiB, std::int64_t{4096}}) {
    chase->Build(bytes, 7);
    EXPECT_EQ(chase->nodes(), bytes / kCacheLineBytes);
    std::set<const PointerChase::Node*> seen;
    for (std::int64_t i = 0; i < chase->nodes(); ++i) {
      seen.insert(chase->Walk(1));
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), chase->nodes());
    const PointerChase::Node* const start = chase->Walk(0);
    EXPECT_EQ(chase->Walk(chase->nodes()), start);
    EXPECT_EQ(chase->Walk(5 * chase->nodes()), start);
    // One line each, side by side.
    EXPECT_EQ(*seen.rbegin() - *seen.begin() + 1, chase->nodes());
    EXPECT_EQ(sizeof(PointerChase::Node), 64u);
  }
}

TEST(PointerChase, SaysInWhatPagesItLies) {
  const std::unique_ptr<PointerChase> chase = PointerChase::Allocate(4 * kMiB);
  ASSERT_NE(chase, nullptr);
  chase->Build(4 * kMiB, 1);
  EXPECT_THAT(chase->Pages(), HasSubstr(" pages"));
}

TEST(HugePageBytes, FindsTheMappingOfAnAddress) {
  const std::string smaps =
      "7f0000000000-7f0000400000 rw-p 00000000 00:00 0 \n"
      "Size:               4096 kB\n"
      "AnonHugePages:      2048 kB\n"
      "VmFlags: rd wr mr mw me ac hg\n"
      "7f0000400000-7f0000800000 rw-p 00000000 00:00 0 [heap]\n"
      "Size:               4096 kB\n"
      "AnonHugePages:         0 kB\n";
  EXPECT_EQ(HugePageBytes(smaps, 0x7f0000000000), 2 * kMiB);
  EXPECT_EQ(HugePageBytes(smaps, 0x7f00003fffff), 2 * kMiB);
  EXPECT_EQ(HugePageBytes(smaps, 0x7f0000400000), 0);
  EXPECT_EQ(HugePageBytes(smaps, 0x7f0000800000), 0);
  EXPECT_EQ(HugePageBytes("", 0x7f0000000000), 0);
}

TEST(CacheBytes, AreThoseOfDataCaches) {
  TemporaryFolder root;
  EXPECT_EQ(CacheBytes(1, root.path()), std::nullopt);
  const auto write = [&](int index, const char* level, const char* type,
                         const char* size) {
    const std::string cache =
        absl::StrCat("/sys/devices/system/cpu/cpu0/cache/index", index, "/");
    root.Write(cache + "level", level);
    root.Write(cache + "type", type);
    root.Write(cache + "size", size);
  };
  write(0, "1\n", "Instruction\n", "32K\n");
  write(1, "1\n", "Data\n", "48K\n");
  write(2, "2\n", "Unified\n", "2M\n");
  write(3, "3\n", "Unified\n", "?\n");
  EXPECT_EQ(CacheBytes(1, root.path()), 48 * 1024);
  EXPECT_EQ(CacheBytes(2, root.path()), 2 * kMiB);
  EXPECT_EQ(CacheBytes(3, root.path()), std::nullopt);
  EXPECT_EQ(CacheBytes(4, root.path()), std::nullopt);
}

TEST(SampleNanos, GrowsBatchesToWhatTheBudgetAllows) {
  Budget budget;
  budget.samples = 8;
  // A tenth of the seconds for each batch, but 200 us at most; 3 ns each.
  for (const auto& [seconds, batch] :
       {std::pair<double, double>{0.0006, 20e3}, {60, 67e3}}) {
    budget.seconds = seconds;
    std::vector<std::int64_t> batches;
    const std::vector<double> samples =
        SampleNanos(budget, [&](std::int64_t n) {
          batches.push_back(n);
          return 3 * n;
        });
    EXPECT_EQ(samples, std::vector<double>(8, 3.0));
    EXPECT_EQ(batches.front(), 1);
    EXPECT_NEAR(static_cast<double>(batches.back()), batch, batch / 2);
    EXPECT_TRUE(std::is_sorted(batches.begin(), batches.end()));
  }
}

TEST(SampleNanos, KeepsToTheLargestBatchAndTheFewestSamples) {
  Budget budget;
  budget.seconds = 60;
  std::int64_t largest = 0;
  const auto nanos_of = [&](std::int64_t n) {
    largest = std::max(largest, n);
    return n;
  };
  EXPECT_THAT(SampleNanos(budget, nanos_of, 50), SizeIs(99));
  EXPECT_EQ(largest, 50);
  budget.seconds = 0;  // late from the start
  EXPECT_THAT(SampleNanos(budget, nanos_of), SizeIs(6));
}

TEST(Latencies, OfOneCore) {
  const Budget budget = Short();
  ExpectSamples("addition", MeasureAddition(budget).nanos);
  ExpectSamples("mutex", MeasureMutex(budget).nanos);
  ExpectSamples("atomic", MeasureAtomic(budget).nanos);
  ExpectSamples("system call", MeasureSystemCall(budget).nanos);
  ExpectSamples("thread", MeasureThread(budget).nanos);
  ExpectSamples("4 KiB", MeasureMemory(4096, kMiB, budget).nanos);
  const Measurement mispredict = MeasureMispredict(budget);
  ExpectSamplesOrReason("mispredict", mispredict.nanos, mispredict.how,
                        mispredict.why_not);
}

TEST(Latencies, MoreMemoryThanAllowedIsRefused) {
  const Budget budget = Short();
  EXPECT_THAT(MeasureMemory(2 * kMiB, kMiB, budget).why_not,
              HasSubstr("it needs 2.0 MiB; here at most 1.0 MiB"));
  EXPECT_THAT(MeasureBeyondCaches(kMiB, budget).why_not,
              HasSubstr("here at most 1.0 MiB"));
  for (const int level : {1, 2, 3}) {
    EXPECT_THAT(MeasureCache(level, 64, budget).nanos, IsEmpty());
    EXPECT_NE(MeasureCache(level, 64, budget).why_not, "");
  }
}

TEST(Latencies, BetweenThreads) {
  ASSERT_THAT(AllowedCpus(), Not(IsEmpty()));
  const Budget budget = Short();
  for (const Measurement& measurement :
       {MeasureCacheLine(budget), MeasureWakeUp(budget),
        MeasureContextSwitch(budget)}) {
    ExpectSamplesOrReason(measurement.how, measurement.nanos, measurement.how,
                          measurement.why_not);
  }
}

TEST(Latencies, OneCpuIsEnoughForSome) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(AllowedCpus().back()), &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) {
    GTEST_SKIP() << "a thread may not be pinned here";
  }
  EXPECT_THAT(AllowedCpus(), SizeIs(1));
  EXPECT_THAT(MeasureCacheLine(Short()).why_not, HasSubstr("two cores"));
  EXPECT_THAT(MeasureWakeUp(Short()).why_not, HasSubstr("two cores"));
  ExpectSamples("context switch", MeasureContextSwitch(Short()).nanos);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(Latencies, OfEveryDevice) {
  for (const DeviceInfo& info : Devices()) {
    ExpectSamples("enqueue", MeasureEnqueue(info.device, Short()).nanos);
    ExpectSamples("done", MeasureCompletion(info.device, Short()).nanos);
    const CopyLatencies copies = MeasureCopies(info.device, Short());
    ExpectSamples("to", copies.to_device.nanos);
    ExpectSamples("from", copies.from_device.nanos);
    EXPECT_EQ(
        copies.to_device.how.find("from memory to memory") != std::string::npos,
        info.kind == DeviceKind::kVirtual ||
            info.kind == DeviceKind::kModelled);
  }
}

TEST(Latencies, TheDiskPartLeavesNoFile) {
  TemporaryFolder folder;
  const DiskLatencies disk = MeasureDisk(folder.path(), 8 * kMiB, Short());
  for (const Measurement* measurement :
       {&disk.random_read, &disk.random_write, &disk.sequential_read,
        &disk.sequential_write}) {
    ExpectSamples(measurement->why_not, measurement->nanos);
    EXPECT_THAT(measurement->how,
                AllOf(HasSubstr("file of 8.0 MiB"), HasSubstr("page cache"),
                      HasSubstr("file system")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Latencies, TheDiskPartSaysWhatIsInTheWay) {
  TemporaryFolder folder;
  const DiskLatencies large =
      MeasureDisk(folder.path(), std::int64_t{1} << 60, Short());
  EXPECT_THAT(large.random_read.nanos, IsEmpty());
  EXPECT_THAT(large.random_read.why_not,
              AllOf(StartsWith(folder.path()), HasSubstr("free")));
  EXPECT_EQ(large.sequential_write.why_not, large.random_read.why_not);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  // Nobody may create a file in the second, not even root.
  for (const std::string& directory :
       {folder.path() + "/none", std::string("/proc/self")}) {
    const DiskLatencies disk = MeasureDisk(directory, 8 * kMiB, Short());
    EXPECT_THAT(disk.random_write.nanos, IsEmpty());
    EXPECT_THAT(disk.random_write.why_not,
                AllOf(HasSubstr(directory), EndsWith(".")));
  }
}

TEST(Latencies, OverTheLoopbackOrWhyNot) {
  const Measurement tcp = MeasureLoopback(Short());
  ExpectSamplesOrReason("tcp", tcp.nanos, tcp.how, tcp.why_not);
}

TEST(LatencyBySize, SpacesTheSizesByRatio) {
  const std::vector<SizeLatency> points = LatencyBySize(kMiB, 5, 0.05);
  ASSERT_THAT(points, SizeIs(5));
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].bytes, std::int64_t{4096} << (2 * i));
    ExpectSamples(absl::StrCat(points[i].bytes), points[i].nanos);
  }
}

TEST(MeasureLatencies, FillsEveryRow) {
  TemporaryFolder folder;
  LatencyOptions options;
  options.seconds = 0.2;
  options.max_buffer_bytes = 4 * kMiB;
  options.file_bytes = 8 * kMiB;
  options.directory = folder.path();
  std::vector<std::string> done;
  options.progress = [&](const LatencyRow& row) { done.push_back(row.what); };
  const std::vector<LatencyRow> rows =
      MeasureLatencies(Devices()[0].device, options);
  ASSERT_EQ(rows.size(), done.size());
  std::map<std::string, double> book;
  int measured = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const LatencyRow& row = rows[i];
    EXPECT_EQ(row.what, done[i]);
    ExpectSamplesOrReason(row.what, row.nanos, row.how, row.why_not);
    if (row.book_nanos) book[row.what] = *row.book_nanos;
    if (!row.nanos.empty()) ++measured;
  }
  EXPECT_GE(measured, 14);
  EXPECT_EQ(book["L1 cache hit"], 1.5);
  EXPECT_EQ(book["Mutex, lock and unlock"], 25);
  EXPECT_EQ(book["Enqueue an operation"], 10e3);
  EXPECT_EQ(book["1 MB to the device"], 80e3);
  EXPECT_EQ(book["Disk: read 4 KB, random"], 120e3);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  const std::string text = LatencyTable(rows) + LatencyNotes(rows);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // Only a path is longer.
    if (line.find(folder.path()) == std::string::npos) {
      EXPECT_LE(line.size(), 80u) << line;
    }
  }
  EXPECT_THROW(
      MeasureLatencies(Device(DeviceType::kCpu, kMaxDevices - 1), options),
      std::invalid_argument);
}

TEST(LatencyTable, PutsTheBooksAndYoursSideBySide) {
  const std::vector<LatencyRow> rows = {
      {"L1 cache hit", 1.5, "4 cycles", {2, 2, 2, 2, 2, 3}, "a chase.", ""},
      {"System call", std::nullopt, "", {250.0}, "getppid.", ""},
      {"Enqueue an operation", 10e3, "", {100, 110, 90}, "x + y.", ""},
      {"GPU shared memory", 30, "30 to 90 cycles", {}, "", "no kernel."},
      {"GPU global memory", 200, "", {}, "", "no kernel."},
      {"Random access", 10e6, "a disk", {}, "", "there is no disk."},
      {"Wait", 1e6, "", {1.5e9}, "", ""}};
  EXPECT_EQ("\n" + LatencyTable(rows), R"(
                               the book   yours                           ratio
L1 cache hit                     1.5 ns   2.00 ns [2.00, 3.00]            1.33x
System call                           -   250 ns
Enqueue an operation              10 us   100 ns [90.0, 110]            0.0100x
GPU shared memory                 30 ns   n/a
GPU global memory                200 ns   n/a
Random access                     10 ms   n/a
Wait                               1 ms   1.50 s                         1,500x
Yours: the median [and its 95 % interval]; ratio: yours / the book's.
n/a: GPU shared memory; GPU global memory: no kernel.
n/a: Random access: there is no disk.
)");
  EXPECT_EQ(LatencyNotes(rows),
            "- L1 cache hit. The book: 4 cycles. Yours: a chase.\n"
            "- System call. Yours: getppid.\n"
            "- Enqueue an operation. Yours: x + y.\n"
            "- GPU shared memory. The book: 30 to 90 cycles.\n"
            "- Random access. The book: a disk.\n");
}

TEST(LatencyTable, OfNothingIsItsHead) {
  EXPECT_THAT(LatencyTable({}),
              StartsWith("                               the"));
  EXPECT_EQ(LatencyNotes({}), "");
}

}  // namespace
}  // namespace d2l
