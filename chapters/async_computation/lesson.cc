// Asynchronous computation: the calls return before the work is done.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/format.h"
#include "common/base/source_location.h"
#include "common/base/text.h"
#include "common/base/timer.h"
#include "common/device/backend.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/memory.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"
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

// Two times that differ by less may differ because the machine is noisy.
constexpr double kClearly = 1.3;

// Bytes in flight: as good as none.
constexpr std::int64_t kNoBound = std::int64_t{1} << 60;

// The line below the call, to be compared with what an error says.
SourceLocation LineBelow(SourceLocation at = SourceLocation::Current()) {
  return {at.file(), at.line() + 1};
}

// Launch blocking as asked for, while it lives.
class LaunchBlockingGuard {
 public:
  explicit LaunchBlockingGuard(bool on) { SetLaunchBlocking(on); }
  ~LaunchBlockingGuard() { SetLaunchBlocking(before_); }
  LaunchBlockingGuard(const LaunchBlockingGuard&) = delete;
  LaunchBlockingGuard& operator=(const LaunchBlockingGuard&) = delete;

 private:
  const bool before_ = LaunchBlocking();
};

// How long a call takes.
double Seconds(const std::function<void()>& call) {
  const Timer timer;
  call();
  return timer.Seconds();
}

// What one repeat measured, by name.
using Repeat = std::vector<std::pair<std::string, double>>;

// Reports all that the repeats measured, as figures in seconds.
std::map<std::string, Figure> ReportAll(Cell& cell, Device device,
                                        const std::vector<Repeat>& repeats) {
  std::map<std::string, Figure> figures;
  for (std::size_t i = 0; i < repeats[0].size(); ++i) {
    std::vector<double> samples;
    for (const Repeat& repeat : repeats) samples.push_back(repeat[i].second);
    const std::string& name = repeats[0][i].first;
    figures[name] =
        cell.Report(Sampled(name, MeasuredOn(device), "s", std::move(samples)));
  }
  return figures;
}

// Prints what a formula predicted beside what was measured in the same
// repeats, and judges whether they are the same to within 1.5x.
Judgement Predicts(const Figure& formula, const Figure& measured) {
  const Figure ratio = RatioPerRepeat(
      absl::StrCat(formula.label, " / ", measured.label), formula, measured);
  std::cout << absl::StrFormat(
      "%-18s predicts %8s; %s: measured %8s; error %+.0f %%\n", formula.label,
      FormatDuration(formula.value.median), measured.label,
      FormatDuration(measured.value.median),
      100 * (formula.value.median / measured.value.median - 1));
  return AboutEqual(ratio, Known("exact", "x", 1), 1.5);
}

// Why the book's formula is right or not for work synchronized once: which of
// the two costs is the larger, in words.
std::string Why(const Figure& t1, const Figure& t2) {
  const double ratio = t1.value.median / t2.value.median;
  if (ratio > 1) {
    return absl::StrFormat(
        "Asking takes longer than computing: t1 is %s t2, and the formula "
        "counts it once.",
        FormatFactor(ratio));
  }
  return absl::StrFormat("Computing takes longer than asking: t2 is %s t1.",
                         FormatFactor(1 / ratio));
}

// The memory that a program needed, besides what was in use before.
struct MemoryUse {
  Figure peak;
  std::string facts;  // on the last of its runs, a sentence
};

// Runs a program six times, from empty caches; it calls what it is given
// after each step. Reports the peak, and adds the last run to the plot.
// max_bytes_in_flight: see DeviceMemory.
MemoryUse UseOf(
    Cell& cell, Plot& plot, const std::string& kind, const std::string& way,
    DeviceMemory& memory, std::int64_t max_bytes_in_flight,
    const std::function<void(const std::function<void()>& look)>& program) {
  struct Bound {
    DeviceMemory& memory;
    const std::int64_t before;
    ~Bound() { memory.SetMaxBytesInFlight(before); }
  } bound{memory, memory.SetMaxBytesInFlight(max_bytes_in_flight)};
  const std::string label = absl::StrCat(kind, ", ", way);
  std::vector<double> peaks, steps, bytes;
  MemoryUse use;
  for (int run = 0; run < 6; ++run) {
    memory.EmptyCache();
    memory.ResetPeak();
    const MemoryStats before = memory.Stats();
    MemoryStats now = before;
    steps.clear();
    bytes.clear();
    program([&] {
      now = memory.Stats();
      steps.push_back(static_cast<double>(steps.size() + 1));
      bytes.push_back(
          static_cast<double>(now.in_use + now.in_flight - before.in_use));
    });
    peaks.push_back(static_cast<double>(memory.Stats().peak - before.in_use));
    const std::int64_t blocks = now.raw_allocations - before.raw_allocations;
    use.facts = absl::StrFormat(
        "%s: at the last step the program held %s, the queue alone %s; %d "
        "requests for memory, served by %d different %s.",
        label, FormatBytes(now.in_use - before.in_use),
        FormatBytes(now.in_flight), now.allocations - before.allocations,
        blocks, blocks == 1 ? "block" : "blocks");
  }
  plot.AddLine(way, steps, bytes);
  use.peak =
      cell.Report(Sampled(label, MeasuredOn(TryGpu()), "B", std::move(peaks)));
  return use;
}

