#include "chapters/profiling/programs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

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

// %% 003/c18, 003/c20
std::pair<Tensor, Tensor> RandAndMultiply(int count, Device device) {
  Tensor x, y;
  for (int i = 0; i < count; ++i) {
    x = Rand({10, 10}, device);
    y = x * x;
  }
  return {x, y};
}
// %%

// %% 003/c20
Tensor FillOnTheDevice(int times, Tensor& vec) {
  Tensor y;
  for (int i = 0; i < times; ++i) {
    for (int j = 0; j < vec.size(0); ++j) vec[j] = Rand({10, 10}, vec.device());
    y = vec * vec;
  }
  return y;
}

// As the course does. Its product is left out, which only makes this faster.
void FillOnTheHost(int times, Device device, std::vector<float>* vec) {
  for (int i = 0; i < times; ++i) {
    for (std::size_t at = 0; at < vec->size(); at += 100) {
      const std::vector<float> row = ToVector<float>(Rand({10, 10}, device));
      std::copy(row.begin(), row.end(), vec->begin() + at);
    }
  }
}
// %%

Hundreds::Hundreds(int count, Device device)
    : on_device(Zeros({count, 10, 10, 100}, device)),
      on_host(std::size_t{10000} * count) {
  const auto hundred = [&] {
    std::vector<Tensor> tensors;
    for (int j = 0; j < 100; ++j) tensors.push_back(Rand({10, 10}, device));
    return tensors;
  };
  a = hundred();
  for (int i = 0; i < count; ++i) b.push_back(hundred());
}

void Hundreds::CopyToHost(int i, const Tensor& product) {
  const std::vector<float> values = ToVector<float>(product);
  std::copy(values.begin(), values.end(), on_host.begin() + i * 10000);
}

void Hundreds::CopyToHost(int i, int j, const Tensor& product) {
  const std::vector<float> values = ToVector<float>(product);
  for (std::size_t k = 0; k < values.size(); ++k) {
    on_host[i * 10000 + k * 100 + j] = values[k];
  }
}

// %% 003/c21
// Hundreds has the tensors a[j] and b[i][j], and room for their products.
void Stacked(Hundreds& h, bool to_host, bool anew) {
  Tensor a = DStack(h.a);
  for (int i = 0; i < h.on_device.size(0); ++i) {
    if (anew) a = DStack(h.a);
    const Tensor product = a * DStack(h.b[i]);
    if (to_host) {
      h.CopyToHost(i, product);
    } else {
      h.on_device[i] = product;
    }
  }
}

void DoubleLoop(Hundreds& h, bool to_host) {
  for (int i = 0; i < h.on_device.size(0); ++i) {
    for (int j = 0; j < 100; ++j) {
      if (to_host) {
        h.CopyToHost(i, j, h.a[j] * h.b[i][j]);
      } else {
        h.on_device[{i, kAll, kAll, j}] = h.a[j] * h.b[i][j];
      }
    }
  }
}
// %%

// %% 003/summary
Tensor Doubled(const Tensor& all) { return all * 2; }

Tensor DoubledByRow(const Tensor& all) {
  Tensor y;
  for (int i = 0; i < all.size(0); ++i) y = all[i] * 2;
  return y;
}

Tensor SumOfRows(const Tensor& all) { return Sum(all, {0}); }

Tensor SumOfRows(const std::vector<Tensor>& list) {
  return Sum(Stack(list), {0});
}
// %%

}  // namespace d2l::profiling
