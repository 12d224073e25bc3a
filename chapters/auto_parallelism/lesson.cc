// Automatic parallelism: independent operations run at the same time.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chapters/auto_parallelism/random_program.h"
#include "chapters/auto_parallelism/schedule.h"
#include "chapters/auto_parallelism/two_devices.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory.h"
#include "common/device/stream.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/plot.h"
#include "common/drawing/timeline.h"
#include "common/lesson/cell.h"
#include "common/lesson/host_library.h"
#include "common/lesson/judge.h"
#include "common/lesson/trace_program.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

void CheckSquare(Cell& cell, const std::string& what, const Tensor& x,
                 const Tensor& got) {
  const std::vector<float> values = ToVector<float>(x);
  cell.CheckClose(what, ToVector<float>(got),
                  HostMatMul(values, values, static_cast<int>(x.size(0))),
                  1e-4);
}

constexpr CellText kIn2 = {
    .id = "000/In2",
    .title = "Two devices",
    .also = {"001/c4"},
    .context =
        "Two devices are needed. If the machine has fewer GPUs, a GPU is used "
        "as two logical devices; if it has none, virtual devices stand for "
        "them, each with a queue, a worker thread and its share of the cores.",
    .python = R"py(
import torch
import time

assert torch.cuda.device_count() >= 2
)py",
};

// %% 000/In2
void In2(Cell& cell) {
  for (const DeviceInfo& info : Devices()) {
    std::cout << info.Describe() << "\n";
  }
  const int count = static_cast<int>(Devices().size());
  const std::string counted =
      absl::StrFormat("There are %d: %s and %s stand for GPU1 and GPU2.", count,
                      First().ToString(), Second().ToString());
  cell.Claim("There are at least two devices.",
             Counted(count >= 2, counted, absl::StrCat(count)), PairFact());
}
// %%

constexpr CellText kIn3 = {
    .id = "000/In3",
    .title = "A timer",
    .also = {"001/c5", "004/In3"},
    .context =
        "The course's timer, which prints how long its block took. It waits "
        "for "
        "nobody: if the block only asks for work, it shows how long asking "
        "took.",
    .python = R"py(
class Benchmark():
    def __init__(self, prefix=None):
        self.prefix = prefix + ' ' if prefix else ''

    def __enter__(self):
        self.start = time.time()

    def __exit__(self, *args):
        print('%stime: %.4f sec' % (self.prefix, time.time() - self.start))
)py",
};

// %% 000/In3
class Benchmark {
 public:
  explicit Benchmark(std::string prefix) : prefix_(std::move(prefix)) {}
  ~Benchmark() {
    std::cout << absl::StrFormat("%s time: %.4f sec\n", prefix_,
                                 timer_.Seconds());
  }

 private:
  const std::string prefix_;
  const Timer timer_;
};

void In3(Cell& cell) {
  const Tensor x = Rand({100, 100}, First());
  Tensor y = MatMul(x, x);  // warm-up: the first call starts threads
  const auto thousand_products = [&] {
    for (int i = 0; i < 1000; ++i) y = MatMul(x, x);
  };
  Synchronize(First());
  {
    const Benchmark benchmark("1000 products, not waited for,");
    thousand_products();
  }
  Synchronize(First());
  {
    const Benchmark benchmark("1000 products, waited for,");
    thousand_products();
    Synchronize(First());
  }
  // Time() takes both, many times: enqueue is the first, completion the second.
  cell.Time("1000 products", First(), thousand_products);
  CheckSquare(cell, "x @ x", x, y);
}
// %%

