// Judges three_at_once: is everything enqueued without a wait, on both devices,
// and each copy behind its product? Then, were all three at work, the two
// devices and the link?

#include "chapters/auto_parallelism/exercises/judges/three_at_once.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "chapters/auto_parallelism/exercises/judges/square.h"
#include "common/base/console/language.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/listener.h"
#include "common/device/memory/storage.h"
#include "common/device/stream.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using SquareAndSend = std::vector<Tensor>(const std::vector<Worker>& workers,
                                          const Send& send);

constexpr std::size_t kMostChunks = 8;

// The operations that a stream's next work is certain to follow: its own, and
// those that it has waited for by events.
class Order : private OpListener, private DeviceListener {
 public:
  Order() : ops_(this), streams_(this, kStreams) {}

  // The last operation of `stream` that is done before the next work of `on`;
  // 0: none.
  std::uint64_t LastBefore(const Stream& on, const Stream* stream) const {
    const auto done = done_.find(&on);
    if (done == done_.end()) return 0;
    const auto number = done->second.find(stream);
    return number == done->second.end() ? 0 : number->second;
  }

 private:
  // For each stream the number of its last operation that is done then.
  using Done = std::map<const Stream*, std::uint64_t>;

  void OnOp(const OpRecord& record) override {
    if (record.stream == nullptr) return;
    done_[record.stream][record.stream] = record.number;
  }
  void OnStream(const StreamRecord& record) override {
    Done& done = done_[record.stream];
    if (record.kind == StreamRecord::Kind::kRecord)
      events_[record.event] = done;
    if (record.kind != StreamRecord::Kind::kWait) return;
    for (const auto& [stream, number] : events_[record.event]) {
      done[stream] = std::max(done[stream], number);
    }
  }

  std::map<const Stream*, Done> done_;
  std::map<std::uint64_t, Done> events_;
  const ScopedOpListener ops_;
  const ScopedDeviceListener streams_;
};

std::vector<Worker> MakeWorkers() {
  std::vector<Worker> workers;
  for (const int i : {0, 1}) {
    const Device device = Devices()[i].device;
    workers.push_back({{}, &NewStream(device), &NewStream(device)});
  }
  return workers;
}

// Memory on the host, and copies to it.
struct Host {
  Host(std::size_t count, std::int64_t n)
      : numel(n * n),
        memory(PinnedMemory(Devices()[0].device)
                   .AllocatePinned(count * numel * sizeof(float))) {}
  float* At(std::size_t chunk) const {
    return static_cast<float*>(memory->data()) + chunk * numel;
  }
  void Copy(std::size_t chunk, const Tensor& product, Stream& on) const {
    on.CopyAsync(At(chunk), product.data(), numel * sizeof(float),
                 CopyKind::kDeviceToHost);
  }
  const std::size_t numel;
  const StorageRef memory;
};

// The work that one call of the answer enqueued.
struct Asked {
  struct Sent {
    std::size_t chunk;
    Device device;
    const Stream* computed_on;
    const Stream* on;
    std::uint64_t product;  // the operation that computes it
    std::uint64_t behind;   // the last one that the copy waits for
    const void* from;
  };
  std::vector<Sent> sent;
  std::vector<Tensor> products;
  int waits = 0;
  // Shared with threads that outlive the call.
  std::shared_ptr<std::atomic<bool>> by_another_thread =
      std::make_shared<std::atomic<bool>>(false);
};

Asked Ask(const Judging& judging, const std::string& input,
          SquareAndSend* answer, const std::vector<Worker>& workers,
          const Host& host) {
  Asked asked;
  const std::size_t count = workers[0].xs.size();
  const Order order;
  const Requests requests;
  const Send send = [&, by_another_thread = asked.by_another_thread,
                     caller = std::this_thread::get_id()](
                        std::size_t chunk, const Tensor& product, Stream& on) {
    if (std::this_thread::get_id() != caller) {
      *by_another_thread = true;
      return;
    }
    if (chunk >= count || !product.defined() ||
        product.storage()->writer() == nullptr ||
        product.numel() != static_cast<std::int64_t>(host.numel)) {
      judging.Wrong(
          {input, Say("send() of chunk %d", chunk),
           Say("%d chunks, from 0", count),
           "Send each product, as a whole, with its chunk's number."});
    }
    const Stream* const computed_on = product.storage()->writer();
    asked.sent.push_back({chunk, product.device(), computed_on, &on,
                          product.storage()->written_by(),
                          order.LastBefore(on, computed_on), product.data()});
    host.Copy(chunk, product, on);
  };
  asked.products = answer(workers, send);
  asked.waits = requests.waits + requests.reads;
  return asked;
}

