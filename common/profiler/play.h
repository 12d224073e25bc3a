// Play: simulates a program's requests to its devices, to find when the work
// would be done on a machine that need not exist.
//
//   PlayedProgram program;
//   program.requests = {{/*ask=*/1, /*work=*/4},
//                       {1, 4, /*stream=*/1, /*after=*/{0}},
//                       {1, 0, PlayedRequest::kHost, {}, /*awaits=*/{1}}};
//   const Played played = Play(program, {});
//   played.seconds;         // 9
//   played.times[1].begin;  // 5: behind request 0
//   PathOf(played).size();  // 3: work 1, work 0, asking for that
//
// A thread makes one request after another. A request to a stream is put into
// the stream's queue; the thread may have to wait for room in it. The work
// begins when all earlier work of the stream and the requests in `after` are
// done, and its device has a free core. After enqueueing, the thread waits for
// the requests in `awaits`, if any, and continues.
//
// For transfers that occupy several links at the same time, or that are too
// many to store, use common/parallel/simulator/simulator.h.
//
// Times are in seconds, of any clock. Values; pure functions, so any thread may
// use them. Throws std::invalid_argument for a program that names a request
// that does not exist, or that would wait for ever.

#ifndef D2L_COMMON_PROFILER_PLAY_H_
#define D2L_COMMON_PROFILER_PLAY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/ops/primitive/primitive.h"

namespace d2l {

// Why the front end or a stream's worker continues. The longer it was idle, the
// longer a wake-up takes.
enum class WakeUp {
  kNone,        // no worker is involved; it takes no time
  kBehind,      // the work before is done, or a core is free
  kSoon,        // a request arrives while the worker polls
  kLate,        // a request arrives while the worker sleeps
  kEvent,       // another stream's work is done
  kReturnSoon,  // the front end's wait ends while it polls
  kReturnLate,  // the same while it sleeps
};

// A recorded wake-up and its time. If a play makes it another kind, the
// machine's time for that kind counts instead.
struct RecordedWakeUp {
  WakeUp kind = WakeUp::kNone;
  double seconds = 0;
};

struct PlayedRequest {
  static constexpr int kHost = -1;  // nothing is enqueued on a stream
  // Only operations can run on another device.
  enum class Kind { kOther, kOperation, kCopy, kCallback };

  double ask = 0;   // how long the call takes
  double work = 0;  // how long the stream works for it
  int stream = 0;
  std::vector<int> after = {};   // numbers of requests
  std::vector<int> awaits = {};  // the thread waits for the work of these
  double then = 0;               // the thread's own work after that

  int thread = 0;
  int slots = 1;        // places in the queue
  bool beside = false;  // needs no core
  RecordedWakeUp wake_up = {}, return_from_wait = {};

  // A description for reports. A wait has that of the call that it is in.
  Kind kind = Kind::kOther;
  const char* name = "";
  SourceLocation at = {};
  OpCost cost = {};
  std::vector<int> inputs = {};  // of an operation: those that make its inputs
};

struct PlayedProgram {
  std::vector<PlayedRequest> requests = {};  // those of a thread in order
  std::vector<int> device_of = {};        // by stream; empty: a device for each
  std::vector<std::string> streams = {};  // names
};

// A machine in ten lines; by default only the work takes time.
struct PlayedMachine {
  // In operations; a thread that finds it full waits until half of it is free.
  std::int64_t queue = std::int64_t{1} << 40;
  int cores = 0;  // of a device; 0: one for each stream
  std::map<WakeUp, double> wake_up = {};
  double sleeps_after = 120e-6;  // the idle time before a thread sleeps
  // Only for OnMachine (what_if.h); `ask` and `kernel` are seconds.
  double ask = 0, kernel = 0;
  double flop_per_second = 0, bytes_per_second = 0, link_bytes_per_second = 0;
};

// A part of the time: a request's work, or its thread's time until the request
// was enqueued.
struct PlayedNode {
  int request = -1;  // none
  bool work = false;
  double seconds = 0;
};

struct PlayedTimes {
  double asked = 0;           // when it is in the queue
  double begin = 0, end = 0;  // of the work
  double returned = 0;        // from its wait; else the same as asked
  double room = 0;            // how long it waited for room
  // The last thing that enqueueing, or the work, had to wait for.
  PlayedNode before_asking, before_work;
};

struct Played {
  double seconds = 0;  // until all is done
  std::vector<PlayedTimes> times;
  PlayedNode last;
};

Played Play(const PlayedProgram& program, const PlayedMachine& machine);

// The longest chain, from the end to the begin: each node had to wait for the
// next. With the time of each.
std::vector<PlayedNode> PathOf(const Played& played);

// The reverse, from the times that were seen when a program ran (an end of 0:
// no work was seen): sets the requests' work and wake-ups, and the machine's
// wake-ups of the kinds that were seen at least `enough` times.
void FindWakeUps(std::vector<PlayedTimes> seen, std::size_t enough,
                 PlayedProgram& program, PlayedMachine& machine);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PLAY_H_