constexpr CellText kIn6 = {
    .id = "000/In6",
    .title = "One device, then the other",
    .also = {"000/In4", "000/In5", "001/c6", "001/c7"},
    .context =
        "20,000 products of 100 x 100 matrices on one device, then on the "
        "other. The notebook waits with synchronize(), which means the current "
        "device, GPU1, both times: the second time it reads the clock while "
        "GPU2 works.",
    .python = R"py(
def run(x):
    for _ in range(20000):
        y = torch.mm(x, x)

x_gpu1 = torch.rand(size=(100, 100), device='cuda:0')
x_gpu2 = torch.rand(size=(100, 100), device='cuda:1')

with Benchmark('Run on GPU1'):
    run(x_gpu1)
    torch.cuda.synchronize()

with Benchmark('Run on GPU2'):
    run(x_gpu2)
    torch.cuda.synchronize()
)py",
    .course_printed =
        "Run on GPU1 time: 1.2626 sec\nRun on GPU2 time: 1.1179 sec",
};

// %% 000/In6
Tensor Run(const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) y = MatMul(x, x);
  return y;
}

struct Products {
  int count;
  Tensor x1, x2;
};
Products SmallProducts(const Cell& cell) {
  const int n = cell.BySize(64, 100, 1000);
  return {cell.BySize(6000, 20000, 20000), Rand({n, n}, First()),
          Rand({n, n}, Second())};
}

void In6(Cell& cell) {
  const Products p = SmallProducts(cell);
  Tensor y1, y2;
  const auto run1 = [&] { y1 = Run(p.x1, p.count); };
  const auto run2 = [&] { y2 = Run(p.x2, p.count); };

  // The third is the notebook's: what is left when the clock is read?
  std::int64_t left = 0;
  const auto wait_for_gpu1 = [&] {
    Synchronize(First());
    left = CurrentStream(Second()).QueuedOperations();
  };
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"GPU1", {First()}, run1},
       {"GPU2", {Second()}, run2},
       {"GPU2, waited for GPU1", {Second()}, run2, wait_for_gpu1}});
  for (const Timing& timing : t) PrintTime("Run on ", timing);
  CheckSquare(cell, "x1 @ x1", p.x1, y1);
  CheckSquare(cell, "x2 @ x2", p.x2, y2);

  const Figure seen = Quotient(cell, "waited for GPU1 / for GPU2", t[2], t[1]);
  cell.Claim("Who waits for the wrong device reads too small a time.",
             Less(seen, Known("the true time", "x", 1), 1.02),
             LeftFact(Second(), left, p.count));
}
// %%

constexpr CellText kIn7 = {
    .id = "000/In7",
    .title = "Two devices, one program",
    .also = {"001/c8"},
    .context =
        "Both at once, and one wait at the end. A queue is bounded (4096 "
        "operations, unless --max_queued_operations says otherwise): the front "
        "end waits in run(x_gpu1) until the rest fits, and only then asks "
        "GPU2. "
        "So there are three ways: in the notebook's order, asked in turn, and "
        "in the notebook's order on streams whose queues have room for "
        "everything. The machines of the two notebooks gained 1.29 and 1.28 "
        "times, where 1.89 and 1.85 were possible.",
    .python = R"py(
with Benchmark('Run on both GPU1 and GPU2 in parallel'):
    run(x_gpu1)
    run(x_gpu2)
    torch.cuda.synchronize()
)py",
    .course_printed = "Run on both GPU1 and GPU2 in parallel time: 1.8384 sec",
};

