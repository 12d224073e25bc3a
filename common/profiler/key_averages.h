// KeyAverages: the times of a Profile by name, as PyTorch's key_averages()
// prints them.
//
//   const KeyAverages averages(profile);
//   std::cout << averages.Table();
//   std::cout << averages.Table({SortBy::kSelfDeviceTime, /*row_limit=*/10});
//   averages.Find("matmul")->calls;
//
// Every figure is a sum over the calls of one name. *CPU* time is that of the
// requesting thread, the front end; *device* time is that of the work itself.
// *Self* is a call's own, *total* includes what was called within it. So self
// times add up to the whole, and nothing is counted twice. Where this differs
// from PyTorch's table, the figures' comments say so.
//
// A time that was not measured is never shown as 0: the table prints n/a, or
// marks an incomplete sum with *, and explains it below.
//
// A value that refers to nothing; reading it is thread-safe.

#ifndef D2L_COMMON_PROFILER_KEY_AVERAGES_H_
#define D2L_COMMON_PROFILER_KEY_AVERAGES_H_

#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/profiler/peaks.h"
#include "common/profiler/profile.h"

namespace d2l {

// The columns by which a table's rows can be sorted, largest first. Rows whose
// figure is not known are last; equal rows keep their order.
enum class SortBy {
  kNone,            // in the order of their first calls
  kSelfCpuTime,     // "Self CPU"
  kSelfDeviceTime,  // "Self CUDA", "Self Device"
};

struct TableOptions {
  SortBy sort_by = SortBy::kNone;
  int row_limit = 100;  // negative: no limit
};

// The calls of one name. A user's range and an operation of the same name have
// a row each.
struct KeyAverage {
  std::string name;
  std::int64_t calls = 0;

  // Nanoseconds of the front end. A call within a call of the same row is in
  // the total once, as a part of the outer one. (PyTorch adds it twice.)
  std::int64_t self_host_nanos = 0;
  std::int64_t host_nanos = 0;

  // Measured nanoseconds of the devices; work that ran at the same time on two
  // devices counts on both.
  std::int64_t self_device_nanos = 0;
  std::int64_t device_nanos = 0;

  // How many of the calls have a device time, did not run, or were not timed.
  // The others launch nothing.
  std::int64_t measured_calls = 0;
  std::int64_t not_run_calls = 0;
  std::int64_t unmeasured_calls = 0;
  // Of all operations in the device total: how many have a device time, and how
  // many lack one that they should have.
  std::int64_t measured_within = 0;
  std::int64_t missing_within = 0;
  // The number of calls in the mean device time. It excludes calls that have
  // operations of which none was measured.
  std::int64_t known_calls = 0;

  // The costs of the calls that have a device time, and the time that the
  // devices' peaks need for these, if the peaks were measured.
  OpCost cost;
  double bound_nanos = 0;
  // How many of each kind of bound.
  std::array<std::int64_t, std::size(kBoundNames)> bounds = {};

  // The bound of most of these calls.
  BoundKind bound() const;
  // The total over the number of calls.
  double host_nanos_avg() const;
  // The total over known_calls; 0 if there are none.
  double device_nanos_avg() const;
};

class KeyAverages {
 public:
  // Throws std::invalid_argument if a span stands before its parent.
  explicit KeyAverages(const Profile& profile);

  // In the order of their first calls.
  const std::vector<KeyAverage>& rows() const { return rows_; }
  // The first row of that name; null if there is none.
  const KeyAverage* Find(absl::string_view name) const;

  // The sum of all rows. Its self times equal its total times; its name is
  // empty.
  const KeyAverage& total() const { return total_; }

  // Ends in a newline.
  std::string Table(const TableOptions& options = {}) const;
  // A table of the operations that have device times, 80 columns wide: their
  // rates, and which part of their time is the bound, the time at the devices'
  // peaks (peaks.h); then the peaks. Needs ProfilerOptions::with_bounds.
  //
  //   operation  calls    total     each  GFLOP/s   GB/s  of bound
  //   matmul        10  98.0 ms  9.80 ms      204      -      96 %  arithmetic
  std::string BoundTable() const;

 private:
  std::string Footer(const std::vector<const KeyAverage*>& shown) const;

  std::vector<KeyAverage> rows_;
  KeyAverage total_;
  std::string device_label_;  // "CUDA" if all devices are GPUs, else "Device"
  std::string device_names_;  // "cpu:0, cpu:1"
  std::vector<ProfiledDevice> devices_;
  bool several_threads_ = false;
  std::vector<std::string> notes_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_KEY_AVERAGES_H_
