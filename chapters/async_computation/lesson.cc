// Asynchronous computation: the calls return before the work is done.

#include "common/lesson/lesson.h"

#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"
#include "common/lesson/host_library.h"
#include "common/lesson/judge.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

// Two times that differ by less may differ because the machine is noisy.
constexpr double kClearly = 1.3;

constexpr CellText kIn2 = {
    "004/In2",
    {"001/c3"},
    "Ten times: a random matrix, multiplied by itself. First with the host "
    "library, as with NumPy: each call returns when its work is done. Then "
    "with tensors on a device: each call only asks for the work.",
    R"py(
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
    "numpy: 0.2660 sec\ntorch: 0.0010 sec"};

// %% 004/In2
void In2(Cell& cell) {
  const int n = cell.BySize(200, 1000, 2000);
  const Device device = TryGpu();

  const Figure host = cell.TimeHost("host library", [&] {
    for (int i = 0; i < 10; ++i) {
      const std::vector<float> a = HostRandn(n * n);
      const std::vector<float> b = HostMatMul(a, a, n);
    }
  });

  Tensor a, b;
  const Timing tensor = cell.Time("tensor", device, [&] {
    for (int i = 0; i < 10; ++i) {
      a = Randn({n, n}, device);
      b = MatMul(a, a);
    }
  });

  // As in the course, nobody has waited when the clock is read.
  std::cout << "host:   " << FormatDuration(host.value.median) << "\n"
            << "tensor: " << FormatDuration(tensor.enqueue.value.median)
            << "\n";
  const std::vector<float> a_values = ToVector<float>(a);
  cell.CheckClose("a @ a", ToVector<float>(b),
                  HostMatMul(a_values, a_values, n), 1e-3);

  const Figure gap =
      cell.Report(Ratio("host / tensor, enqueue", host, tensor.enqueue));
  const Figure hardware =
      cell.Report(Ratio("host / tensor, completion", host, tensor.completion));
  cell.Claim(
      "The gap is larger than the hardware explains: the front end returned "
      "early.",
      Less(hardware, gap, kClearly));
}
// %%

constexpr CellText kIn4 = {
    "004/In4",
    {},
    "The same ten products, but before the clock is read, Synchronize waits "
    "until the device has done them all.",
    R"py(
with Benchmark():
    for _ in range(10):
        a = torch.randn(size=(1000, 1000), device=device)
        b = torch.mm(a, a)
    torch.cuda.synchronize(device)
)py",
    "Done: 0.0020 sec"};

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
  const Timing asked = cell.Time("not waited for", device, ten_products);
  const Timing done = cell.Time("synchronized", device, [&] {
    ten_products();
    Synchronize(device);
  });

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
    "004/In5",
    {},
    "Three statements and a print. Alone they take too little time to tell "
    "asking from doing; behind a matrix product, which keeps the device busy, "
    "one sees who waits for whom.",
    R"py(
x = torch.ones((1, 2), device=device)
y = torch.ones((1, 2), device=device)
z = x * y + 2
z
)py",
    "tensor([[3., 3.]], device='cuda:0')"};

// %% 004/In5
void In5(Cell& cell) {
  const int n = cell.BySize(400, 1000, 2000);
  const Device device = TryGpu();
  const Tensor a = Randn({n, n}, device);

  Tensor z;
  const auto three_statements = [&] {
    const Tensor x = Ones({1, 2}, device);
    const Tensor y = Ones({1, 2}, device);
    z = x * y + 2;
  };
  const auto product_first = [&] {
    const Tensor b = MatMul(a, a);
    three_statements();
  };
  const auto print = [&] { std::ostringstream() << z; };
  cell.Time("the three alone", device, three_statements, print);
  const Timing behind = cell.Time("behind a @ a", device, product_first, print);

  std::cout << z << "\n";
  cell.CheckClose("z", ToVector<float>(z), {3, 3}, 0);

  // On two streams products may run side by side, unless one needs the other.
  Stream& other = NewStream(device);
  const Timing one =
      cell.Time("b = a @ a", device, [&] { const Tensor b = MatMul(a, a); });
  const Timing apart = cell.Time("b = a @ a, c = a @ a", device, [&] {
    const Tensor b = MatMul(a, a);
    const StreamGuard guard(other);
    const Tensor c = MatMul(a, a);
  });
  const Timing chain = cell.Time("b = a @ a, c = b @ a", device, [&] {
    const Tensor b = MatMul(a, a);
    other.Wait(CurrentStream(device).Record());
    const StreamGuard guard(other);
    const Tensor c = MatMul(b, a);
  });
  cell.Claim("The three statements only enqueue: they return before the work.",
             Less(behind.enqueue, behind.completion, kClearly));
  cell.Claim("Printing waits: for all that was asked for before.",
             Less(Scaled("half of a @ a", one.completion, 0.5), behind.wait));
  cell.Claim(
      "Operations that depend on each other cannot run in parallel.",
      Less(Scaled("1.5 products", one.completion, 1.5), chain.completion));
}
// %%

[[maybe_unused]] const bool registered = RegisterLesson(
    {"async_computation",
     "Asynchronous computation",
     "Dive into Deep Learning, section 13.2\n"
     "https://d2l.ai/chapter_computational-performance/async-computation.html",
     1,
     {{kIn2, In2}, {kIn4, In4}, {kIn5, In5}}});

}  // namespace
}  // namespace d2l
