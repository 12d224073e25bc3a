#include "common/profiler/merge.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/profiler/profile.h"

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

}  // namespace

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
  return whole;
}

}  // namespace d2l