// %% 000/In7
void In7(Cell& cell) {
  const Products p = SmallProducts(cell);
  const std::vector<Stream*> room = StreamsWithRoom(1 << 16);
  Tensor y1, y2;
  const auto run1 = [&] { y1 = Run(p.x1, p.count); };
  const auto run2 = [&] { y2 = Run(p.x2, p.count); };

  std::int64_t left = 0;
  const auto course = [&] {
    run1();
    left = CurrentStream(First()).QueuedOperations();
    run2();
  };
  const auto in_turn = [&] {
    for (int i = 0; i < p.count; ++i) {
      y1 = MatMul(p.x1, p.x1);
      y2 = MatMul(p.x2, p.x2);
    }
  };
  const auto with_room = [&] {
    const StreamGuard first(*room[0]), second(*room[1]);
    run1();
    run2();
  };
  const std::vector<Timing> t =
      cell.TimeInterleaved({{"GPU1", {First()}, run1},
                            {"GPU2", {Second()}, run2},
                            {"both, the course's order", Both(), course},
                            {"both, in turn", Both(), in_turn},
                            {"both, room in the queues", Both(), with_room}});
  for (const Timing& timing : t) PrintTime("Run on ", timing);
  CheckSquare(cell, "x1 @ x1", p.x1, y1);
  CheckSquare(cell, "x2 @ x2", p.x2, y2);

  Gain(cell, t[0], t[1], t[2]);
  Gain(cell, t[0], t[1], t[3]);
  cell.Claim("The parallel time is less than the sum of the separate times.",
             Less(One(), Gain(cell, t[0], t[1], t[4]), kGain),
             AskingFact(t[4]) + " " + PairFact());
  cell.Claim(
      "The course's order loses time: a full queue holds up GPU2.",
      Less(One(), Quotient(cell, "the course's order / with room", t[2], t[4]),
           kGain),
      LeftFact(First(), left, p.count));
}
// %%

constexpr CellText kMm4000 = {
    .id = "d2l/mm-4000",
    .title = "Large products on two devices",
    .context =
        "The English edition's example: fewer and larger products, all of them "
        "kept, a warm-up, and a wait for each device by name. Here 10 products "
        "of 1000 x 1000 matrices; --size=large takes the book's 50 of 4000 x "
        "4000.",
    .python = R"py(
devices = d2l.try_all_gpus()
def run(x):
    return [x.mm(x) for _ in range(50)]

x_gpu1 = torch.rand(size=(4000, 4000), device=devices[0])
x_gpu2 = torch.rand(size=(4000, 4000), device=devices[1])

run(x_gpu1)
run(x_gpu2)  # Warm-up all devices
torch.cuda.synchronize(devices[0])
torch.cuda.synchronize(devices[1])

with d2l.Benchmark('GPU1 time'):
    run(x_gpu1)
    torch.cuda.synchronize(devices[0])

with d2l.Benchmark('GPU2 time'):
    run(x_gpu2)
    torch.cuda.synchronize(devices[1])

with d2l.Benchmark('GPU1 & GPU2'):
    run(x_gpu1)
    run(x_gpu2)
    torch.cuda.synchronize()
)py",
    .course_printed =
        "GPU1 time: 0.1195 sec\nGPU2 time: 0.1189 sec\nGPU1 & GPU2: 0.1216 sec",
};

// %% d2l/mm-4000
void RunAndKeep(const Tensor& x, int products, std::vector<Tensor>* y) {
  y->clear();  // so that their memory can be used again
  for (int i = 0; i < products; ++i) y->push_back(MatMul(x, x));
}

void Mm4000(Cell& cell) {
  const int n = cell.BySize(400, 1000, 4000);
  const int products = cell.BySize(10, 10, 50);
  const Tensor x1 = Rand({n, n}, First());
  const Tensor x2 = Rand({n, n}, Second());
  std::vector<Tensor> y1, y2;
  const auto run1 = [&] { RunAndKeep(x1, products, &y1); };
  const auto run2 = [&] { RunAndKeep(x2, products, &y2); };
  const auto run_both = [&] {
    run1();
    run2();
  };
  // Each is run once before it counts, and waits for its devices.
  const std::vector<Timing> t =
      cell.TimeInterleaved({{"GPU1", {First()}, run1},
                            {"GPU2", {Second()}, run2},
                            {"GPU1 & GPU2", Both(), run_both}});
  for (const Timing& timing : t) PrintTime("", timing);
  CheckSquare(cell, "the first x1 @ x1", x1, y1.front());
  CheckSquare(cell, "the last x1 @ x1", x1, y1.back());
  CheckSquare(cell, "the last x2 @ x2", x2, y2.back());

  cell.Claim("Both together take less than the sum of the two.",
             Less(One(), Gain(cell, t[0], t[1], t[2]), kGain),
             AskingFact(t[2]) + " " + PairFact());
}
// %%

