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
// It records what all threads do. Starting and stopping takes microseconds, as
// a listener is set; a call costs about 100 ns more while one is. Nothing waits
// for a device before the result is requested. (PyTorch collects and sorts when
// its profiler stops.) The result has a bound, max_records; what is beyond is
// counted, and the count is shown.
//
// Several profilers may run at the same time, one inside another or not: each
// records all that happens while it runs. PyTorch allows one.
//
// A Schedule records some of a program's steps only, as torch.profiler.schedule
// does:
//
//   ProfilerOptions options;
//   options.schedule = {/*wait=*/1, /*warmup=*/1, /*active=*/3, /*repeat=*/2};
//   options.on_ready = [](const Profile& profile) { … };
//   Profiler profiler(options);
//   profiler.Start();
//   for (…) {
//     …;
//     profiler.Step();
//   }
//   profiler.Stop();
//
// Thread-safety: what is recorded may be done by any thread at any time; a
// Profiler itself is used by one thread.
//
// Errors: calls that do not go together (two starts, two stops, a result while
// it runs) throw std::logic_error, which names both lines. Failures on a device
// are only marked in the calls concerned; Synchronize throws them as usual.

#ifndef D2L_COMMON_PROFILER_PROFILER_H_
#define D2L_COMMON_PROFILER_PROFILER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/source_location.h"
#include "common/device/nvtx_range.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/profile.h"

namespace d2l {

namespace internal {
extern std::atomic<bool> profiling;
class Recording;
struct CallRecord;
struct Chunk;
}  // namespace internal

// A range of the front end's time, from here to the end of the block, under a
// name (torch.profiler.record_function). Ranges nest. Nsight Systems shows them
// too, whether or not a profiler runs. Without either it costs two loads, and
// what the name takes.
class RecordFunction {
 public:
  explicit RecordFunction(const std::string& name,
                          SourceLocation at = SourceLocation::Current())
      : RecordFunction(ProfiledKind::kRange, name, at) {}
  ~RecordFunction() {
    if (record_ != nullptr) End();
  }
  RecordFunction(const RecordFunction&) = delete;
  RecordFunction& operator=(const RecordFunction&) = delete;

 private:
  friend class Profiler;
  RecordFunction(ProfiledKind kind, const std::string& name, SourceLocation at)
      : nvtx_range_(name.c_str()) {
    if (internal::profiling.load(std::memory_order_acquire)) {
      Begin(kind, name, at);
    }
  }
  void Begin(ProfiledKind kind, const std::string& name, SourceLocation at);
  void End();

  const NvtxRange nvtx_range_;
  internal::CallRecord* record_ = nullptr;
  std::shared_ptr<internal::Chunk> chunk_;
};

// Which steps are recorded: of each cycle, `wait` are not, `warmup` are and
// thrown away, `active` are kept. After `repeat` cycles nothing is; 0 goes on
// for ever.
struct Schedule {
  int wait = 0;
  int warmup = 0;
  int active = 0;  // 0: no schedule; all is recorded, from Start to Stop
  int repeat = 0;
};

struct ProfilerOptions {
  // Record what is taken from the devices' memory and returned: some 150 ns
  // more for each.
  bool profile_memory = false;
  // How many calls are recorded, at least; rounded up to 512 for each thread.
  // Each takes 128 bytes, and some 300 in a Profile.
  std::int64_t max_records = 500'000;
  Schedule schedule;
  // Called at the end of each cycle of the schedule, by Step or Stop, when the
  // devices have done what is in it.
  std::function<void(const Profile&)> on_ready;
};

class Profiler {
 public:
  // Throws std::invalid_argument for options that make no sense.
  explicit Profiler(ProfilerOptions options = {});
  // Stops it, if it runs.
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Begins to record; what was recorded before is forgotten.
  void Start(SourceLocation at = SourceLocation::Current());
  void Stop(SourceLocation at = SourceLocation::Current());
  bool running() const { return running_; }

  // The end of a step of the schedule. Steps are ranges called
  // "ProfilerStep#0" and so on. Without a schedule it does nothing.
  void Step(SourceLocation at = SourceLocation::Current());

  // What was recorded: between Start and Stop, or in the last active steps of
  // the schedule. The first call waits until the devices have done it.
  const Profile& profile(SourceLocation at = SourceLocation::Current());
  // The same as a table's rows, by name or by name and shapes of inputs.
  d2l::KeyAverages KeyAverages(bool group_by_input_shape = false,
                               SourceLocation at = SourceLocation::Current());

 private:
  enum class Phase { kWait, kWarmUp, kActive };

  bool scheduled() const { return options_.schedule.active > 0; }
  // How many steps a cycle of the schedule has.
  std::int64_t Cycle() const;
  // Of the step that begins.
  Phase PhaseOf(std::int64_t step) const;
  void StartRecording();
  void StopRecording();
  void BeginStep(SourceLocation at);
  // Ends the step's range. last: nothing comes after it.
  void EndStep(bool last);

  const ProfilerOptions options_;
  bool running_ = false;
  SourceLocation started_at_;
  SourceLocation stopped_at_;
  std::int64_t step_ = 0;
  std::unique_ptr<RecordFunction> step_range_;
  std::shared_ptr<internal::Recording> recording_;  // goes on, or has
  bool recording_on_ = false;
  std::optional<Profile> profile_;  // of recording_, once requested
};

// Starts the profiler, and stops it at the end of the block, unless that was
// done before.
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
