// Recorder: keeps what a program asked for, and when the devices did it.
//
//   const Recording run = Record([&] { z = x * y + 2; });
//   run.ops[0].name;                        // "mul"
//   run.ops[1].end - run.ops[1].begin;      // nanoseconds on the device
//
// or, for more than one thread,
//
//   Recorder recorder;
//   AddProcessOpListener(&recorder);        // or ScopedOpListener, one thread
//   …
//   RemoveProcessOpListener(&recorder);
//   const Recording run = recorder.Finish();
//
// A Recording is plain data: it refers to nothing, neither tensors nor streams.
//
// Lifetime: devices write the times of an operation when they run it, perhaps
// long after the recorder is gone. So the memory they write to (OpStamps) does
// not go with the recorder: what is not done when it is destroyed is kept until
// the stream has passed it (KeepUntilPassed). The destructor never waits;
// Finish does.
//
// Thread-safety: any thread may report to a recorder and call its methods. A
// thread must not be requesting operations of a recorder that goes.
//
// Errors: a failed or skipped operation is recorded; it has no end. Finish
// does not throw what went wrong, and leaves it to whoever synchronizes.

#ifndef D2L_COMMON_LESSON_RECORDER_H_
#define D2L_COMMON_LESSON_RECORDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/device/device.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/ops/primitive.h"
#include "common/ops/record.h"

namespace d2l {

// All times are NowNanos; 0 for what is not known or did not happen.
struct RecordedOp {
  std::string name;
  std::vector<Attribute> attributes;
  std::vector<ValueRecord> inputs;
  ValueRecord output = {};
  bool in_place = false;
  bool view = false;
  int stream = -1;           // in Recording::streams; -1 if nothing is launched
  std::uint64_t number = 0;  // in its stream
  int thread = 0;            // which asked, numbered as they appeared
  SourceLocation requested_at;
  SourceLocation requested_by;
  std::int64_t host_begin = 0;
  std::int64_t host_end = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  // On the device; 0 if it did not run.
  double seconds() const { return 1e-9 * static_cast<double>(end - begin); }
  // The user's line, if a layer made the request.
  SourceLocation line() const {
    return requested_by.known() ? requested_by : requested_at;
  }
};

// The front end waited for a device.
struct HostWait {
  std::string what;  // "item", "synchronize"
  int thread = 0;
  SourceLocation requested_at;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint64_t value = 0;  // the id of what was read; 0 for no one value
};

struct RecordedStream {
  std::string name;  // "cpu:0/1"
  Device device;
};

struct Recording {
  std::vector<RecordedOp> ops;  // as they were requested
  std::vector<HostWait> waits;
  std::vector<RecordedStream> streams;  // as they first appeared
  int threads = 0;
};

class Recorder : public OpListener {
 public:
  Recorder() = default;
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void OnOp(const OpRecord& record) override;
  void AfterRead(const ReadRecord& record) override;
  bool wants_times() const override { return true; }
  OpStamps* NewStamps(Stream& stream) override;

  // Calls `wait` and records that this thread waited: nobody tells a listener
  // of a Synchronize.
  void Wait(const std::string& what, const std::function<void()>& wait,
            SourceLocation at = SourceLocation::Current());

  // Waits until the operations recorded so far are done or skipped, and
  // returns all that is known of them. Call it as often as you like.
  Recording Finish();

 private:
  struct Launched {
    std::unique_ptr<OpStamps> stamps;  // null if they are another listener's
    Stream* stream;                    // null if nothing was launched
    bool done;                         // the stream has passed it
  };

  int ThreadNumber();
  int StreamNumber(const Stream& stream);

  const TickScale start_;

  std::mutex mutex_;                // guards all below
  Recording recording_;             // the front end's times in ticks
  std::vector<Launched> launched_;  // one for each of recording_.ops
  struct Pending {
    std::unique_ptr<OpStamps> stamps;
    Stream* stream;
  };
  // Given out, and not yet come back with an operation.
  std::unordered_map<const OpStamps*, Pending> pending_;
  std::unordered_map<std::thread::id, int> threads_;
};

// Runs `program` with this thread's operations recorded, and waits for them.
Recording Record(const std::function<void()>& program);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RECORDER_H_
