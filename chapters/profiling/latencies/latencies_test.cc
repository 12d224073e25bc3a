#include "chapters/profiling/latencies/latencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies/measure.h"
#include "chapters/profiling/latencies/pointer_chase.h"
#include "common/base/files/atomic_file.h"
#include "common/device/device.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

Budget Short() {
  Budget budget;
  budget.seconds = 0.005;
  return budget;
}

class TemporaryFolder {
 public:
  const std::string& path() const { return directory_.path(); }
  void Write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = path() + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

 private:
  const TemporaryDirectory directory_;
};

void ExpectSamples(const std::vector<double>& seconds) {
  EXPECT_GE(seconds.size(), 6u);
  for (const double sample : seconds) {
    EXPECT_TRUE(std::isfinite(sample) && sample > 0 && sample < 10) << sample;
  }
}

// Expects either samples and how they were taken, or a reason.
void ExpectSamplesOrReason(const Measurement& measured) {
  EXPECT_EQ(measured.seconds.empty(), !measured.why_not.empty());
  if (measured.seconds.empty()) {
    EXPECT_THAT(measured.why_not, EndsWith("."));
  } else {
    ExpectSamples(measured.seconds);
    EXPECT_THAT(measured.how, EndsWith("."));
  }
}

TEST(RandomCycle, IsOneCycleThroughAll) {
  for (const std::int64_t count : {1, 2, 3, 5, 64, 1000, 4097}) {
    const std::vector<std::uint32_t> next = RandomCycle(count, 1);
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
  EXPECT_NE(RandomCycle(1000, 1), RandomCycle(1000, 2));
}

TEST(RandomCycle, IsInNoOrderThatAPrefetcherKnows) {
  const std::vector<std::uint32_t> next = RandomCycle(10000, 1);
  std::map<std::int64_t, int> strides;
  for (std::size_t i = 0; i < next.size(); ++i) {
    ++strides[std::int64_t{next[i]} - static_cast<std::int64_t>(i)];
  }
  // Each of the 20,000 strides occurs about once at most.
  for (const auto& [stride, count] : strides) EXPECT_LT(count, 20) << stride;
}

TEST(PointerChase, VisitsEveryLineOnceAndComesBack) {
  for (const std::int64_t bytes :
       {std::int64_t{64}, std::int64_t{200}, std::int64_t{4096}, 3 * kMiB}) {
    PointerChase chase(bytes, 7);
    EXPECT_EQ(chase.nodes(), bytes / kCacheLineBytes);
    std::set<const PointerChase::Node*> seen;
    for (std::int64_t i = 0; i < chase.nodes(); ++i) seen.insert(chase.Walk(1));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), chase.nodes());
    const PointerChase::Node* const start = chase.Walk(0);
    EXPECT_EQ(chase.Walk(5 * chase.nodes()), start);
    // One line each, side by side.
    EXPECT_EQ(*seen.rbegin() - *seen.begin() + 1, chase.nodes());
    EXPECT_EQ(sizeof(PointerChase::Node), 64u);
  }
}

TEST(SampleBatches, GrowsBatchesToWhatTheBudgetAllows) {
  Budget budget;
  budget.samples = 8;
  // A tenth of the seconds for each batch, but 200 us at most; 3 ns each.
  for (const auto& [seconds, batch] :
       {std::pair<double, double>{0.0006, 20e3}, {60, 67e3}}) {
    budget.seconds = seconds;
    std::vector<std::int64_t> batches;
    const std::vector<double> samples =
        SampleBatches(budget, [&](std::int64_t n) {
          batches.push_back(n);
          return 3 * n;
        });
    ASSERT_THAT(samples, SizeIs(8));
    for (const double sample : samples) EXPECT_DOUBLE_EQ(sample, 3e-9);
    EXPECT_EQ(batches.front(), 1);
    EXPECT_NEAR(static_cast<double>(batches.back()), batch, batch / 2);
    EXPECT_TRUE(std::is_sorted(batches.begin(), batches.end()));
  }
}

TEST(SampleBatches, KeepsToTheLargestBatchAndTheFewestSamples) {
  Budget budget;
  budget.seconds = 60;
  std::int64_t largest = 0;
  const auto nanos_of = [&](std::int64_t n) {
    largest = std::max(largest, n);
    return n;
  };
  EXPECT_THAT(SampleBatches(budget, nanos_of, 50), SizeIs(99));
  EXPECT_EQ(largest, 50);
  budget.seconds = 0;  // late from the start
  EXPECT_THAT(SampleBatches(budget, nanos_of), SizeIs(6));
}

TEST(Measure, RefusesMoreMemoryThanAllowed) {
  const MemoryLatencies memory = MeasureMemory(kMiB, Short());
  EXPECT_THAT(memory.mib64.why_not,
              HasSubstr("it needs 64.0 MiB; here at most 1.0 MiB"));
  EXPECT_THAT(memory.beyond.why_not, HasSubstr("here at most 1.0 MiB"));
  EXPECT_THAT(MeasureMemory(64, Short()).l1.seconds, IsEmpty());
}

