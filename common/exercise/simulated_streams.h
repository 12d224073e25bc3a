// SimulateStreams: when a front end's requests, and the streams' work for them,
// would be done on devices that need not exist. Judges compare answers with it.
//
//   const SimulatedRun run = SimulateStreams(
//       {{/*enqueue=*/1, /*work=*/4},
//        {1, 4, /*stream=*/1, /*after=*/{0}, /*awaits=*/{1}},
//        {1, 2}});
//   run.times[1].begin;     // 5: after the work of request 0
//   run.times[1].returned;  // 9: from the wait for its own work
//   run.seconds;            // 12
//
// The front end makes one request after another. Each enqueues work on a
// stream, whose queue always has room. The work begins when all earlier work of
// the stream, and that of the requests in `after`, is done. After enqueueing,
// the front end waits for the work of the requests in `awaits`, and continues.
// Nothing else takes time: streams do not share cores, and no thread has to
// wake up.
//
// Times are in seconds, of any clock. A pure function of values, so any thread
// may call it. Throws std::invalid_argument for a negative stream, and for
// `after` or `awaits` with the number of a request that has not been made.

#ifndef D2L_COMMON_EXERCISE_SIMULATED_STREAMS_H_
#define D2L_COMMON_EXERCISE_SIMULATED_STREAMS_H_

#include <vector>

namespace d2l {

struct SimulatedRequest {
  double enqueue = 0;  // how long the call takes
  double work = 0;     // how long the stream works for it
  int stream = 0;
  std::vector<int> after = {};   // numbers of earlier requests
  std::vector<int> awaits = {};  // numbers of earlier requests, or its own
  double host_work = 0;  // how long the front end computes after the wait
};

struct RequestTimes {
  double enqueued = 0;
  double begin = 0, end = 0;  // of the stream's work
  double returned = 0;        // from the wait; without one, as `enqueued`
};

struct SimulatedRun {
  double seconds = 0;               // until the front end and all work are done
  std::vector<RequestTimes> times;  // by request
};

SimulatedRun SimulateStreams(const std::vector<SimulatedRequest>& requests);

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_SIMULATED_STREAMS_H_
