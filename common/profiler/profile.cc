#include "common/profiler/profile.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace d2l {
namespace {

bool DeviceLess(const ProfiledDevice& a, const ProfiledDevice& b) {
  return a.device < b.device;
}

// "cpu:0" before "cpu:0/2" before "cpu:0/10".
bool NameLess(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

bool ThreadLess(const ProfiledThread& a, const ProfiledThread& b) {
  return NameLess(a.name, b.name);
}

bool StreamLess(const ProfiledStream& a, const ProfiledStream& b) {
  return a.device != b.device ? a.device < b.device : NameLess(a.name, b.name);
}

// Sorts the entries and removes duplicates.
template <typename Entry, typename Less>
void SortUnique(std::vector<Entry>* entries, Less less) {
  std::stable_sort(entries->begin(), entries->end(), less);
  const auto same = [&](const Entry& a, const Entry& b) { return !less(a, b); };
  entries->erase(std::unique(entries->begin(), entries->end(), same),
                 entries->end());
}

// Where each entry of a part is in the whole, which is sorted.
template <typename Entry, typename Less>
std::vector<int> PlacesIn(const std::vector<Entry>& whole,
                          const std::vector<Entry>& part, Less less) {
  std::vector<int> places;
  for (const Entry& entry : part) {
    places.push_back(static_cast<int>(
        std::lower_bound(whole.begin(), whole.end(), entry, less) -
        whole.begin()));
  }
  return places;
}

template <typename Entry>
void Append(const std::vector<Entry>& part, std::vector<Entry>* whole) {
  whole->insert(whole->end(), part.begin(), part.end());
}

// The steps of Merge. Each adds one field of the parts to the whole, and
// changes the indices into this field, in all parts, to those of the whole.

// A field of devices, streams or threads. renumber(part, places) changes the
// indices: i becomes places[i].
template <typename Entry, typename Less, typename Renumber>
void MergeField(std::vector<Entry> Profile::*field, Less less,
                std::vector<Profile>* parts, Profile* whole,
                const Renumber& renumber) {
  for (const Profile& part : *parts) Append(part.*field, &(whole->*field));
  SortUnique(&(whole->*field), less);
  for (Profile& part : *parts) {
    renumber(part, PlacesIn(whole->*field, part.*field, less));
  }
}

void MergeDevices(std::vector<Profile>* parts, Profile* whole) {
  MergeField(&Profile::devices, DeviceLess, parts, whole,
             [](Profile& part, const std::vector<int>& places) {
               for (ProfiledStream& stream : part.streams) {
                 stream.device = places[stream.device];
               }
               for (MemoryPoint& point : part.memory) {
                 point.device = places[point.device];
               }
             });
}

// After MergeDevices: streams are sorted by device.
void MergeStreams(std::vector<Profile>* parts, Profile* whole) {
  MergeField(&Profile::streams, StreamLess, parts, whole,
             [](Profile& part, const std::vector<int>& places) {
               for (ProfiledSpan& span : part.spans) {
                 if (span.stream >= 0) span.stream = places[span.stream];
               }
             });
}

void MergeThreads(std::vector<Profile>* parts, Profile* whole) {
  MergeField(&Profile::threads, ThreadLess, parts, whole,
             [](Profile& part, const std::vector<int>& places) {
               for (ProfiledSpan& span : part.spans) {
                 span.thread = places[span.thread];
               }
             });
}

// After MergeStreams and MergeThreads: moves the spans, with their indices.
void MergeSpans(std::vector<Profile>* parts, Profile* whole) {
  const auto earlier_thread = [](const ProfiledSpan& a, const ProfiledSpan& b) {
    return a.thread < b.thread;
  };
  std::vector<ProfiledSpan>& first = parts->front().spans;
  if (parts->size() == 1 &&
      std::is_sorted(first.begin(), first.end(), earlier_thread)) {
    whole->spans = std::move(first);  // every index stays
    return;
  }
  // The spans of a thread stand together, those of its parts in turn: where the
  // next span of each thread and part goes.
  const std::size_t threads = whole->threads.size();
  std::vector<std::size_t> next(threads * parts->size() + 1, 0);
  const auto of = [&](const ProfiledSpan& span, std::size_t p) {
    return static_cast<std::size_t>(span.thread) * parts->size() + p;
  };
  for (std::size_t p = 0; p < parts->size(); ++p) {
    for (const ProfiledSpan& span : (*parts)[p].spans) ++next[of(span, p) + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  whole->spans.resize(next.back());
  std::vector<std::vector<int>> places(parts->size());
  for (std::size_t p = 0; p < parts->size(); ++p) {
    for (ProfiledSpan& span : (*parts)[p].spans) {
      // A parent is of the same thread and stands before its children.
      if (span.parent >= 0) span.parent = places[p][span.parent];
      const std::size_t place = next[of(span, p)]++;
      places[p].push_back(static_cast<int>(place));
      whole->spans[place] = std::move(span);
    }
  }
  for (std::size_t p = 0; p < parts->size(); ++p) {
    for (MemoryPoint& point : (*parts)[p].memory) {
      if (point.span >= 0) point.span = places[p][point.span];
    }
  }
}

}  // namespace

Bound BoundOf(const Profile& profile, const ProfiledSpan& span) {
  if (span.stream < 0) return {};
  const int device = profile.streams[span.stream].device;
  return BoundOf(span.cost, profile.devices[device].peaks);
}

Profile Merge(std::vector<Profile> parts) {
  Profile whole;
  if (parts.empty()) return whole;
  MergeDevices(&parts, &whole);
  MergeStreams(&parts, &whole);
  MergeThreads(&parts, &whole);
  MergeSpans(&parts, &whole);
  whole.begin = parts.front().begin;
  whole.end = parts.front().end;
  for (const Profile& part : parts) {
    whole.begin = std::min(whole.begin, part.begin);
    whole.end = std::max(whole.end, part.end);
    whole.cut += part.cut;
    Append(part.notes, &whole.notes);
    Append(part.memory, &whole.memory);
  }
  return whole;
}

}  // namespace d2l