constexpr CellText kOverlap = {
    .id = "d2l/overlap",
    .title = "Copy while you compute",
    .context =
        "Results are copied to the host: y[i - 1] while y[i] is computed. That "
        "takes two streams, since one does one thing after the other, and a "
        "destination in pinned memory: a copy to any other (pageable) memory "
        "returns only when it is done. The book's program asks one stream for "
        "both, so nothing overlaps, and takes new host memory for every copy. "
        "Here the products are thin, (m, 32) @ (32, m), so that one takes "
        "about "
        "as long as a copy, and the host memory is there before.",
    .python = R"py(
def copy_to_cpu(x, non_blocking=False):
    return [y.to('cpu', non_blocking=non_blocking) for y in x]

with d2l.Benchmark('Run on GPU1'):
    y = run(x_gpu1)
    torch.cuda.synchronize()

with d2l.Benchmark('Copy to CPU'):
    y_cpu = copy_to_cpu(y)
    torch.cuda.synchronize()

with d2l.Benchmark('Run on GPU1 and copy to CPU'):
    y = run(x_gpu1)
    y_cpu = copy_to_cpu(y, True)
    torch.cuda.synchronize()
)py",
    .course_printed =
        "Run on GPU1: 0.1232 sec\nCopy to CPU: 2.1620 sec\n"
        "Run on GPU1 and copy to CPU: 3.1346 sec",
};

// What is computed, y[i] = a[i] @ b, and where it is copied to.
struct ThinProducts {
  explicit ThinProducts(const Cell& cell)
      : steps(cell.BySize(40, 40, 20)),
        m(cell.BySize(512, 1000, 4000)),
        bytes(sizeof(float) * m * m),
        a(Rand({steps, m, cell.BySize(32, 32, 1000)}, First())),
        b(Rand({a.size(2), m}, First())),
        y(steps),
        pinned_memory(PinnedMemory(First()).AllocatePinned(steps * bytes)),
        pageable_memory(steps * bytes),
        pinned(static_cast<char*>(pinned_memory->data())),
        pageable(pageable_memory.data()) {}

  const int steps;
  const std::int64_t m;
  const std::size_t bytes;  // of one product
  const Tensor a, b;
  std::vector<Tensor> y;
  const StorageRef pinned_memory;
  std::vector<char> pageable_memory;
  char* const pinned;
  char* const pageable;
};

// That every copy is its product, and the products are right, by their first
// rows.
void CheckCopies(Cell& cell, const ThinProducts& p, const char* host) {
  const std::vector<float> b = ToVector<float>(p.b);
  for (int i = 0; i < p.steps; ++i) {
    const std::vector<float> y = ToVector<float>(p.y[i]);
    cell.Check(std::memcmp(host + i * p.bytes, y.data(), p.bytes) == 0,
               absl::StrFormat("the copy of y[%d] is not y[%d]", i, i));
    const std::vector<float> row = ToVector<float>(p.a[{i, 0}]);
    std::vector<double> expected(p.m);
    for (std::size_t k = 0; k < row.size(); ++k) {
      for (std::int64_t j = 0; j < p.m; ++j) {
        expected[j] += double{row[k]} * b[k * p.m + j];
      }
    }
    cell.CheckClose(absl::StrFormat("the first row of y[%d]", i),
                    std::vector<double>(y.begin(), y.begin() + p.m), expected,
                    1e-4);
  }
}

