#include "common/profiler/export.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/language.h"

namespace d2l {
namespace {

bool IsRange(const ProfiledSpan& span) {
  return span.kind == ProfiledKind::kRange;
}

// The points of one bucket that must stay, in their order.
void KeepPeaks(const std::vector<MemoryPoint>& points, std::size_t begin,
               std::size_t end, std::vector<MemoryPoint>* kept) {
  std::array<std::size_t, 4> keep = {begin, begin, begin, end - 1};
  for (std::size_t i = begin; i < end; ++i) {
    const MemoryPoint& point = points[i];
    if (point.allocated > points[keep[0]].allocated) keep[0] = i;
    if (point.pending > points[keep[1]].pending) keep[1] = i;
    if (point.allocated + point.pending >
        points[keep[2]].allocated + points[keep[2]].pending) {
      keep[2] = i;
    }
  }
  std::sort(keep.begin(), keep.end());
  const auto last = std::unique(keep.begin(), keep.end());
  for (auto i = keep.begin(); i != last; ++i) kept->push_back(points[*i]);
}

std::vector<MemoryPoint> Thinned(const std::vector<MemoryPoint>& points,
                                 int max_points) {
  if (points.size() <= static_cast<std::size_t>(max_points)) return points;
  const std::size_t buckets = max_points / 4;
  std::vector<MemoryPoint> kept;
  for (std::size_t b = 0; b < buckets; ++b) {
    KeepPeaks(points, points.size() * b / buckets,
              points.size() * (b + 1) / buckets, &kept);
  }
  return kept;
}

}  // namespace

SpansThatFit FitSpans(const Profile& profile, const ExportOptions& options) {
  const std::vector<ProfiledSpan>& spans = profile.spans;
  const std::int64_t all = static_cast<std::int64_t>(spans.size());
  const std::int64_t max = std::max<std::int64_t>(options.max_spans, 0);
  SpansThatFit fit;
  fit.kept.assign(spans.size(), all <= max);
  if (all <= max) return fit;

  // The range that each span is in, itself if it is one; -1 - thread for none.
  std::vector<int> range_of(spans.size());
  std::vector<std::size_t> ranges;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const int parent = spans[i].parent;
    range_of[i] = parent < 0 ? -1 - spans[i].thread : range_of[parent];
    if (!IsRange(spans[i])) continue;
    range_of[i] = static_cast<int>(i);
    ranges.push_back(i);
  }
  std::stable_sort(ranges.begin(), ranges.end(),
                   [&](std::size_t a, std::size_t b) {
                     return spans[a].host_begin < spans[b].host_begin;
                   });
  std::int64_t left = max;
  for (const std::size_t i : ranges) {
    if (left == 0) break;
    fit.kept[i] = true;
    --left;
  }
  const auto has_room = [&](std::size_t i) {
    return !IsRange(spans[i]) && (range_of[i] < 0 || fit.kept[range_of[i]]);
  };
  std::map<int, std::int64_t> calls;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (has_room(i)) ++calls[range_of[i]];
  }
  // The smallest first: what one does not need is for the others.
  std::vector<std::pair<std::int64_t, int>> by_size;
  for (const auto& [range, count] : calls) by_size.emplace_back(count, range);
  std::sort(by_size.begin(), by_size.end());
  auto others = static_cast<std::int64_t>(by_size.size());
  for (const auto& [count, range] : by_size) {
    calls[range] = std::min(count, left / others--);
    left -= calls[range];
  }
  std::map<int, std::int64_t> cut_at;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (has_room(i) && calls[range_of[i]] > 0) {
      --calls[range_of[i]];
      fit.kept[i] = true;
    }
    if (fit.kept[i]) continue;
    ++fit.cut;
    // Of a range that is left out itself, in the one around it.
    int around = IsRange(spans[i]) ? spans[i].parent : range_of[i];
    while (around >= 0 && !fit.kept[around]) around = spans[around].parent;
    cut_at.emplace(around, spans[i].host_begin);
  }
  for (const auto& [range, at] : cut_at) fit.cut_at.push_back(at);
  std::sort(fit.cut_at.begin(), fit.cut_at.end());
  fit.note = Say("This file holds %d of %d calls, the first of each range. %s",
                 max, all, options.more_spans);
  return fit;
}

std::vector<DrawnInterval> DrawnDeviceWork(const Profile& profile) {
  const std::vector<ProfiledSpan>& spans = profile.spans;
  std::vector<DrawnInterval> drawn(spans.size());
  std::vector<std::vector<std::size_t>> of_stream(profile.streams.size());
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (HasDeviceWork(spans[i])) of_stream[spans[i].stream].push_back(i);
  }
  for (std::vector<std::size_t>& order : of_stream) {
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tie(spans[a].number, spans[a].device_begin, a) <
             std::tie(spans[b].number, spans[b].device_begin, b);
    });
    bool first = true;
    std::int64_t free_at = 0;
    for (const std::size_t i : order) {
      const ProfiledSpan& span = spans[i];
      DrawnInterval& interval = drawn[i];
      interval.begin = std::max(span.device_begin, span.host_begin);
      if (!first) interval.begin = std::max(interval.begin, free_at);
      interval.end = std::max(span.device_end, interval.begin);
      free_at = interval.end;
      first = false;
    }
  }
  return drawn;
}

std::vector<MemoryCurve> ThinnedMemory(const Profile& profile, int max_points) {
  std::vector<MemoryCurve> curves(2 * profile.devices.size());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curves[i].device = static_cast<int>(i / 2);
    curves[i].pinned = i % 2 == 1;
  }
  for (const MemoryPoint& point : profile.memory) {
    curves[2 * point.device + (point.pinned ? 1 : 0)].points.push_back(point);
  }
  std::vector<MemoryCurve> present;
  for (MemoryCurve& curve : curves) {
    if (curve.points.empty()) continue;
    curve.points = Thinned(curve.points, max_points);
    present.push_back(std::move(curve));
  }
  return present;
}

std::string MemoryCurveName(const Profile& profile, const MemoryCurve& curve) {
  return absl::StrCat(curve.pinned ? "pinned memory of " : "memory of ",
                      profile.devices[curve.device].device.ToString());
}

const char* WhyNoDeviceTime(DeviceTime device_time) {
  constexpr const char* kReasons[] = {
      "", "none: it launches nothing on a device",
      "none: it failed, or was skipped after an earlier failure",
      "not measured; the notes say why"};
  return kReasons[static_cast<int>(device_time)];
}

const char* KindName(ProfiledKind kind) {
  constexpr const char* kNames[] = {"operation", "view",       "read",
                                    "wait",      "queue full", "range"};
  return kNames[static_cast<int>(kind)];
}

std::string DescriptionOf(const ProfiledDevice& device) {
  return device.description.empty() ? device.device.ToString()
                                    : device.description;
}

}  // namespace d2l