constexpr CellText kIn2 = {
    .id = "004/In2",
    .title = "A clock that lies",
    .also = {"001/c3"},
    .context =
        "Ten times: a random matrix, multiplied by itself. First with the host "
        "library, as with NumPy: each call returns when its work is done. Then "
        "with tensors on a device: each call only asks for the work.",
    .python = R"py(
# warm-up
device = d2l.try_gpu()
a = torch.randn(size=(1000, 1000), device=device)
b = torch.mm(a, a)

with Benchmark('numpy'):
    for _ in range(10):
        a = numpy.random.normal(size=(1000, 1000))
        b = numpy.dot(a, a)

with Benchmark('torch'):
    for _ in range(10):
        a = torch.randn(size=(1000, 1000), device=device)
        b = torch.mm(a, a)
)py",
    .course_printed = "numpy: 0.2660 sec\ntorch: 0.0010 sec",
};

// %% 004/In2
void In2(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
  const Device device = TryGpu();

  const auto on_the_host = [&] {
    for (int i = 0; i < 10; ++i) {
      const std::vector<float> a = HostRandn(n * n);
      const std::vector<float> b = HostMatMul(a, a, n);
    }
  };
  Tensor a, b;
  const auto on_the_device = [&] {
    for (int i = 0; i < 10; ++i) {
      a = Randn({n, n}, device);
      b = MatMul(a, a);
    }
  };
  // In turn: host, tensor, host, tensor, and so on.
  const std::vector<Timing> times = cell.TimeInterleaved(
      {{"host library", {}, on_the_host}, {"tensor", {device}, on_the_device}});
  const Figure& host = times[0].completion;
  const Timing& tensor = times[1];

  // As in the course, nobody has waited when the clock is read.
  std::cout << "host:   " << FormatDuration(host.value.median) << "\n"
            << "tensor: " << FormatDuration(tensor.enqueue.value.median)
            << "\n";
  const std::vector<float> a_values = ToVector<float>(a);
  cell.CheckClose("a @ a", ToVector<float>(b),
                  HostMatMul(a_values, a_values, n), 1e-3);

  const Figure gap = cell.Report(
      RatioPerRepeat("host / tensor, enqueue", host, tensor.enqueue));
  const Figure hardware = cell.Report(
      RatioPerRepeat("host / tensor, completion", host, tensor.completion));
  cell.Claim(
      "The gap is larger than the hardware explains: the front end returned "
      "early.",
      Less(hardware, gap, kClearly));
}
// %%

constexpr CellText kIn4 = {
    .id = "004/In4",
    .title = "The true cost",
    .context =
        "The same ten products, but before the clock is read, Synchronize "
        "waits "
        "until the device has done them all.",
    .python = R"py(
with Benchmark():
    for _ in range(10):
        a = torch.randn(size=(1000, 1000), device=device)
        b = torch.mm(a, a)
    torch.cuda.synchronize(device)
)py",
    .course_printed = "Done: 0.0020 sec",
};

// %% 004/In4
void In4(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
  const Device device = TryGpu();

  Tensor a, b;
  const auto ten_products = [&] {
    for (int i = 0; i < 10; ++i) {
      a = Randn({n, n}, device);
      b = MatMul(a, a);
    }
  };
  const std::vector<Timing> times =
      cell.TimeInterleaved({{"not waited for", {device}, ten_products},
                            {"synchronized", {device}, [&] {
                               ten_products();
                               Synchronize(device);
                             }}});
  const Timing& asked = times[0];
  const Timing& done = times[1];

  std::cout << "Done: " << FormatDuration(done.enqueue.value.median) << "\n";
  const std::vector<float> a_values = ToVector<float>(a);
  cell.CheckClose("a @ a", ToVector<float>(b),
                  HostMatMul(a_values, a_values, n), 1e-3);

  cell.Claim("Without Synchronize the clock shows less than the cost.",
             Less(asked.enqueue, done.enqueue, kClearly));
  cell.Claim("With it, this is the true cost: nothing is left to wait for.",
             AboutEqual(done.enqueue, done.completion, kClearly));
}
// %%