// The same for both destinations, each written by that way alone.
void CheckBothWays(Cell& cell, ThinProducts& p,
                   const std::function<void()>& pinned,
                   const std::function<void()>& pageable) {
  for (const bool is_pinned : {true, false}) {
    char* const host = is_pinned ? p.pinned : p.pageable;
    std::memset(host, 0, p.steps * p.bytes);
    (is_pinned ? pinned : pageable)();
    Synchronize(First());
    CheckCopies(cell, p, host);
  }
}

// %% d2l/overlap
void Overlap(Cell& cell) {
  const Device device = First();
  ThinProducts p(cell);
  Stream& stream = CurrentStream(device);
  Stream& copies = NewStream(device);
  const auto compute = [&](int i) { p.y[i] = MatMul(p.a[i], p.b); };
  const auto copy = [&](int i, char* host, Stream& on) {
    on.CopyAsync(host + i * p.bytes, p.y[i].data(), p.bytes,
                 CopyKind::kDeviceToHost);
  };
  const auto all = [&](const std::function<void(int)>& step) {
    for (int i = 0; i < p.steps; ++i) step(i);
  };
  const auto one_stream = [&](int i) {
    compute(i);
    copy(i, p.pinned, stream);
  };
  const auto two_streams = [&](int i, char* host) {
    compute(i);
    copies.Wait(stream.Record());  // until y[i] is computed, no longer
    copy(i, host, copies);
  };
  const auto pinned = [&](int i) { two_streams(i, p.pinned); };
  const auto pageable = [&](int i) { two_streams(i, p.pageable); };
  const auto only_copy = [&](int i) { copy(i, p.pinned, stream); };
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"products", {device}, [&] { all(compute); }},
       {"copies", {device}, [&] { all(only_copy); }},
       {"one stream", {device}, [&] { all(one_stream); }},
       {"two streams", {device}, [&] { all(pinned); }},
       {"two streams, pageable", {device}, [&] { all(pageable); }}});
  for (const Timing& timing : t) PrintTime("", timing);
  CheckBothWays(
      cell, p, [&] { all(pinned); }, [&] { all(pageable); });

  Quotient(cell, "copies / products", t[1], t[0]);
  cell.Claim("Copying while computing takes less than the sum of the two.",
             Less(One(), Gain(cell, t[0], t[1], t[3]), kGain),
             DeviceFact(device));
  cell.Claim(
      "A pageable destination undoes it: each call waits for its copy.",
      Less(One(), Quotient(cell, "pageable / pinned", t[4], t[3]), kGain),
      HeldUpFact(t[4], t[3]));
}
// %%

constexpr CellText kGraph = {
    .id = "002/two-device-graph",
    .title = "The order follows the data",
    .context =
        "The gradient of a two-layer MLP's last weights, half of the batch on "
        "each of two devices, brought together on the device that has the "
        "data. "
        "Nobody says what may run in parallel: that follows from who needs "
        "what. But To() waits for all that its source was asked before, so the "
        "moves come first.",
    .python = R"py(
devices = d2l.try_all_gpus()
halves = []
for x_half, y_half, device in zip(x.chunk(2), y.chunk(2), devices):
    halves.append([t.to(device) for t in (x_half, y_half, w1, w2)])
gradients = []
for x_half, y_half, w1_copy, w2_copy in halves:
    h = torch.relu(x_half @ w1_copy)
    gradients.append(h.T @ (h @ w2_copy - y_half))
gradient = gradients[0].to(x.device) + gradients[1].to(x.device)
)py",
};

// The last two devices of the table; with three, the first only has the data.
std::vector<Device> Workers() {
  const std::vector<DeviceInfo>& all = Devices();
  return {all[all.size() < 2 ? 0 : all.size() - 2].device, all.back().device};
}

struct Mlp {
  Tensor x, y, w1, w2;
};

Mlp RandomMlp(const Cell& cell, Device home) {
  const int batch = cell.BySize(1024, 4096, 16384);
  const int hidden = cell.BySize(256, 512, 2048);
  return {Randn({batch, 784}, home), Randn({batch, 10}, home),
          Randn({784, hidden}, home) * 0.04, Randn({hidden, 10}, home) * 0.04};
}

