// Cells: streams of one device, beside each other and beside copies.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chapters/auto_parallelism/two_devices.h"
#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::auto_parallelism {
namespace {

// Products y[i] = a[i] @ b of m x k and k x m matrices, and the host's memory
// for all of them.
struct ThinProducts {
  ThinProducts(Device device, int steps, int m, int k)
      : a(Rand({steps, m, k}, device)),
        b(Rand({k, m}, device)),
        y(steps),
        pinned_memory(
            PinnedMemory(device).AllocatePinned(sizeof(float) * steps * m * m)),
        pageable_memory(std::size_t{1} * steps * m * m),
        pinned(static_cast<float*>(pinned_memory->data())),
        pageable(pageable_memory.data()) {}

  const Tensor a, b;
  std::vector<Tensor> y;
  const StorageRef pinned_memory;
  std::vector<float> pageable_memory;
  float* const pinned;
  float* const pageable;
};

// %% d2l/overlap
// ThinProducts has the tensors a, b and y[i]; `host` has room for all y[i].
void CopyToHost(const ThinProducts& p, std::size_t i, Stream& stream,
                float* host) {
  const std::int64_t size = p.y[i].numel();
  stream.CopyAsync(host + i * size, p.y[i].data(), sizeof(float) * size,
                   CopyKind::kDeviceToHost);
}

void MultiplyAndCopy(ThinProducts& p, Stream& copies, float* host) {
  Stream& products = CurrentStream(p.b.device());
  for (std::size_t i = 0; i < p.y.size(); ++i) {
    p.y[i] = MatMul(p.a[i], p.b);
    copies.Wait(products.Record());  // until y[i] is computed, no longer
    CopyToHost(p, i, copies, host);
  }
}
// %%

// Checks that `run` copies every product to `host`, with the right values.
void CheckCopies(Cell& cell, const ThinProducts& p, float* host,
                 const std::function<void()>& run) {
  const std::vector<float> nothing(p.pageable_memory.size());
  std::copy(nothing.begin(), nothing.end(), host);
  run();
  Synchronize(First());
  for (std::size_t i = 0; i < p.y.size(); ++i) {
    const std::string name = "y[" + std::to_string(i) + "]";
    const std::vector<float> y = ToVector<float>(p.y[i]);
    cell.CheckClose(name, y, ToVector<float>(MatMul(p.a[i], p.b)), 0);
    cell.Check(std::memcmp(host + i * y.size(), y.data(),
                           sizeof(float) * y.size()) == 0,
               "the copy of " + name + " is not " + name);
  }
}

// %% d2l/overlap, measured
void Overlap(Cell& cell) {
  cell.PaceDevices();
  const Device device = First();
  const int steps = cell.BySize(8, 40, 20), m = cell.BySize(256, 1000, 4000);
  ThinProducts p(device, steps, m, cell.BySize(32, 32, 1000));
  Stream &one = CurrentStream(device), &two = NewStream(device);
  const auto multiply = [&] {
    for (int i = 0; i < steps; ++i) p.y[i] = MatMul(p.a[i], p.b);
  };
  const auto copy = [&] {
    for (int i = 0; i < steps; ++i) CopyToHost(p, i, one, p.pinned);
  };
  const auto run = [&p](Stream& copies, float* host) {
    return [&p, &copies, host] { MultiplyAndCopy(p, copies, host); };
  };
  const auto pinned = run(two, p.pinned), pageable = run(two, p.pageable);
  // A copy takes as long as a product.
  cell.LinkDevices(4LL * steps * m * m, cell.RoughSeconds(device, multiply));
  const Timings t = cell.TimeInterleaved(
      {{"products alone", {device}, multiply},
       {"copies alone", {device}, copy},
       {"one stream", {device}, run(one, p.pinned)},
       {"two streams", {device}, pinned},
       {"one stream, pageable", {device}, run(one, p.pageable)},
       {"two streams, pageable", {device}, pageable}});
  cell.PrintTimes(t);
  CheckCopies(cell, p, p.pinned, pinned);
  CheckCopies(cell, p, p.pageable, pageable);

  const Judgement gain = Faster(t["two streams"], t["one stream"], kGain);
  cell.Claim("Two streams are faster than one: {}.", gain,
             WhyNoCopyBeside(t["products alone"], t["copies alone"]));
  const Figure speedup =
      Speedup(cell, t["two streams, pageable"], t["one stream, pageable"]);
  cell.Claim("With pageable memory two streams are no faster than one: {}.",
             Given(gain, Below(speedup, kGain), "to pinned memory"),
             CallsTake(t["two streams, pageable"], t["two streams"]));
}
// %%
D2L_CELL("d2l/overlap", Overlap);

// %% d2l/streams
Tensor RunOn(const std::vector<Stream*>& streams, const Tensor& x,
             int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) {
    const StreamGuard guard(*streams[i % streams.size()]);
    y = MatMul(x, x);
  }
  return y;
}
// %% d2l/streams, measured
void Streams(Cell& cell) {
  const Device device = First();
  std::vector<Stream*> four;
  for (int i = 0; i < 4; ++i) four.push_back(&NewStream(device));
  const std::vector<Stream*> one = {four[0]};
  const int n = cell.BySize(512, 1000, 4000);
  const Tensor small = Rand({64, 64}, device);
  const Tensor large = Rand({n, n}, device);
  Synchronize(device);  // these streams do not wait for the one it was made on
  Tensor s1, s4, l1, l4;
  const Timings t = cell.TimeInterleaved(
      {{"small, one stream", {device}, [&] { s1 = RunOn(one, small, 4000); }},
       {"small, four", {device}, [&] { s4 = RunOn(four, small, 4000); }},
       {"large, one stream", {device}, [&] { l1 = RunOn(one, large, 8); }},
       {"large, four", {device}, [&] { l4 = RunOn(four, large, 8); }}});
  cell.PrintTimes(t);
  CheckSquare(cell, "small, one stream", small, s1);
  CheckSquare(cell, "small, four streams", small, s4);
  CheckSquare(cell, "large, one stream", large, l1);
  CheckSquare(cell, "large, four streams", large, l4);

  const std::string one_core = WhyNoOverlap(device);
  if (!one_core.empty()) return cell.NotAsked(2, one_core);
  const Judgement overlap =
      Faster(t["small, four"], t["small, one stream"], kGain);
  cell.Claim("Small products are faster on four streams: {}.", overlap,
             WhyNoStreamGains(t["small, four"], overlap));
  // The control: streams that overlap where there is room.
  cell.Claim(
      "Large products are no faster on four streams: {}.",
      Given(
          overlap,
          Below(Speedup(cell, t["large, four"], t["large, one stream"]), 1.25),
          "small ones"),
      WhyNotFull(t["large, one stream"], t["large, four"], 8));
}
// %%
D2L_CELL("d2l/streams", Streams);