constexpr CellText kIn5 = {
    .id = "004/In5",
    .title = "Who waits for whom",
    .context =
        "Three statements and a print. The graph shows what has to be done "
        "before what, of them and of a network with two branches; the "
        "timeline, "
        "when the front end asked and when the device worked. Behind a matrix "
        "product, which keeps the device busy, one sees who waits for whom.",
    .python = R"py(
x = torch.ones((1, 2), device=device)
y = torch.ones((1, 2), device=device)
z = x * y + 2
z
)py",
    .course_printed = "tensor([[3., 3.]], device='cuda:0')",
};

// %% 004/In5
void In5(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000);
  const Device device = TryGpu();
  Tensor a = Rand({n, n}, device), w = Rand({n, n}, device), z;
  const auto three_statements = [&] {
    const Tensor x = Ones({1, 2}, device);
    const Tensor y = Ones({1, 2}, device);
    z = x * y + 2;
  };
  const TracedProgram run = TraceProgram(three_statements);
  const TracedProgram network = TraceProgram([&] {
    const Tensor left = Relu(MatMul(a, w) + 1);
    const Tensor right = Tanh(MatMul(w, a) - 1);
    Item(Mean(MatMul(left * right, w)));
  });
  std::cout << z << "\n\n";
  cell.CheckClose("z", ToVector<float>(z), {3, 3}, 0);
  cell.Check(run.graph.depth() == 3 && network.graph.depth() == 7, "levels");
  cell.Show(DrawGraph(run.graph, "z = x * y + 2"));
  cell.Show(DrawGraph(network.graph, "two branches"));
  cell.Show(Timeline(network.profile).Draw("timeline of two branches"));
  const auto behind_a_product = [&] {
    MatMul(a, a);
    three_statements();
  };
  const auto print = [&] { std::ostringstream() << z; };
  Stream& other = NewStream(device);
  const auto two_products = [&](bool chained) {
    const Tensor b = MatMul(a, a);
    if (chained) other.Wait(CurrentStream(device).Record());
    const StreamGuard guard(other);
    MatMul(chained ? b : a, a);
  };
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"a @ a, x, y, z, print", {device}, behind_a_product, print},
       {"b = a @ a", {device}, [&] { MatMul(a, a); }},
       {"b = a @ a, c = a @ a", {device}, [&] { two_products(false); }},
       {"b = a @ a, c = b @ a", {device}, [&] { two_products(true); }}});
  cell.Claim("The three statements only enqueue: they return before the work.",
             Less(t[0].enqueue, t[0].completion, kClearly));
  cell.Claim("Printing waits: for all that was asked for before.",
             Above(RatioPerRepeat("", t[0].wait, t[1].completion), 0.5));
  cell.Claim("Operations that depend on each other cannot run in parallel.",
             Less(t[1].completion, t[3].completion, 1.5));
}
// %%

constexpr CellText kLaunchBlocking = {
    .id = "000/launch-blocking",
    .title = "Errors that come late",
    .context =
        "An index that is out of range is found out on the device, when the "
        "call that asked has long returned. The error surfaces where somebody "
        "waits; with launch blocking every call waits, so it surfaces in the "
        "call itself. PyTorch's late error does not say who asked; this one "
        "names the line.",
    .python = R"py(
# CUDA_LAUNCH_BLOCKING=1 python lesson.py
x = torch.arange(10.0, device=device)
index = torch.tensor([3, 17], device=device)

y = x * 2
rows = torch.index_select(y, 0, index)  # fails on the device
z = y + 1
torch.cuda.synchronize(device)          # the error surfaces here
)py",
};