// The same bits on one device and on two, and what the whole batch gives.
void CheckGradient(Cell& cell, const Mlp& mlp, const Tensor& one,
                   const Tensor& two) {
  cell.CheckClose("the gradient on two devices", ToVector<float>(two),
                  ToVector<float>(one), 0);
  const Tensor h = Relu(MatMul(mlp.x, mlp.w1));
  const Tensor whole = MatMul(T(h), MatMul(h, mlp.w2) - mlp.y);
  cell.CheckClose("the sum of the halves", ToVector<float>(one),
                  ToVector<float>(whole), 1e-3);
}

// %% 002/two-device-graph
Tensor Gradient(const Mlp& mlp, const std::vector<Device>& devices) {
  std::vector<Mlp> halves;
  const std::int64_t rows = mlp.x.size(0) / 2;
  for (int i = 0; i < 2; ++i) {
    const Range half{i * rows, (i + 1) * rows};
    halves.push_back({To(mlp.x[half], devices[i]), To(mlp.y[half], devices[i]),
                      To(mlp.w1, devices[i]), To(mlp.w2, devices[i])});
  }
  std::vector<Tensor> gradients;
  for (const auto& [x, y, w1, w2] : halves) {
    const Tensor h = Relu(MatMul(x, w1));
    gradients.push_back(MatMul(T(h), MatMul(h, w2) - y));
  }
  const Device home = mlp.x.device();
  return To(gradients[0], home) + To(gradients[1], home);
}

void Graph(Cell& cell) {
  const Device home = First(), a = Workers()[0], b = Workers()[1];
  const Mlp mlp = RandomMlp(cell, home);
  Tensor one, two;
  const auto on_one = [&] { one = Gradient(mlp, {a, a}); };
  const auto on_two = [&] { two = Gradient(mlp, {a, b}); };
  const std::vector<Timing> t =
      cell.TimeInterleaved({{"one device", Distinct({home, a}), on_one},
                            {"two", Distinct({home, a, b}), on_two}});
  CheckGradient(cell, mlp, one, two);

  const TracedProgram run = TraceProgram(on_two);
  cell.Show(DrawGraph(run.graph, "two-layer MLP"));
  cell.Show(Timeline(run.profile).Draw("timeline"));
  const Judgement schedule = FollowsTheData(run.graph);
  cell.Check(schedule.verdict == Verdict::kHolds, schedule.evidence);
  cell.Claim("The schedule follows the data.", schedule);
  cell.Claim("Independent parts run in parallel.",
             Less(One(), Quotient(cell, "one device / two", t[0], t[1]), kGain),
             PairFact(a, b));
}
// %%

constexpr CellText kStreams = {
    .id = "d2l/streams",
    .title = "Streams of one device",
    .context =
        "One device, one or four streams. Products are asked for on the "
        "streams "
        "in turn; on different streams they are independent. A small product "
        "leaves most of a device idle, a large one may use all of it.",
    .python = R"py(
streams = [torch.cuda.Stream() for _ in range(4)]

def run_on(streams, x, products):
    for i in range(products):
        with torch.cuda.stream(streams[i % len(streams)]):
            y = x.mm(x)
)py",
};

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