void JudgeAsked(const Judging& judging, const std::string& input,
                const std::vector<Worker>& workers, const Asked& asked) {
  const std::size_t count = workers[0].xs.size();
  if (*asked.by_another_thread) {
    judging.Wrong({input, "send() is called on another thread",
                   "all work enqueued by the calling thread",
                   "Enqueueing returns at once: one thread is enough to keep "
                   "both devices and the link at work."});
  }
  if (asked.waits > 0) {
    judging.Wrong({input, "the call waited for a device", "no wait",
                   "A caller that waits cannot enqueue the next product."});
  }
  if (asked.products.size() != count || asked.sent.size() != count) {
    judging.Wrong({input,
                   Say("%d products, %d of them sent", asked.products.size(),
                       asked.sent.size()),
                   Say("%d products, all of them sent", count),
                   "The number of chunks need not divide evenly among the "
                   "workers: leave none out, and send none twice."});
  }
  std::size_t least = count, most = 0, all = 0;
  for (const Worker& worker : workers) {
    const auto sent_to_it = static_cast<std::size_t>(std::count_if(
        asked.sent.begin(), asked.sent.end(), [&](const Asked::Sent& sent) {
          return sent.device == worker.compute->device();
        }));
    least = std::min(least, sent_to_it);
    most = std::max(most, sent_to_it);
    all += sent_to_it;
  }
  if (most > least + 1 || all < count) {
    judging.Wrong(
        {input, Say("%d products on one device and %d on another", most, least),
         "as many, or one more",
         "Every worker has a copy of all chunks: take the workers in turn, and "
         "use the xs of that worker."});
  }
  for (const Asked::Sent& sent : asked.sent) {
    const Worker& worker = *std::find_if(
        workers.begin(), workers.end(), [&](const Worker& worker) {
          return worker.compute->device() == sent.device;
        });
    if (sent.computed_on != worker.compute) {
      judging.Wrong({input,
                     Say("the product of chunk %d is computed by the stream %s",
                         sent.chunk, sent.computed_on->name()),
                     Say("by %s", worker.compute->name()),
                     "An operation goes to the current stream of its device: a "
                     "StreamGuard makes another stream the current one."});
    }
    if (sent.on != worker.copies) {
      judging.Wrong(
          {input,
           Say("chunk %d is sent by the stream %s", sent.chunk,
               sent.on->name()),
           Say("by %s", worker.copies->name()),
           "A stream does one operation after the other: if the stream that "
           "computes also copied, the next product would wait for the copy."});
    }
  }
  for (const Asked::Sent& sent : asked.sent) {
    if (sent.behind >= sent.product) continue;
    judging.Wrong(
        {input,
         Say("the copy of chunk %d may begin before its product is done",
             sent.chunk),
         "it waits for an event behind the product",
         "Only events order two streams, and an event stands for what had been "
         "enqueued on its stream when the event was recorded."});
  }
  for (const Worker& worker : workers) {
    std::uint64_t first = UINT64_MAX, last = 0;
    std::size_t products = 0;
    for (const Asked::Sent& sent : asked.sent) {
      if (sent.on != worker.copies) continue;
      ++products;
      first = std::min(first, sent.behind);
      last = std::max(last, sent.product);
    }
    if (products < 2 || first < last) continue;
    judging.Wrong({input,
                   Say("each copy waits for all products of %s",
                       worker.compute->device().ToString()),
                   "it waits for its own product",
                   "While a product is sent, its device should compute the "
                   "next one: record an event after each product."});
  }
}

