// Profiler: records a program's requests to its devices and their times
// (torch.profiler.profile).
//
//   Profiler profiler;
//   {
//     ProfileScope scope(profiler);
//     for (int i = 0; i < 100; ++i) {
//       RecordFunction range("my step");
//       z = MatMul(x, T(x)) * 2;
//     }
//   }
//   std::cout << profiler.KeyAverages().Table();
//   WriteChromeTrace(profiler.profile(), "trace.json");
//
// For every operation it records the requesting thread and line, the time of
// the request, the time in the stream's queue and the time on the device; also
// the host's reads and waits, the user's ranges and, optionally, the memory of
// each device over time.
//
// A Profiler records the calls of all threads. Starting and stopping sets a
// listener, which takes microseconds; a call costs about 100 ns more while one
// is set.
// Nothing waits for a device before the result is requested. (PyTorch collects
// and sorts when its profiler stops.) At most max_records calls are recorded;
// further calls are only counted, and the count is shown.
//
// Several profilers may run at the same time, one inside another or not: each
// records all that happens while it runs. PyTorch allows one.
//
// Thread-safety: any thread may make calls at any time, and they are recorded;
// a Profiler itself is used by one thread.
//
// Errors: calls that do not go together (two starts, two stops, a result while
// it runs) throw std::logic_error, which names both lines. Failures on a device
// are only marked in the calls concerned; Synchronize throws them as usual.

#ifndef D2L_COMMON_PROFILER_PROFILER_H_
#define D2L_COMMON_PROFILER_PROFILER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/source_location.h"
#include "common/device/nvtx_range.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/profile.h"

namespace d2l {

namespace internal {
// Whether there is a recording.
extern std::atomic<bool> profiling;
class Recording;
struct CallRecord;
struct Chunk;
}  // namespace internal

// A range of the front end's time, from here to the end of the block, under a
// name (torch.profiler.record_function). Ranges nest. Nsight Systems shows them
// too, whether or not a profiler runs. Without either, a range costs two loads,
// and the time to make the name.
class RecordFunction {
 public:
  explicit RecordFunction(const std::string& name,
                          SourceLocation at = SourceLocation::Current())
      : nvtx_range_(name.c_str()) {
    if (internal::profiling.load(std::memory_order_acquire)) Begin(name, at);
  }
  ~RecordFunction() {
    if (record_ != nullptr) End();
  }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

 private:
  void Begin(const std::string& name, SourceLocation at);
  void End();

  const NvtxRange nvtx_range_;
  internal::CallRecord* record_ = nullptr;
  std::shared_ptr<internal::Chunk> chunk_;
};

struct ProfilerOptions {
  // Record each allocation and each return of device memory, which takes some
  // 150 ns more for each.
  bool profile_memory = false;
  // Measure the devices' peaks, which takes some 0.4 s once in a process, so
  // that the profile says how far each operation is from its bound: see
  // KeyAverages::BoundTable.
  bool with_bounds = false;
  // The number of calls to record, rounded up for each thread to a multiple of
  // 512. Each takes 144 bytes, and some 300 in a Profile.
  std::int64_t max_records = 500'000;
};

class Profiler {
 public:
  // Throws std::invalid_argument for options that make no sense.
  explicit Profiler(ProfilerOptions options = {});
  // Stops it, if it runs.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Begins to record; discards earlier records.
  void Start(SourceLocation at = SourceLocation::Current());
  void Stop(SourceLocation at = SourceLocation::Current());
  bool running() const { return running_; }

  // The profile between Start and Stop. The first call waits until the devices
  // have done the recorded work.
  const Profile& profile(SourceLocation at = SourceLocation::Current());
  // The averages, as the rows of a table.
  d2l::KeyAverages KeyAverages(SourceLocation at = SourceLocation::Current());

 private:
  const ProfilerOptions options_;
  bool running_ = false;
  SourceLocation started_at_;
  SourceLocation stopped_at_;
  std::shared_ptr<internal::Recording> recording_;  // active or stopped
  std::optional<Profile> profile_;  // of recording_, once requested
};

// Starts the profiler, and stops it at the end of the block, unless it was
// stopped before.
class ProfileScope {
 public:
  explicit ProfileScope(Profiler& profiler,
                        SourceLocation at = SourceLocation::Current())
      : profiler_(profiler), at_(at) {
    profiler_.Start(at);
  }
  ~ProfileScope() {
    if (profiler_.running()) profiler_.Stop(at_);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;

 private:
  Profiler& profiler_;
  const SourceLocation at_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PROFILER_H_