void Streams(Cell& cell) {
  const Device device = First();
  std::vector<Stream*> one, four;
  for (int i = 0; i < 4; ++i) four.push_back(&NewStream(device));
  one = {four[0]};
  const int n = cell.BySize(512, 1000, 4000);
  const Tensor small = Rand({64, 64}, device);
  const Tensor large = Rand({n, n}, device);
  Synchronize(device);  // these streams do not wait for the one it was made on
  Tensor s1, s4, l1, l4;
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"small, one stream", {device}, [&] { s1 = RunOn(one, small, 4000); }},
       {"small, four", {device}, [&] { s4 = RunOn(four, small, 4000); }},
       {"large, one stream", {device}, [&] { l1 = RunOn(one, large, 8); }},
       {"large, four", {device}, [&] { l4 = RunOn(four, large, 8); }}});
  CheckSquare(cell, "small, one stream", small, s1);
  CheckSquare(cell, "small, four streams", small, s4);
  CheckSquare(cell, "large, one stream", large, l1);
  CheckSquare(cell, "large, four streams", large, l4);

  const Figure small_gain = Quotient(cell, "small: one / four", t[0], t[1]);
  const Figure large_gain = Quotient(cell, "large: one / four", t[2], t[3]);
  cell.Claim("Small independent operations overlap.",
             Less(One(), small_gain, kGain),
             AskingFact(t[1]) + " " + DeviceFact(device));
  cell.Claim("Large ones fill the device alone: streams gain little.",
             Less(large_gain, Known("a gain", "x", 1.25)), DeviceFact(device));
}
// %%

constexpr CellText kSizeSweep = {
    .id = "d2l/size-sweep",
    .title = "From which size two devices pay",
    .context =
        "From which size do two devices beat one? One device does 2k products "
        "of n x n matrices, or two do k each, asked in turn. A tiny product "
        "takes less time than asking for it, and there is one front end.",
    .python = R"py(
for n in sizes:
    x1 = torch.rand(n, n, device=devices[0])
    x2 = torch.rand(n, n, device=devices[1])
    with d2l.Benchmark(f'{n}, one device'):
        for _ in range(2 * k):
            y1 = x1.mm(x1)
        torch.cuda.synchronize(devices[0])
    with d2l.Benchmark(f'{n}, two devices'):
        for _ in range(k):
            y1, y2 = x1.mm(x1), x2.mm(x2)
        for device in devices:
            torch.cuda.synchronize(device)
)py",
};

std::string SweepFact(int gain_from) {
  if (gain_from == 0) return "The largest size brings no sure gain. ";
  return absl::StrFormat("The gain is sure from n = %d on. ", gain_from);
}

// Enough products for ten milliseconds or so on a core, unless a queue has no
// room for them.
int ProductsOf(int n) {
  return static_cast<int>(std::clamp(1e9 / n / n / n, 2.0, 2000.0));
}

// %% d2l/size-sweep
void SizeSweep(Cell& cell) {
  const std::vector<int> sizes = cell.BySize<std::vector<int>>(
      {4, 16, 64, 256}, {2, 4, 8, 16, 32, 64, 128, 256, 512},
      {16, 64, 256, 1024, 4096});
  std::vector<double> x, one, two;
  Figure gain;
  int gain_from = 0;  // the size from which on all gains are certain
  for (const int n : sizes) {
    const Tensor x1 = Rand({n, n}, First());
    const Tensor x2 = Rand({n, n}, Second());
    const int k = ProductsOf(n);
    Tensor y1, y2;
    const auto on_one = [&] { y1 = Run(x1, 2 * k); };
    const auto on_two = [&] {
      for (int i = 0; i < k; ++i) {
        y1 = MatMul(x1, x1);
        y2 = MatMul(x2, x2);
      }
    };
    const std::string size = absl::StrCat("n = ", n);
    const std::vector<Timing> t =
        cell.TimeInterleaved({{size + ": one", {First()}, on_one},
                              {size + ": two", Both(), on_two}});
    CheckSquare(cell, "x1 @ x1", x1, y1);
    CheckSquare(cell, "x2 @ x2", x2, y2);
    x.push_back(n);
    one.push_back(t[0].completion.value.median / (2 * k));
    two.push_back(t[1].completion.value.median / (2 * k));
    gain = Quotient(cell, size + ": one / two", t[0], t[1]);
    if (Less(One(), gain, kGain).verdict != Verdict::kHolds) {
      gain_from = 0;
    } else if (gain_from == 0) {
      gain_from = n;
    }
  }
  Plot plot("n", "", "time per product", "s");
  plot.LogX().LogY();
  plot.MarkCrossover(plot.AddLine("one device", x, one),
                     plot.AddLine("two devices", x, two));
  cell.Show(plot.Draw("from which size two devices beat one"));
  cell.Claim("From some size on two devices beat one.",
             Less(One(), gain, kGain), SweepFact(gain_from) + PairFact());
}
// %%