void JudgeOne(const Judging& judging, SquareAndSend* answer,
              std::vector<Worker> workers, std::size_t count) {
  constexpr std::int64_t n = 5;
  std::vector<std::vector<float>> expected;
  for (std::size_t i = 0; i < count; ++i) {
    const std::vector<float> x =
        RandomNumbers(n * n, static_cast<unsigned>(i + 1));
    expected.push_back(Square(x, n));
    for (Worker& worker : workers) {
      worker.xs.push_back(FromVector(x, {n, n}, worker.compute->device()));
    }
  }
  for (const Worker& worker : workers) Synchronize(worker.compute->device());
  const std::string input =
      Say("%d chunks of %d x %d, and the link is busy", count, n, n);
  // Kept: after a wrong answer copies are still on their way.
  static const Host& host = *new Host(kMostChunks, n);
  std::fill(host.At(0), host.At(kMostChunks), -1.f);
  std::list<Gate> link;
  for (const Worker& worker : workers) link.emplace_back(*worker.copies);
  const Asked asked = Ask(judging, input, answer, workers, host);
  JudgeAsked(judging, input, workers, asked);

  // No copy has been made yet. Are all products done? If not, the gates open by
  // themselves.
  for (const Worker& worker : workers) worker.compute->Record().Synchronize();
  for (Gate& gate : link) {
    if (gate.TimedOut()) {
      judging.Wrong({input, "the products wait for copies",
                     "all products, before the first copy",
                     "The copies wait for the products, and not the other way "
                     "round: each product has memory of its own."});
    }
    gate.Open();
  }
  for (const Worker& worker : workers) Synchronize(worker.compute->device());
  std::vector<const void*> from(count);
  for (const Asked::Sent& sent : asked.sent) from[sent.chunk] = sent.from;
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& product = asked.products[i];
    judging.ExpectClose(
        input, {host.At(i), host.At(i) + host.numel}, expected[i], 1e-4,
        product.defined() && product.data() == from[i]
            ? "Chunk i is xs[i], and its product goes to place i on the host."
            : "The tensor that you sent is not the tensor that you returned in "
              "its place. The last handle to the product disappeared, and "
              "other operations wrote to its memory before the copy read it. "
              "Return the same tensors that you send.");
    judging.ExpectClose(input, ToVector<float>(product), expected[i], 1e-4,
                        "The products stand in the order of the chunks.");
  }
}

// A link that takes `seconds` for each product.
Send Over(const Host& host, double seconds) {
  return
      [&host, seconds](std::size_t chunk, const Tensor& product, Stream& on) {
        host.Copy(chunk, product, on);
        on.HostCallback([seconds] {
          std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        });
      };
}

void JudgeSquareAndSend(Judging& judging, SquareAndSend* answer) {
  std::vector<Worker> workers = MakeWorkers();
  for (const std::size_t count : {kMostChunks, std::size_t{7}, std::size_t{2},
                                  std::size_t{1}, std::size_t{0}}) {
    JudgeOne(judging, answer, workers, count);
  }
  if (!judging.timed()) return;

  constexpr std::size_t kChunks = 16;
  constexpr std::int64_t kN = 384;
  std::vector<Device> devices;
  for (Worker& worker : workers) {
    devices.push_back(worker.compute->device());
    for (std::size_t i = 0; i < kChunks; ++i) {
      worker.xs.push_back(Rand({kN, kN}, devices.back()));
    }
  }
  const auto compute = [&] {
    for (std::size_t i = 0; i < kChunks; ++i) {
      const Worker& worker = workers[i % workers.size()];
      const StreamGuard guard(*worker.compute);
      MatMul(worker.xs[i], worker.xs[i]);
    }
    for (const Device device : devices) Synchronize(device);
  };
  const double each =
      static_cast<double>(kChunks) / static_cast<double>(workers.size());
  double computing = 0;  // of a product, at best
  for (int i = 0; i < 8; ++i) {
    const Timer timer;
    compute();
    const double seconds = timer.Seconds() / each;
    computing = i == 0 ? seconds : std::min(computing, seconds);
  }
  // The link is as slow as the devices, so that none of them need be idle.
  const double sending = std::max(computing, 5e-4);
  const Host host(kChunks, kN);
  const Send send = Over(host, sending);
  std::vector<Tensor> products;  // kept until the copies are made
  judging.Race(
      {"yours", devices, [&] { products = answer(workers, send); }},
      {{"each product is sent as soon as it is done", devices,
        [&] {
          products.clear();
          for (std::size_t i = 0; i < kChunks; ++i) {
            const Worker& worker = workers[i % workers.size()];
            const StreamGuard guard(*worker.compute);
            products.push_back(MatMul(worker.xs[i], worker.xs[i]));
            worker.copies->Wait(worker.compute->Record());
            send(i, products[i], *worker.copies);
          }
        }},
       1.3,
       "Is a device idle before its last product is done? Its products depend "
       "on nothing. Is the link idle? Each product can be sent as soon as it "
       "is done: record an event right after the product, and send the "
       "product.",
       std::max(computing, sending) * each + std::min(computing, sending),
       "bound: the slowest stage alone"});
}

D2L_JUDGE("three_at_once", JudgeSquareAndSend);

}  // namespace
}  // namespace d2l
