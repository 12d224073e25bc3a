#include "common/exercise/simulated_streams.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <vector>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

// The end of the last of these requests' work, or `time` if that is later.
double EndOfLast(const std::vector<int>& requests, double time,
                 const std::vector<RequestTimes>& times) {
  for (const int request : requests) {
    if (request < 0 || request >= static_cast<int>(times.size())) {
      throw std::invalid_argument(absl::StrCat(
          "[SimulateStreams] request ", request, " is needed when only ",
          times.size(), " have been made"));
    }
    time = std::max(time, times[request].end);
  }
  return time;
}

}  // namespace

// Work depends on earlier requests only, so one pass in their order finds all
// times.
SimulatedRun SimulateStreams(const std::vector<SimulatedRequest>& requests) {
  SimulatedRun run;
  double front_end = 0;           // when it continues
  std::map<int, double> streams;  // when all work so far is done
  for (const SimulatedRequest& request : requests) {
    if (request.stream < 0) {
      throw std::invalid_argument(absl::StrCat(
          "[SimulateStreams] there is no stream ", request.stream));
    }
    double& free = streams[request.stream];
    const double enqueued = front_end + request.enqueue;
    const double begin =
        EndOfLast(request.after, std::max(enqueued, free), run.times);
    free = begin + request.work;
    run.times.push_back({enqueued, begin, free, enqueued});
    double& returned = run.times.back().returned;
    returned = EndOfLast(request.awaits, enqueued, run.times);
    front_end = returned + request.host_work;
    run.seconds = std::max({run.seconds, front_end, free});
  }
  return run;
}

}  // namespace d2l