constexpr CellText kRandomDag = {
    .id = "d2l/random-dag",
    .title = "Any order, one result",
    .context =
        "Random programs on all devices, two streams each: every operation on "
        "a "
        "stream chosen at random, on values from anywhere, some in place. Only "
        "what depends on each other is ordered. The result must be that of the "
        "same program on one stream, in every bit and every time.",
    .python = R"py(
for step in program:
    stream = streams[step.stream]
    with torch.cuda.stream(stream):
        for i in (step.a, step.b):
            stream.wait_event(written[i])
        a, b = (values[i].to(stream.device) for i in (step.a, step.b))
        values.append(compute(step.kind, a, b))
        written.append(stream.record_event())
)py",
};

// %% d2l/random-dag
std::vector<Value> RunOnStreams(const std::vector<Step>& program,
                                const Tensor& x,
                                const std::vector<Stream*>& streams) {
  std::vector<Value> values = {{Clone(x), CurrentStream(x.device()).Record()}};
  for (const Step& step : program) {
    Stream& stream = *streams[step.stream % streams.size()];
    const StreamGuard guard(stream);
    const auto input = [&](int i) {
      stream.Wait(values[i].written);
      return To(values[i].tensor, stream.device());
    };
    const Tensor a = input(step.a), b = input(step.b);
    if (step.in_place) {  // behind all who still read what it overwrites
      for (const Event& use : values[step.a].uses) stream.Wait(use);
      CopyTo(Compute(step.kind, a, b), a);
    } else {
      values.push_back({Compute(step.kind, a, b)});
    }
    const Event done = stream.Record();
    (step.in_place ? values[step.a] : values.back()).written = done;
    for (const int i : {step.a, step.b}) values[i].uses.push_back(done);
  }
  return values;
}

void RandomDag(Cell& cell) {
  const std::vector<Stream*> streams = TwoStreamsEach();
  const Tensor x = Tanh(Randn({24, 24}, First()));
  std::mt19937_64 random(13);
  Tally tally;
  for (int i = 0; i < cell.BySize(50, 500, 500); ++i) {
    const std::vector<Step> program = RandomProgram(random, 30, streams);
    tally.Count(program, streams);
    tally.Compare(RunOnStreams(program, x, streams),
                  RunOnStreams(program, x, {&DefaultStream(First())}));
  }
  const std::vector<Step> drawn = RandomProgram(random, 8, streams);
  const TracedProgram run =
      TraceProgram([&] { RunOnStreams(drawn, x, streams); });
  cell.Show(DrawGraph(run.graph, "one more, of 8 operations"));
  const Judgement equal = tally.AllEqual();
  cell.Check(equal.verdict == Verdict::kHolds, equal.evidence);
  cell.Claim("The result is always the serial one.", equal);
}
// %%

[[maybe_unused]] const bool registered = RegisterLesson(
    {3,
     "auto_parallelism",
     "Automatic parallelism",
     "Dive into Deep Learning, section 13.3\n"
     "https://d2l.ai/chapter_computational-performance/auto-parallelism.html",
     2,
     {{kIn2, In2},
      {kIn3, In3},
      {kIn6, In6},
      {kIn7, In7},
      {kMm4000, Mm4000},
      {kOverlap, Overlap},
      {kGraph, Graph},
      {kStreams, Streams},
      {kSizeSweep, SizeSweep},
      {kRandomDag, RandomDag}}});

}  // namespace
}  // namespace d2l
