// Judges overlap_the_gradients: against a link that is simulated event by
// event; then the best size of a bucket follows from the answer.

#include "chapters/multi_gpu/exercises/judges/overlap_the_gradients.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/exercise/simulated_streams.h"

namespace d2l {
namespace {

using Finish = double(const std::vector<Gradient>& gradients,
                      double bucket_bytes, const GradientLink& link);

// The time when the last message has arrived, and its times under three
// misunderstandings.
struct Arrived {
  double finish = 0;
  double unsent = 0;      // the last bucket not sent
  double not_shared = 0;  // the link carries all messages at once
  double no_overlap = 0;  // nothing is sent before all is computed
};

// Messages over a link, stream 1, behind gradients, which stream 0 computes.
// overfull: the last gradient of a bucket may bring it above bucket_bytes.
Arrived Send(const std::vector<Gradient>& gradients, double bucket_bytes,
             const GradientLink& link, bool overfull = true) {
  std::vector<SimulatedRequest> requests;
  double ready = 0;
  for (const Gradient& gradient : gradients) {
    requests.push_back({0, gradient.ready - ready});
    ready = gradient.ready;
  }
  const int count = static_cast<int>(gradients.size());
  double bytes = 0;
  bool full = true;
  for (int i = 0; i < count; ++i) {
    const double more = gradients[i].bytes;
    if (full || (!overfull && bytes + more > bucket_bytes)) {
      requests.push_back({0, link.latency, 1});
      bytes = 0;
    }
    bytes += more;
    full = bytes >= bucket_bytes;
    requests.back().after = {i};
    requests.back().work += more / link.bytes_per_second;
  }
  Arrived arrived;
  const SimulatedRun sent = SimulateStreams(requests);
  arrived.finish = sent.seconds;
  const std::size_t last = sent.times.size() - (full ? 1 : 2);
  if (last + 1 > gradients.size()) arrived.unsent = sent.times[last].end;
  std::vector<SimulatedRequest> at_once = requests;
  int stream = 0;
  for (SimulatedRequest& request : at_once) {
    if (request.stream > 0) request.stream = ++stream;
  }
  arrived.not_shared = SimulateStreams(at_once).seconds;
  for (SimulatedRequest& request : requests) {
    if (request.stream > 0) request.after = {count - 1};
  }
  arrived.no_overlap = SimulateStreams(requests).seconds;
  return arrived;
}

bool Close(double a, double b) {
  return a <= 1.0001 * b + 1e-12 && b <= 1.0001 * a + 1e-12;
}

std::vector<Gradient> RandomGradients(std::size_t count) {
  std::vector<Gradient> gradients;
  double time = 0;
  for (const float number : RandomNumbers(count, 5)) {
    const double size =
        std::min(100.0, 1 + 10.0 * (number < 0 ? -number : number));
    time += 1e-5 * size;
    gradients.push_back({time, 1e4 * size});
  }
  return gradients;
}

void JudgeFinish(Judging& judging, Finish* answer) {
  for (const std::size_t count : {1, 2, 33, 161, 0}) {
    const std::vector<Gradient> gradients = RandomGradients(count);
    for (const GradientLink& link :
         {GradientLink{1e-3, 1e9}, GradientLink{1e-5, 3e8},
          GradientLink{Drawn(1e-6, 1e-2), Drawn(1e8, 1e11)}}) {
      for (const double bucket : {1.0, 1e6, 4e6, 1e12, Drawn(2e5, 2e7)}) {
        const Arrived arrived = Send(gradients, bucket, link);
        const double got = answer(gradients, bucket, link);
        const double just_above =
            std::nextafter(bucket, std::numeric_limits<double>::infinity());
        if (Close(got, arrived.finish)) continue;
        std::string look =
            "A message starts when its bucket's last gradient is ready and the "
            "link is free. It takes the latency, and its bytes.";
        if (Close(got, arrived.no_overlap)) {
          look = "Messages travel while gradients are computed.";
        } else if (Close(got, arrived.not_shared)) {
          look = "The link carries one message at a time: the next one waits.";
        } else if (Close(got, arrived.unsent)) {
          look = "The last bucket never gets full, and has to be sent, too.";
        } else if (Close(got, Send(gradients, bucket, link, false).finish)) {
          look =
              "A gradient that brings a bucket above bucket_bytes is still put "
              "into it, and then the bucket is sent.";
        } else if (Close(got, Send(gradients, just_above, link).finish)) {
          look = "A bucket that has exactly bucket_bytes is full, too.";
        } else if (arrived.unsent == arrived.finish &&
                   Close(got, arrived.finish + link.latency)) {
          look =
              "At the end this sends an empty bucket, which takes the latency: "
              "send it only if something is in it.";
        }
        judging.Wrong(
            {Say("%d gradients, buckets of %s, %s a message, %.3g bytes a "
                 "second",
                 count, FormatBytes(static_cast<std::int64_t>(bucket)),
                 FormatDuration(link.latency), link.bytes_per_second),
             FormatDuration(got), FormatDuration(arrived.finish), look});
      }
    }
  }
  const std::vector<Gradient> gradients = RandomGradients(161);
  const GradientLink link = {1e-3, 1e9};
  double best = 0, best_bucket = 0;
  for (double bucket = 1e4; bucket < 1e8; bucket *= 1.25) {
    const double finish = answer(gradients, bucket, link);
    if (best_bucket == 0 || finish < best) best = finish, best_bucket = bucket;
  }
  judging.Note(
      Say("161 gradients, 1 ms a message: with buckets of %s the last one has "
          "arrived after %s; one by one after %s, all in one after %s.",
          FormatBytes(static_cast<std::int64_t>(best_bucket)),
          FormatDuration(best), FormatDuration(answer(gradients, 1, link)),
          FormatDuration(answer(gradients, 1e12, link))));
}

D2L_JUDGE("overlap_the_gradients", JudgeFinish);

}  // namespace
}  // namespace d2l
