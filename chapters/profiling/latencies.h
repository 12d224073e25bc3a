// The book's latencies and yours: the tables "Common Latency Numbers" and
// "Latency Numbers for NVIDIA Tesla GPUs" of Dive into Deep Learning, section
// 13.4 (Hardware), beside what this machine takes.
//
//   LatencyOptions options;
//   options.seconds = 1;
//   const std::vector<LatencyRow> rows = MeasureLatencies(TryGpu(), options);
//   std::cout << LatencyTable(rows) << LatencyNotes(rows);
//
// Every figure of yours is measured in the call, and is a median of samples.
// What could not be measured has a reason instead. The plot beside it,
// latency by size, is LatencyBySize in latencies_memory.h.
//
// The functions are thread-safe, but two measurements at once spoil each other.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/device/device.h"

namespace d2l {

struct LatencyRow {
  std::string what;                  // "L1 cache hit"
  std::optional<double> book_nanos;  // nothing: the book has no such row
  std::string book_text;             // what the book says of its figure
  std::vector<double> nanos;         // yours: samples, of one operation
  std::string how;                   // how yours was measured; a phrase
  std::string why_not;               // why there are no samples; a phrase
};

struct LatencyOptions {
  // All measurements together take no longer, about, and less if they have
  // enough samples before. Building the random orders comes on top: about a
  // second if the caches are large.
  double seconds = 10;
  // The most memory that a row may use, and the size of the temporary file.
  std::int64_t max_buffer_bytes = std::int64_t{1} << 30;
  std::int64_t file_bytes = std::int64_t{64} << 20;
  // Where that file is; "" is TMPDIR, or /tmp.
  std::string directory;
  // Called with each row when it is done; may be null.
  std::function<void(const LatencyRow&)> progress;
};

// All rows, in the order of the book's first table, then those of devices,
// disks and the network. `device` is in the device table, and idle. What a row
// throws is its reason; only a device that is not in the table throws
// std::invalid_argument.
std::vector<LatencyRow> MeasureLatencies(Device device,
                                         const LatencyOptions& options);

// The book's figure, yours with its interval, and how many times the book's
// yours is; then the reasons of what is n/a. 80 columns.
std::string LatencyTable(const std::vector<LatencyRow>& rows);

// Row by row: what the book says of its figure, and how yours was measured.
std::string LatencyNotes(const std::vector<LatencyRow>& rows);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_H_
