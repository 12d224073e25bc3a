#include "chapters/auto_parallelism/programs.h"

#include <cstddef>
#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "common/lesson/cell/cell.h"

namespace d2l::auto_parallelism {
namespace {

// %% 000/In3
// Prints how long it lived.
class Benchmark {
 public:
  explicit Benchmark(std::string prefix) : prefix_(std::move(prefix)) {}
  ~Benchmark() {
    std::cout << Say("%s time: %.4f sec\n", Translated(prefix_),
                     timer_.Seconds());
  }

 private:
  const std::string prefix_;
  const Timer timer_;
};
// %%

}  // namespace

// %% 000/In3, 000/In6, 000/In7, d2l/size-sweep
Tensor Run(const Tensor& x, int products) {
  Tensor y;
  for (int i = 0; i < products; ++i) y = MatMul(x, x);
  return y;
}
// %%

// %% 000/In3
void TimeProducts(const Tensor& x) {
  Synchronize(x.device());
  {
    const Benchmark benchmark("1000 products, not waited for,");
    Run(x, 1000);
  }
  Synchronize(x.device());
  {
    const Benchmark benchmark("1000 products, waited for,");
    Run(x, 1000);
    Synchronize(x.device());
  }
}
// %%

// %% 000/In6
// A clock that is read now shows the time of `working` only if it is done.
std::int64_t LeftAfterWaitingFor(Device waited_for, Device working) {
  Synchronize(waited_for);
  return CurrentStream(working).QueuedOperations();
}
// %%

// %% 000/In7
// The notebook's order: GPU2 has no work until the calls for GPU1 return, and
// these wait for room in its queue.
double RunInOrder(const Tensor& x1, const Tensor& x2, int products) {
  const Timer timer;
  Run(x1, products);
  const double calls = timer.Seconds();
  Run(x2, products);
  return calls;
}
// %%

// %% 000/In7, d2l/size-sweep
std::pair<Tensor, Tensor> RunInTurn(const Tensor& x1, const Tensor& x2,
                                    int products) {
  Tensor y1, y2;
  for (int i = 0; i < products; ++i) {
    y1 = MatMul(x1, x1);
    y2 = MatMul(x2, x2);
  }
  return {y1, y2};
}
// %%

// %% d2l/mm-4000
void RunAndKeep(const Tensor& x, int products, std::vector<Tensor>* y) {
  y->clear();  // so that their memory can be used again
  for (int i = 0; i < products; ++i) y->push_back(MatMul(x, x));
}
// %%

ThinProducts::ThinProducts(Device device, int steps, int m, int k)
    : a(Rand({steps, m, k}, device)),
      b(Rand({k, m}, device)),
      y(steps),
      pinned_memory(
          PinnedMemory(device).AllocatePinned(sizeof(float) * steps * m * m)),
      pageable_memory(std::size_t{1} * steps * m * m),
      pinned(static_cast<float*>(pinned_memory->data())),
      pageable(pageable_memory.data()) {}

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

// %% 002/two-device-graph
// An Mlp has the tensors x, y, w1 and w2; its output is relu(x @ w1) @ w2.
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
// %%

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
// %%

}  // namespace d2l::auto_parallelism
