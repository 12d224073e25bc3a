#include "chapters/profiling/latencies/latencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chapters/profiling/latencies/pointer_chase.h"

namespace d2l {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

void ExpectSamples(const std::vector<double>& seconds) {
  EXPECT_GE(seconds.size(), 6u);
  for (const double sample : seconds) {
    EXPECT_TRUE(std::isfinite(sample) && sample > 0 && sample < 10) << sample;
  }
}

// Expects either samples or a reason.
void ExpectSamplesOrReason(const Measurement& measured) {
  EXPECT_EQ(measured.seconds.empty(), !measured.why_not.empty());
  if (measured.seconds.empty()) {
    EXPECT_THAT(measured.why_not, EndsWith("."));
  } else {
    ExpectSamples(measured.seconds);
  }
}

// The rows, measured for a short time and with little memory.
std::map<std::string, Measurement> ShortRows(std::int64_t max_bytes) {
  LatencyOptions options;
  options.seconds = 0.2;
  options.max_buffer_bytes = max_bytes;
  std::map<std::string, Measurement> rows;
  for (const LatencyRow& row : MeasureLatencies(options)) {
    SCOPED_TRACE(row.what);
    ExpectSamplesOrReason(row.yours);
    rows[row.what] = row.yours;
  }
  EXPECT_THAT(rows, SizeIs(9));
  return rows;
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

TEST(SampleBatches, KeepsToTheFewestSamples) {
  Budget budget;
  budget.seconds = 0;  // late from the start
  EXPECT_THAT(SampleBatches(budget, [](std::int64_t n) { return n; }),
              SizeIs(6));
}

TEST(MeasureLatencies, FillsRowsThatNeedLittleMemory) {
  std::map<std::string, Measurement> rows = ShortRows(kMiB);
  for (const char* what :
       {"Floating-point addition", "Mutex, lock and unlock"}) {
    EXPECT_THAT(rows[what].seconds, Not(IsEmpty())) << what;
  }
  EXPECT_THAT(rows["64 MB of memory"].why_not,
              HasSubstr("it needs 64.0 MiB; here at most 1.0 MiB"));
  EXPECT_THAT(rows["Memory beyond the caches"].why_not,
              HasSubstr("here at most 1.0 MiB"));
  EXPECT_THAT(ShortRows(64)["L1 cache hit"].seconds, IsEmpty());
}

TEST(MeasureLatencies, OneCpuIsEnoughForSomeAndIsLeftAsItWas) {
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
  EXPECT_THAT(ShortRows(kMiB)["Line that another core wrote"].why_not,
              HasSubstr("two cores"));
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
  ShortRows(kMiB);
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

TEST(LatencyTable, PutsTheBooksAndYoursSideBySide) {
  const auto yours = [](std::vector<double> nanos) {
    for (double& sample : nanos) sample *= 1e-9;
    return Measurement{nanos};
  };
  const std::vector<LatencyRow> rows = {
      {"L1 cache hit", 1.5e-9, yours({2, 2, 2, 2, 2, 3})},
      {"Branch mispredict", 6e-9, yours({100, 110, 90})},
      {"L2 cache hit", 5e-9, NotMeasured("no size.")},
      {"64 MB of memory", 46e-9, NotMeasured("it is too large.")},
      {"Mutex, lock and unlock", 25e-9, yours({50})}};
  EXPECT_EQ("\n" + LatencyTable(rows) + WhyNotMeasured(rows), R"(
                               the book   yours                           ratio
L1 cache hit                     1.5 ns   2.00 ns [2.00, 3.00]            1.33x
Branch mispredict                  6 ns   100 ns [90.0, 110]              16.7x
L2 cache hit                       5 ns   n/a
64 MB of memory                   46 ns   n/a
Mutex, lock and unlock            25 ns   50.0 ns                         2.00x
n/a: L2 cache hit: no size.
n/a: 64 MB of memory: it is too large.
)");
}

}  // namespace
}  // namespace d2l
