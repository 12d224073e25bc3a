// Play: when the work of a program would be done, by what the program asks of
// its devices in turn, on a machine that need not be there.
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
// A thread asks for one thing after the other. What it asks of a stream is put
// into the stream's queue, for room in which the thread may have to wait, and
// begins when what was asked of the stream before is done, and what it is
// `after`, and when its device has a core left for it. Then the thread waits
// for what the request awaits, if anything, and goes on.
//
// For transfers that occupy several links at the same time, or that are too
// many to be kept, use common/parallel/simulator/simulator.h.
//
// Times are in seconds, of any clock. Values; pure functions, so any thread may
// use them. Throws std::invalid_argument for a program that names what is not
// there, or that would wait for ever.

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

// What makes the front end or a stream's worker go on, which takes the longer
// the longer it had nothing to do.
enum class WakeUp {
  kNone,        // takes no time, as what no worker does
  kBehind,      // the work before, or a core, was waited for
  kSoon,        // the request, by a worker that still looks for it
  kLate,        // the request, by a worker that sleeps
  kEvent,       // another stream's work
  kReturnSoon,  // the front end, from a wait
  kReturnLate,  // the same, if it sleeps
};

// How long one took that was recorded; in a play that makes it another kind,
// the machine's figure counts instead.
struct RecordedWakeUp {
  WakeUp kind = WakeUp::kNone;
  double seconds = 0;
};

struct PlayedRequest {
  static constexpr int kHost = -1;  // nothing is asked of a stream
  // Only operations can be done by another device.
  enum class Kind { kOther, kOperation, kCopy, kCallback };

  double ask = 0;   // how long the call takes
  double work = 0;  // how long the stream works for it
  int stream = 0;
  std::vector<int> after = {};   // numbers of requests
  std::vector<int> awaits = {};  // the thread waits for the work of these
  double then = 0;  // and does for so long what is none of all this

  int thread = 0;
  int slots = 1;        // places in the queue
  bool beside = false;  // needs no core
  RecordedWakeUp wake_up = {}, return_from_wait = {};

  // For those who ask what is what. A wait has the kind that it is a part of.
  Kind kind = Kind::kOther;
  const char* name = "";
  SourceLocation at = {};
  OpCost cost = {};
  std::vector<int> inputs = {};  // of an operation: whose results it needs
};

struct PlayedProgram {
  std::vector<PlayedRequest> requests = {};  // a thread's in its order
  std::vector<int> device_of = {};           // by stream; none: each its own
  std::vector<std::string> streams = {};     // names
};

// A machine in ten lines; the defaults take no time.
struct PlayedMachine {
  // In operations; a thread that finds no room waits until half of it is free.
  std::int64_t queue = std::int64_t{1} << 40;
  int cores = 0;  // of a device; 0: as many as it has streams
  std::map<WakeUp, double> wake_up = {};
  double sleeps_after = 120e-6;  // without anything to do
  // Not of this machine, but as seconds, for Moved; 0: as recorded.
  double ask = 0, kernel = 0;
  double flop_per_second = 0, bytes_per_second = 0, link_bytes_per_second = 0;
};

// A part of what took the time: a request's work, or its thread's time until it
// had asked for it.
struct PlayedNode {
  int request = -1;  // none
  bool work = false;
  double seconds = 0;
};

struct PlayedTimes {
  double asked = 0;           // it is in the queue
  double begin = 0, end = 0;  // of the work
  double returned = 0;        // from a wait; else the same as asked
  double room = 0;            // how long it waited for room
  // What was done last of what the asking, and the work, had to wait for.
  PlayedNode before_asking, before_work;
};

struct Played {
  double seconds = 0;  // until all is done
  std::vector<PlayedTimes> times;
  PlayedNode last;
};

Played Play(const PlayedProgram& program, const PlayedMachine& machine);

// The longest chain, from the end to the begin: what was waited for each time,
// and how long each took.
std::vector<PlayedNode> PathOf(const Played& played);

// The reverse, for a program that ran, when the requests were seen (an end of
// 0: no work was): sets the requests' work and wake-ups, and the machine's of
// those kinds that were seen often enough.
void FindWakeUps(std::vector<PlayedTimes> seen, std::size_t enough,
                 PlayedProgram& program, PlayedMachine& machine);

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_PLAY_H_
