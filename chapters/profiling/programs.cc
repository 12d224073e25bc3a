#include "chapters/profiling/programs.h"

#include <functional>
#include <vector>

#include "chapters/profiling/latencies/sampling.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/host_library.h"

namespace d2l::profiling {

// %% 003/c2, 003/c5, 003/c12, 003/c16
void Profiled(Profiler& profiler, const std::function<void()>& work) {
  const ProfileScope scope(profiler);
  work();
}
// %%

// %% 003/c1, 003/c9, 003/c16
Tensor Products(const Tensor& x, int count) {
  Tensor y;
  for (int i = 0; i < count; ++i) y = MatMul(x, T(x));
  return y;
}
// %%

// %% 003/c2
Tensor HundredTimes(const Tensor& x) {
  Tensor y, z, w;
  for (int i = 0; i < 100; ++i) {
    y = MatMul(x, T(x));
    z = y * y;
    w = z + x;
  }
  Synchronize(x.device());
  return w;
}
// %%

std::vector<float> Transposed(const std::vector<float>& x, int n) {
  std::vector<float> result(x.size());
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) result[j * n + i] = x[i * n + j];
  }
  return result;
}

std::vector<float> HostSquare(const std::vector<float>& x, int n) {
  return HostMatMul(x, Transposed(x, n), n);
}

// %% 003/c5, 003/c12
// HostMatMul: common/lesson/cell/host_library.h
std::vector<float> HostProducts(const std::vector<float>& x,
                                const std::vector<float>& x_t, int n,
                                int count) {
  std::vector<float> y;
  for (int i = 0; i < count; ++i) {
    const RecordFunction call("HostMatMul");
    y = HostMatMul(x, x_t, n);
  }
  return y;
}
// %%

namespace {

double Flop(double n, int products) { return 2 * n * n * n * products; }

}  // namespace

bool BenchmarkProducts(const std::string& name, int n, int products) {
  return BenchmarkWork(
      name, products,
      [=](Device device) {
        return [=, x = Rand({n, n}, device)] { Products(x, products); };
      },
      Flop(n, products));
}

bool BenchmarkOnTheHost(const std::string& name, int n, int products) {
  return BenchmarkHost(
      name, products,
      [=] {
        return [=, x = HostRandn(std::int64_t{n} * n)] {
          KeepValue(HostProducts(x, x, n, products));
        };
      },
      Flop(n, products));
}

bool BenchmarkProfiled(const std::string& name, int operations, bool profiled,
                       const std::function<void(const Tensor& x)>& work) {
  return BenchmarkWork(name, operations,
                       [=](Device device) -> std::function<void()> {
                         const Tensor x = Rand({3, 3}, device);
                         if (!profiled) return [=] { work(x); };
                         return [=] {
                           Profiler profiler;
                           Profiled(profiler, [&] { work(x); });
                         };
                       });
}

}  // namespace d2l::profiling
