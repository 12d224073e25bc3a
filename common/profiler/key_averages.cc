#include "common/profiler/key_averages.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/device/device.h"
#include "common/profiler/profile.h"

namespace d2l {
namespace {

// What a span and all that was called within it come to.
struct Subtree {
  std::int64_t device_nanos = 0;
  std::int64_t measured = 0;
  std::int64_t missing = 0;
  std::int64_t children_host_nanos = 0;  // of its direct children only
};

bool IsMissing(DeviceTime time) {
  return time == DeviceTime::kNotRun || time == DeviceTime::kUnmeasured;
}

std::vector<Subtree> SubtreesOf(const std::vector<ProfiledSpan>& spans) {
  std::vector<Subtree> subtrees(spans.size());
  // Parents stand before their children: backwards, a subtree is complete when
  // it is added to its parent's.
  for (std::size_t i = spans.size(); i-- > 0;) {
    const ProfiledSpan& span = spans[i];
    Subtree& subtree = subtrees[i];
    subtree.device_nanos += span.device_nanos();
    subtree.measured += span.device_time == DeviceTime::kMeasured ? 1 : 0;
    subtree.missing += IsMissing(span.device_time) ? 1 : 0;
    if (span.parent < 0) continue;
    if (static_cast<std::size_t>(span.parent) >= i) {
      throw std::invalid_argument(absl::StrCat("[key_averages] span ", i,
                                               " stands before its parent, ",
                                               span.parent));
    }
    Subtree& parent = subtrees[span.parent];
    parent.device_nanos += subtree.device_nanos;
    parent.measured += subtree.measured;
    parent.missing += subtree.missing;
    parent.children_host_nanos += span.host_nanos();
  }
  return subtrees;
}

void AddCall(const ProfiledSpan& span, const Subtree& subtree, bool outermost,
             KeyAverage& row) {
  ++row.calls;
  row.self_host_nanos += span.host_nanos() - subtree.children_host_nanos;
  row.self_device_nanos += span.device_nanos();
  row.measured_calls += span.device_time == DeviceTime::kMeasured ? 1 : 0;
  row.not_run_calls += span.device_time == DeviceTime::kNotRun ? 1 : 0;
  row.unmeasured_calls += span.device_time == DeviceTime::kUnmeasured ? 1 : 0;
  row.known_calls += subtree.measured > 0 || subtree.missing == 0 ? 1 : 0;
  if (!outermost) return;
  row.host_nanos += span.host_nanos();
  row.device_nanos += subtree.device_nanos;
  row.measured_within += subtree.measured;
  row.missing_within += subtree.missing;
}

std::vector<KeyAverage> RowsOf(const std::vector<ProfiledSpan>& spans,
                               const std::vector<Subtree>& subtrees) {
  std::vector<KeyAverage> rows;
  // A view and an operation may share a name (a reshape that has to copy), and
  // then are one row; a user's range is not what it is named after.
  absl::flat_hash_map<std::pair<bool, absl::string_view>, std::size_t> numbers;
  std::vector<std::size_t> row_of(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const ProfiledSpan& span = spans[i];
    const bool is_range = span.kind == ProfiledKind::kRange;
    const auto [found, is_new] =
        numbers.try_emplace({is_range, span.name}, rows.size());
    row_of[i] = found->second;
    if (is_new) {
      rows.emplace_back();
      rows.back().name = span.name;
    }
    int around = span.parent;
    while (around >= 0 && row_of[around] != row_of[i]) {
      around = spans[around].parent;
    }
    AddCall(span, subtrees[i], /*outermost=*/around < 0, rows[row_of[i]]);
  }
  return rows;
}

KeyAverage TotalOf(const std::vector<ProfiledSpan>& spans,
                   const std::vector<Subtree>& subtrees) {
  KeyAverage total;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    AddCall(spans[i], subtrees[i], spans[i].parent < 0, total);
  }
  return total;
}

}  // namespace

double KeyAverage::host_nanos_avg() const {
  return calls == 0 ? 0 : static_cast<double>(host_nanos) / calls;
}

double KeyAverage::device_nanos_avg() const {
  return known_calls == 0 ? 0 : static_cast<double>(device_nanos) / known_calls;
}

KeyAverages::KeyAverages(const Profile& profile) : notes_(profile.notes) {
  const std::vector<Subtree> subtrees = SubtreesOf(profile.spans);
  rows_ = RowsOf(profile.spans, subtrees);
  total_ = TotalOf(profile.spans, subtrees);
  several_threads_ = profile.threads.size() > 1;
  const bool all_cuda =
      !profile.devices.empty() &&
      std::all_of(profile.devices.begin(), profile.devices.end(),
                  [](const ProfiledDevice& device) {
                    return device.device.type() == DeviceType::kCuda;
                  });
  device_label_ = all_cuda ? "CUDA" : "Device";
  device_names_ = absl::StrJoin(profile.devices, ", ",
                                [](std::string* out, const ProfiledDevice& d) {
                                  absl::StrAppend(out, d.device.ToString());
                                });
}

const KeyAverage* KeyAverages::Find(absl::string_view name) const {
  for (const KeyAverage& row : rows_) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace d2l