// %% 000/launch-blocking
void ErrorsWithLaunchBlocking(Cell& cell) {
  const Device device = TryGpu();
  const Tensor x = Arange(10, device);
  const Tensor index = FromVector<std::int64_t>({3, 17}, {2}, device);
  SourceLocation request, wait;
  const auto program = [&] {
    const Tensor y = x * 2;
    request = LineBelow();
    const Tensor rows = IndexSelect(y, 0, index);
    const Tensor z = y + 1;
    wait = LineBelow();
    Synchronize(device);
  };
  for (const bool blocking : {false, true}) {
    const LaunchBlockingGuard guard(blocking);
    std::cout << (blocking ? "\nWith" : "Without") << " launch blocking:\n";
    try {
      program();
      cell.Check(false, "index 17 of 10 went unnoticed");
    } catch (const AsyncError& error) {
      std::cout << Wrap(error.what());
      cell.Check(error.failure().requested_at == request, "who asked");
      cell.Check(error.noticed_at() == (blocking ? request : wait), "where");
    }
  }

  const int n = cell.BySize(500, 1000, 1000);
  const Tensor a = Zeros({100, 100}, device);
  Tensor b;
  const auto additions = [&](bool blocking) {
    const LaunchBlockingGuard guard(blocking);
    for (int i = 1; i <= n; ++i) b = a + i;
  };
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"without", {device}, [&] { additions(false); }},
       {"with launch blocking", {device}, [&] { additions(true); }}});
  cell.CheckClose("b", ToVector<float>(b), std::vector<float>(10000, n), 0);
  cell.Report(RatioPerRepeat("with / without, completion", t[1].completion,
                             t[0].completion));
  cell.Claim("Without launch blocking the calls return before the work.",
             Less(t[0].enqueue, t[0].completion, kClearly));
  cell.Claim("With it every call waits: nothing is left to do afterwards.",
             AboutEqual(t[1].enqueue, t[1].completion, kClearly));
}
// %%

constexpr CellText kQueueMemory = {
    .id = "004/queue-memory",
    .title = "What a full queue holds",
    .context =
        "Does an overfull queue use too much memory? Three kinds of memory "
        "that "
        "a minibatch needs, in four programs: one only asks; one synchronizes "
        "after each minibatch; one reads a value of each and drops it; one has "
        "bounds, on the operations in the queue and on the bytes in flight. "
        "FromVector fills a staging buffer in pinned memory, asks for its copy "
        "to the device, and lets go of it.",
    .python = R"py(
outputs = []
for X in data_iter:
    outputs.append(net(X.to(device, non_blocking=True)))
    torch.cuda.synchronize(device)  # after every minibatch
torch.cuda.max_memory_allocated(device)
)py",
};

// %% 004/queue-memory
void QueueMemory(Cell& cell) {
  const int n = cell.BySize(256, 512, 1024), batches = cell.BySize(24, 32, 64);
  const Device device = TryGpu();
  const std::vector<float> host(n * n, 1);
  const Tensor ones = FromVector(host, {n, n}, device);
  Synchronize(device);
  const std::int64_t bytes = n * n * sizeof(float);
  Stream& unbounded = NewStream(device, StreamOptions::kUnbounded);
  Stream& bounded = NewStream(device, 8);
  for (std::string kind : {"temporaries", "kept outputs", "staging buffers"}) {
    const bool staging = kind == "staging buffers";
    DeviceMemory& memory = staging ? PinnedMemory(device) : Memory(device);
    Plot plot("minibatches asked for", "", "memory", "B");
    MemoryUse asking;
    for (std::string way : {"asking", "synchronizing", "bounds", "reading"}) {
      const auto epoch = [&](const std::function<void()>& look) {
        const StreamGuard guard(way == "bounds" ? bounded : unbounded);
        std::vector<Tensor> outputs;
        double mean = 0;
        for (int i = 1; i <= batches; ++i) {
          const Tensor in = staging ? FromVector(host, {n, n}, device) : ones;
          if (kind != "kept outputs" || way == "reading") outputs.clear();
          outputs.push_back(Relu(MatMul(in, ones)) + i);
          if (way == "synchronizing") Synchronize(device);
          if (way == "reading") mean = Item(Mean(outputs[0]));
          look();
        }
        for (const Tensor& output : outputs) mean = Item(Mean(output));
        cell.Check(std::abs(mean - n - batches) < 0.5, "the last mean");
      };
      const MemoryUse use =
          UseOf(cell, plot, kind, way, memory,
                way == "bounds" ? 4 * bytes : kNoBound, epoch);
      if (way == "asking") asking = use;
      if (way == "asking" ||
          (kind == "temporaries" && way != "synchronizing")) {
        continue;
      }
      cell.Claim(absl::StrCat("Less memory by ", way,
                              " than by asking alone: ", kind, "."),
                 Less(use.peak, asking.peak, kClearly), asking.facts);
    }
    cell.Show(plot.Draw("memory of " + kind));
  }
}
// %%