TEST(Measure, OneCpuIsEnoughForSomeAndLeftAsItWas) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  int cpu = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(cpu), &all)) ++cpu;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  if (sched_setaffinity(0, sizeof(one), &one) != 0) {
    GTEST_SKIP() << "a thread may not be pinned here";
  }
  EXPECT_THAT(MeasureCacheLine(Short()).why_not, HasSubstr("two cores"));
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
  ExpectSamplesOrReason(MeasureCacheLine(Short()));
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&after, &all));
}

TEST(LatencyBySize, SpacesTheSizesByRatio) {
  const std::vector<SizeLatency> points = LatencyBySize(kMiB, 5, 0.05);
  ASSERT_THAT(points, SizeIs(5));
  for (std::size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].bytes, std::int64_t{4096} << (2 * i));
    ExpectSamples(points[i].seconds);
  }
}

TEST(MeasureLatencies, FillsEveryRow) {
  LatencyOptions options;
  options.seconds = 0.2;
  options.max_buffer_bytes = 4 * kMiB;
  const std::vector<LatencyRow> rows =
      MeasureLatencies(Devices()[0].device, options);
  ASSERT_THAT(rows, SizeIs(9));
  std::map<std::string, double> book;
  std::set<std::string> measured;
  for (const LatencyRow& row : rows) {
    SCOPED_TRACE(row.what);
    ExpectSamplesOrReason(row.yours);
    book[row.what] = row.book_seconds;
    if (!row.yours.seconds.empty()) measured.insert(row.what);
  }
  for (const char* what :
       {"Floating-point addition", "Mutex, lock and unlock"}) {
    EXPECT_EQ(measured.count(what), 1u) << what;
  }
  EXPECT_DOUBLE_EQ(book["L1 cache hit"], 1.5e-9);
  EXPECT_DOUBLE_EQ(book["Memory beyond the caches"], 75e-9);
  std::istringstream lines(LatencyTable(rows, true) +
                           LatencyTable(rows, false) + LatencyNotes(rows));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THROW(
      MeasureLatencies(Device(DeviceType::kCpu, kMaxDevices - 1), options),
      std::invalid_argument);
}

TEST(LatencyTable, PutsTheBooksAndYoursSideBySide) {
  const auto yours = [](std::vector<double> nanos, const char* how) {
    for (double& sample : nanos) sample *= 1e-9;
    return Measurement{nanos, how};
  };
  const std::vector<LatencyRow> rows = {
      {"L1 cache hit", 1.5e-9, "4 cycles",
       yours({2, 2, 2, 2, 2, 3}, "a chase.")},
      {"Branch mispredict", 6e-9, "", yours({100, 110, 90}, "branches.")},
      {"L2 cache hit", 5e-9, "12 to 17 cycles", NotMeasured("no size.")},
      {"L3 cache hit", 16e-9, "", NotMeasured("no size.")},
      {"64 MB of memory", 46e-9, "local", NotMeasured("too large.")},
      {"Mutex, lock and unlock", 25e-9, "", yours({50}, "")}};
  EXPECT_EQ("\n" + LatencyTable(rows, true), R"(
                               the book   yours                           ratio
L1 cache hit                     1.5 ns   2.00 ns [2.00, 3.00]            1.33x
Branch mispredict                  6 ns   100 ns [90.0, 110]              16.7x
L2 cache hit                       5 ns   n/a
L3 cache hit                      16 ns   n/a
64 MB of memory                   46 ns   n/a
Mutex, lock and unlock            25 ns   50.0 ns                         2.00x
Yours: the median [and its 95 % interval]; ratio: yours / the book's.
n/a: L2 cache hit; L3 cache hit: no size.
n/a: 64 MB of memory: too large.
)");
  EXPECT_EQ("\n" + LatencyTable(rows, false), R"(
                               the book   yours                           ratio
L1 cache hit                     1.5 ns   2.00 ns [2.00, 3.00]            1.33x
Branch mispredict                  6 ns   100 ns [90.0, 110]              16.7x
L2 cache hit                       5 ns   n/a
L3 cache hit                      16 ns   n/a
64 MB of memory                   46 ns   n/a
Mutex, lock and unlock            25 ns   50.0 ns                         2.00x
)");
  EXPECT_EQ(LatencyNotes(rows),
            "- L1 cache hit. The book: 4 cycles. Yours: a chase.\n"
            "- Branch mispredict. Yours: branches.\n"
            "- L2 cache hit. The book: 12 to 17 cycles.\n"
            "- 64 MB of memory. The book: local.\n");
}

}  // namespace
}  // namespace d2l
