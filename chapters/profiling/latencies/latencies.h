// The book's latencies and yours: of the table "Common Latency Numbers" of Dive
// into Deep Learning, section 13.4 (Hardware), the rows of one core and its
// memory, beside what this machine takes.
//
//   LatencyOptions options;
//   options.seconds = 1;
//   const std::vector<LatencyRow> rows = MeasureLatencies(options);
//   std::cout << LatencyTable(rows);
//
// Every figure of yours is measured in the call and is a median of samples. A
// row that could not be measured has a reason instead.
//
// The functions are thread-safe, but two measurements at once spoil each other.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_LATENCIES_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_LATENCIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/profiling/latencies/sampling.h"

namespace d2l {

struct LatencyRow {
  std::string what;  // "L1 cache hit"
  double book_seconds;
  Measurement yours;
};

struct LatencyOptions {
  // All measurements together take about this long, or less if they have enough
  // samples before. Building the random orders comes on top: about a second if
  // the caches are large.
  double seconds = 4;
  // The most memory that a row may use.
  std::int64_t max_buffer_bytes = std::int64_t{1} << 30;
};

// All rows, in the order of the book's table. What a row throws, for example
// for lack of memory, becomes the reason why it has no samples.
std::vector<LatencyRow> MeasureLatencies(const LatencyOptions& options);

// The book's figure, yours with its interval, and the ratio of the two. 80
// columns.
std::string LatencyTable(const std::vector<LatencyRow>& rows);
// A sentence for each row that is n/a.
std::string WhyNotMeasured(const std::vector<LatencyRow>& rows);

struct SizeLatency {
  std::int64_t bytes = 0;
  std::vector<double> seconds;  // samples, of one load
};

// The latency of a load at `points` sizes, evenly spaced by ratio from 4 KiB to
// max_bytes or to half of the free memory. The measurements take about
// `seconds`; building the random orders comes on top, two or three seconds for
// 25 points up to 1 GiB. Throws std::bad_alloc if there is no memory.
std::vector<SizeLatency> LatencyBySize(std::int64_t max_bytes, int points,
                                       double seconds);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_LATENCIES_H_