constexpr CellText kBarriers = {
    .id = "d2l/barriers",
    .title = "Two ways to wait",
    .context =
        "Two barriers: wait until the device has done everything, or until one "
        "tensor has been computed. MXNet calls them waitall and wait_to_read; "
        "here they are Synchronize and WaitToRead.",
    .python = R"py(
with d2l.Benchmark('waitall'):
    b = np.dot(a, a)
    npx.waitall()

with d2l.Benchmark('wait_to_read'):
    b = np.dot(a, a)
    b.wait_to_read()
)py",
};

// %% d2l/barriers
void Barriers(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000);
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device);
  Stream& other = NewStream(device);

  Tensor b, c;
  const auto chain = [&] { b = MatMul(a, a); };
  const auto more_behind = [&] {
    b = MatMul(a, a);
    for (int i = 0; i < 3; ++i) c = MatMul(a, a);
  };
  const auto more_beside = [&] {
    b = MatMul(a, a);
    const StreamGuard guard(other);
    for (int i = 0; i < 3; ++i) c = MatMul(a, a);
  };
  const auto all = [&] { Synchronize(device); };
  const auto read = [&] { WaitToRead(b); };
  const std::vector<Timing> alone =
      cell.TimeInterleaved({{"b, waitall", {device}, chain, all},
                            {"b, wait_to_read", {device}, chain, read}});
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"b, more behind it, waitall", {device}, more_behind, all},
       {"b, more behind it, wait_to_read", {device}, more_behind, read},
       {"b, more beside it, waitall", {device}, more_beside, all},
       {"b, more beside it, wait_to_read", {device}, more_beside, read}});

  for (int i = 0; i < 2; ++i) {
    std::cout << (i == 0 ? "waitall:      " : "wait_to_read: ")
              << FormatDuration(alone[i].completion.value.median) << "\n";
  }
  const std::vector<float> values = ToVector<float>(a);
  cell.CheckClose("b", ToVector<float>(b), HostMatMul(values, values, n), 1e-4);
  cell.CheckClose("c", ToVector<float>(c), ToVector<float>(b), 0);
  cell.Claim("About equal here: b is all that the device has to do.",
             AboutEqual(alone[0].completion, alone[1].completion, kClearly));
  cell.Claim("They differ when other work is behind b: wait_to_read is sooner.",
             Less(t[1].completion, t[0].completion, kClearly));
}
// %%

constexpr CellText kBlockers = {
    .id = "d2l/blockers",
    .title = "Reads that wait",
    .context =
        "Printing, reading a number, copying to the host's memory, a condition "
        "on a value: none of them says that it waits, and each does. One such "
        "read costs little; one for every small operation keeps the front end "
        "from running ahead.",
    .python = R"py(
print(s)
s.item()
s.numpy()
if s > 0: ...

total = 0
for i in range(10000):
    total += (x * i).item()          # against one read at the end
)py",
};

// %% d2l/blockers
void Blockers(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000), reads = 10 * n;
  const Device device = TryGpu();
  const Tensor a = Rand({n, n}, device), x = Ones({}, device);
  Tensor s;
  const auto product = [&] { s = Sum(MatMul(a, a)); };
  int sign = 0;
  double each = 0, last = 0, on_device = 0;
  const auto read_each = [&] {
    each = 0;
    for (int i = 0; i < reads; ++i) each += Item(x * (i % 10));
  };
  const auto read_at_end = [&] {
    Tensor y;
    for (int i = 0; i < reads; ++i) y = x * (i % 10);
    last = Item(y);
  };
  const auto sum_on_device = [&] {
    Tensor sum = Zeros({}, device);
    for (int i = 0; i < reads; ++i) sum += x * (i % 10);
    on_device = Item(sum);
  };
  const std::vector<Timing> t = cell.TimeInterleaved(
      {{"Synchronize", {device}, product},
       {"print", {device}, product, [&] { std::ostringstream() << s; }},
       {"Item", {device}, product, [&] { Item(s); }},
       {"ToVector", {device}, product, [&] { ToVector<float>(s); }},
       {"a branch", {device}, product, [&] { sign = Item(s) > 0 ? 1 : -1; }},
       {"a read for each", {device}, read_each},
       {"one read at the end", {device}, read_at_end},
       {"a sum on the device", {device}, sum_on_device}});
  cell.Check(sign == 1, "s is positive");
  cell.CheckClose("sums and last", std::vector<double>{each, on_device, last},
                  std::vector<double>{4.5 * reads, 4.5 * reads, 9}, 0);
  for (const int i : {1, 2, 3, 4}) {
    cell.Claim(t[i].wait.label + " waits for a @ a.",
               Above(RatioPerRepeat("", t[i].wait, t[0].completion), 0.5));
  }
  for (const int i : {6, 7}) {
    const Figure& less = t[i].completion;
    cell.Report(RatioPerRepeat("each / " + less.label, t[5].completion, less));
  }
  cell.Claim("Frequent small reads destroy performance.",
             Less(t[6].completion, t[5].completion, kClearly));
}
// %%

