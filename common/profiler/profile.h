// Profile: a program's requests to its devices, and the times of the work, as
// plain data. A Profiler (profiler.h) makes it; tables, traces and timelines
// are made from it.
//
//   Profiler profiler;
//   {
//     ProfileScope scope(profiler);
//     y = MatMul(x, x);
//   }
//   const Profile profile = profiler.profile();
//   profile.spans[0].name;            // "matmul"
//   profile.spans[0].device_nanos();  // on the device
//
// There are two kinds of time. *Host* times are those of the front end: how
// long a call took to return; for an operation, the time to enqueue it.
// *Device* times are those of the work itself. All are in NowNanos's clock.
//
// Merge joins the profiles of successive parts of a program, so that each part
// has room for its calls, however many the parts before it made:
//
//   std::vector<Profile> parts;
//   for (int i = 0; i < 3; ++i) {
//     Profiler profiler(options);  // with a bound of its own
//     profiler.Start();
//     z = MatMul(x, y);
//     profiler.Stop();
//     parts.push_back(profiler.profile());
//   }
//   WriteChromeTrace(Merge(std::move(parts)), "trace.json");
//
// A Profile refers to nothing, neither tensors nor streams; copying and reading
// it is as thread-safe as any value's.

#ifndef D2L_COMMON_PROFILER_PROFILE_H_
#define D2L_COMMON_PROFILER_PROFILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/ops/primitive/primitive.h"
#include "common/profiler/peaks.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l {

enum class ProfiledKind : std::uint8_t {
  kOperation,  // requested through Apply, and run by a device
  kView,       // requested through Apply; launches nothing (a view, Empty)
  kRead,       // the host read values: Item, ToVector, printing
  kWait,       // the host waited: Synchronize
  kQueueFull,  // within a request: the host waited for room in a queue
  kRange,      // the user's: RecordFunction
};

// Whether the time of an operation on its device is known, or why not.
enum class DeviceTime {
  kMeasured,
  kNothing,     // nothing is launched: there is no such time
  kNotRun,      // it failed, or was skipped after an earlier failure
  kUnmeasured,  // it ran, but was not timed; Profile::notes says why
};

struct ProfiledInput {
  Shape shape;
  DType dtype = DType::kFloat32;
};

// A call of the front end, and its work on the device.
struct ProfiledSpan {
  ProfiledKind kind = ProfiledKind::kOperation;
  std::string name;
  int thread = 0;   // in Profile::threads
  int parent = -1;  // the span around it on its thread; -1 for none
  SourceLocation requested_at;
  SourceLocation requested_by;  // the user's line, if a layer called
  std::int64_t host_begin = 0;
  std::int64_t host_end = 0;

  // Of operations and views.
  std::vector<ProfiledInput> inputs;
  bool in_place = false;
  OpCost cost;  // of operations
  // The bytes of device memory that were allocated during the request, for the
  // output and for the operation's temporary memory.
  std::int64_t allocated_bytes = 0;

  // Of operations. begin and end are 0 unless they were measured.
  int stream = -1;           // in Profile::streams
  std::uint64_t number = 0;  // in its stream
  DeviceTime device_time = DeviceTime::kNothing;
  std::int64_t device_begin = 0;
  std::int64_t device_end = 0;

  std::int64_t host_nanos() const { return host_end - host_begin; }
  // 0 unless measured.
  std::int64_t device_nanos() const { return device_end - device_begin; }
  // From the end of the request to the beginning of the work; 0 unless
  // measured, and 0 if the work began before the call returned.
  std::int64_t queue_nanos() const {
    return device_begin > host_end ? device_begin - host_end : 0;
  }
  // The line to show to the user.
  SourceLocation line() const {
    return requested_by.known() ? requested_by : requested_at;
  }
};

struct ProfiledStream {
  std::string name;  // "cpu:0/1"
  int device = 0;    // in Profile::devices
};

struct ProfiledDevice {
  Device device;
  std::string description;  // "cpu:0 (virtual, 1 core of Intel Xeon)"
  Peaks peaks;              // with ProfilerOptions::with_bounds
};

struct ProfiledThread {
  std::string name;  // "front end", "front end 2"
};

// The memory of a device at one moment, after an allocation or a return.
struct MemoryPoint {
  std::int64_t time = 0;
  int device = 0;              // in Profile::devices
  bool pinned = false;         // pinned host memory of the device
  std::int64_t change = 0;     // bytes; negative for a return
  std::int64_t allocated = 0;  // bytes in blocks with a handle
  std::int64_t in_flight = 0;  // bytes that only queued work still needs
  std::int64_t reserved = 0;   // bytes taken from the device
  int span = -1;               // during which it happened; -1: unknown
};

struct Profile {
  std::int64_t begin = 0;  // of the recording
  std::int64_t end = 0;
  // The spans of one thread after those of another, each thread's in the order
  // of host_begin; a parent stands before its children.
  std::vector<ProfiledSpan> spans;
  std::vector<MemoryPoint> memory;  // by time
  std::vector<ProfiledThread> threads;
  std::vector<ProfiledStream> streams;  // a device's stand together
  std::vector<ProfiledDevice> devices;
  // The number of records without room: see ProfilerOptions::max_records.
  std::int64_t cut = 0;
  // Sentences on what could not be recorded or measured, and why, in the run's
  // language. Every table and trace shows them.
  std::vector<std::string> notes;
};

// The bound of an operation; none for other spans, or if the peaks were not
// measured.
Bound BoundOf(const Profile& profile, const ProfiledSpan& span);

// Joins parts, which are in the order of their time and do not overlap, into
// one profile from the first begin to the last end. Threads and streams of the
// same name, and equal devices, become one. The time between parts is empty.
// All notes are kept. Sorts devices, streams and threads: cpu:0 before cpu:1, a
// device's default stream before its others.
Profile Merge(std::vector<Profile> parts);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PROFILE_H_
