#include "common/profiler/profile.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

namespace d2l {
namespace {

// The index of the entry that `same` accepts; `entry` is added if there is
// none. There are few.
template <typename Entry, typename Same>
int IndexOf(const Entry& entry, std::vector<Entry>* entries, Same&& same) {
  const auto found = std::find_if(entries->begin(), entries->end(), same);
  const int index = static_cast<int>(found - entries->begin());
  if (found == entries->end()) entries->push_back(entry);
  return index;
}

// Where the threads, streams, devices and spans of a part are in the whole.
struct Places {
  std::vector<int> threads;
  std::vector<int> streams;
  std::vector<int> devices;
  std::vector<int> spans;
};

Places AddNames(const Profile& part, Profile* whole) {
  Places places;
  for (const ProfiledThread& thread : part.threads) {
    places.threads.push_back(
        IndexOf(thread, &whole->threads, [&](const ProfiledThread& other) {
          return other.name == thread.name;
        }));
  }
  for (const ProfiledDevice& device : part.devices) {
    places.devices.push_back(
        IndexOf(device, &whole->devices, [&](const ProfiledDevice& other) {
          return other.device == device.device;
        }));
  }
  for (ProfiledStream stream : part.streams) {
    stream.device = places.devices[stream.device];
    places.streams.push_back(
        IndexOf(stream, &whole->streams, [&](const ProfiledStream& other) {
          return other.name == stream.name && other.device == stream.device;
        }));
  }
  places.spans.resize(part.spans.size());
  return places;
}

// Sorts the entries; returns where each is now.
template <typename Entry, typename Less>
std::vector<int> Sort(std::vector<Entry>* entries, Less&& less) {
  std::vector<int> order(entries->size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return less((*entries)[a], (*entries)[b]);
  });
  std::vector<Entry> sorted;
  std::vector<int> places(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    places[order[i]] = static_cast<int>(i);
    sorted.push_back(std::move((*entries)[order[i]]));
  }
  *entries = std::move(sorted);
  return places;
}

}  // namespace

void SortDevices(Profile* profile) {
  const std::vector<int> devices = Sort(
      &profile->devices, [](const ProfiledDevice& a, const ProfiledDevice& b) {
        return a.device < b.device;
      });
  for (ProfiledStream& stream : profile->streams) {
    stream.device = devices[stream.device];
  }
  for (MemoryPoint& point : profile->memory) {
    point.device = devices[point.device];
  }
  // "cpu:0" before "cpu:0/2" before "cpu:0/10".
  const auto key = [](const ProfiledStream& stream) {
    return std::make_tuple(stream.device, stream.name.size(), stream.name);
  };
  const std::vector<int> streams = Sort(
      &profile->streams, [&](const ProfiledStream& a, const ProfiledStream& b) {
        return key(a) < key(b);
      });
  for (ProfiledSpan& span : profile->spans) {
    if (span.stream >= 0) span.stream = streams[span.stream];
  }
}

Profile Merge(std::vector<Profile> parts) {
  Profile whole;
  if (parts.empty()) return whole;
  whole.begin = parts.front().begin;
  whole.end = parts.front().end;
  std::vector<Places> places;
  std::size_t spans = 0;
  for (const Profile& part : parts) {
    whole.begin = std::min(whole.begin, part.begin);
    whole.end = std::max(whole.end, part.end);
    whole.cut += part.cut;
    whole.notes.insert(whole.notes.end(), part.notes.begin(), part.notes.end());
    places.push_back(AddNames(part, &whole));
    spans += part.spans.size();
  }

  // The spans of a thread stand together, so its parts are taken in turn.
  whole.spans.reserve(spans);
  const int threads = static_cast<int>(whole.threads.size());
  for (int thread = 0; thread < threads; ++thread) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      for (std::size_t i = 0; i < parts[p].spans.size(); ++i) {
        if (places[p].threads[parts[p].spans[i].thread] != thread) continue;
        ProfiledSpan span = std::move(parts[p].spans[i]);
        places[p].spans[i] = static_cast<int>(whole.spans.size());
        span.thread = thread;
        // A parent is of the same thread and stands before its children.
        if (span.parent >= 0) span.parent = places[p].spans[span.parent];
        if (span.stream >= 0) span.stream = places[p].streams[span.stream];
        whole.spans.push_back(std::move(span));
      }
    }
  }

  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (MemoryPoint point : parts[p].memory) {
      point.device = places[p].devices[point.device];
      if (point.span >= 0) point.span = places[p].spans[point.span];
      whole.memory.push_back(point);
    }
  }
  SortDevices(&whole);
  return whole;
}

}  // namespace d2l