constexpr CellText kT1T2T3 = {
    .id = "d2l/t1-t2-t3",
    .title = "Three costs",
    .context =
        "Three costs: t1, the front end asks; t2, the back end computes; t3, "
        "the front end hears of it. They are fitted from requests to a stream "
        "that is held up, from what it then takes to work them off, and from "
        "operations that are waited for one by one, less t1 and t2. What N "
        "operations should cost is computed from them, and measured beside it.",
    .python = R"py(
with d2l.Benchmark('synchronized each time'):
    for _ in range(10000):
        y = x + 1
        y.wait_to_read()

with d2l.Benchmark('synchronized once'):
    for _ in range(10000):
        y = x + 1
    npx.waitall()
)py",
    .course_printed =
        "synchronized each time: 3.16 sec\nsynchronized once: 0.93 sec\n"
        "(a reader's machine)",
};

// %% d2l/t1-t2-t3
void T1T2T3(Cell& cell) {
  const Device device = TryGpu();
  const int n = cell.BySize(2000, 10000, 10000);
  const int held = std::min(2 * n / 5, StreamStall::Room(device));
  Stream& stream = NewStream(device, StreamOptions().max_queued_operations);
  const StreamGuard guard(stream);
  Tensor x = Ones({1, 2}, device), y;
  const auto ask = [&](int operations) {
    for (int i = 0; i < operations; ++i) y = x + 1;
  };
  const auto run = [&](int times, int operations) {
    for (int i = 0; i < times; ++i) {
      ask(operations);
      Synchronize(device);
    }
  };

  std::vector<Repeat> repeats;
  // With launch blocking nothing is held up, and one fit decides nothing.
  for (int i = 0; i < (LaunchBlocking() ? 1 : 21); ++i) {
    const double alone = Seconds([&] { run(500, 1); }) / 500;
    StreamStall stall(stream);
    const double t1 = Seconds([&] { ask(held); }) / held;
    stall.Release();
    const double t2 = Seconds([&] { Synchronize(device); }) / held;
    const double t3 = alone - t1 - t2;
    repeats.push_back({{"t1", t1},
                       {"t2", t2},
                       {"t3", t3},
                       {"N (t1 + t2 + t3)", n * (t1 + t2 + t3)},
                       {"t1 + N t2 + t3", t1 + n * t2 + t3},
                       {"N max(t1, t2) + t3", n * std::max(t1, t2) + t3},
                       {"each", Seconds([&] { run(n, 1); })},
                       {"once", Seconds([&] { run(1, n); })}});
  }
  cell.CheckClose("y", ToVector<float>(y), {2, 2}, 0);
  auto f = ReportAll(cell, device, repeats);
  cell.Claim("Waiting once is cheaper.", Less(f["once"], f["each"], kClearly));
  cell.Claim("Each time: the book's formula predicts the cost.",
             Predicts(f["N (t1 + t2 + t3)"], f["each"]));
  cell.Claim("Once: the book's formula predicts the cost.",
             Predicts(f["t1 + N t2 + t3"], f["once"]), Why(f["t1"], f["t2"]));
  cell.Claim("Once: N times the larger of t1 and t2 predicts it.",
             Predicts(f["N max(t1, t2) + t3"], f["once"]));
}
// %%

[[maybe_unused]] const bool registered = RegisterLesson(
    {2,
     "async_computation",
     "Asynchronous computation",
     "Dive into Deep Learning, section 13.2\n"
     "https://d2l.ai/chapter_computational-performance/async-computation.html",
     1,
     {{kIn2, In2},
      {kIn4, In4},
      {kIn5, In5},
      {kLaunchBlocking, ErrorsWithLaunchBlocking},
      {kQueueMemory, QueueMemory},
      {kBarriers, Barriers},
      {kBlockers, Blockers},
      {kT1T2T3, T1T2T3}}});

}  // namespace
}  // namespace d2l