// Benchmarks, at the course's size.

constexpr int kSmall = 100;
constexpr int kSmallProducts = 20000;
constexpr int kLarge = 1000;
constexpr int kLargeProducts = 10;

// The device's first `count` streams, with room for all operations here. They
// are made once: streams live as long as the process, and a benchmark is called
// several times.
std::vector<Stream*> FirstStreams(Device device, std::size_t count) {
  static auto& streams = *new std::map<Device, std::vector<Stream*>>;
  std::vector<Stream*>& made = streams[device];
  while (made.size() < count) made.push_back(&NewStream(device, 1 << 16));
  return {made.begin(), made.begin() + count};
}

double Flop(double n, int products) { return products * 2 * n * n * n; }

enum class Copies { kNone, kOnly, kSameStream, kOwnStream };

// 20 products (1000, 32) @ (32, 1000), and their copies to the host.
bool BenchmarkOverlap(const std::string& name, Copies copies,
                      bool to_pinned = true) {
  constexpr int kSteps = 20;
  return BenchmarkWork(
      name, kSteps, [=](Device device) -> std::function<void()> {
        const auto p =
            std::make_shared<ThinProducts>(device, kSteps, kLarge, 32);
        float* const host = to_pinned ? p->pinned : p->pageable;
        Stream& stream = copies == Copies::kOwnStream
                             ? *FirstStreams(device, 1)[0]
                             : CurrentStream(device);
        const auto both = [=, &stream] { MultiplyAndCopy(*p, stream, host); };
        both();
        if (copies != Copies::kNone && copies != Copies::kOnly) return both;
        return [=, &stream] {
          for (int i = 0; i < kSteps; ++i) {
            if (copies == Copies::kNone) p->y[i] = MatMul(p->a[i], p->b);
            if (copies == Copies::kOnly) CopyToHost(*p, i, stream, host);
          }
        };
      });
}

bool OnStreams(const std::string& name, int n, int products, int streams) {
  return BenchmarkWork(
      name, products,
      [=](Device device) {
        const Tensor x = Rand({n, n}, device);
        Synchronize(device);  // these streams do not wait for the default one
        return [=] { RunOn(FirstStreams(device, streams), x, products); };
      },
      Flop(n, products));
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkOverlap("BM_d2l_overlap_Products", Copies::kNone),
    BenchmarkOverlap("BM_d2l_overlap_Copies", Copies::kOnly),
    BenchmarkOverlap("BM_d2l_overlap_OneStream", Copies::kSameStream),
    BenchmarkOverlap("BM_d2l_overlap_TwoStreams", Copies::kOwnStream),
    BenchmarkOverlap("BM_d2l_overlap_TwoStreamsPageable", Copies::kOwnStream,
                     /*to_pinned=*/false),
    OnStreams("BM_d2l_streams_SmallOneStream", 64, 1000, 1),
    OnStreams("BM_d2l_streams_SmallFour", 64, 1000, 4),
    OnStreams("BM_d2l_streams_LargeOneStream", kLarge, 8, 1),
    OnStreams("BM_d2l_streams_LargeFour", kLarge, 8, 4),
};

}  // namespace
}  // namespace d2l::auto_parallelism
