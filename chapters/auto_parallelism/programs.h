// The programs of this chapter's cells, for its lesson and its benchmarks. They
// return when all is enqueued, unless they say that they wait.
//
// Used by one thread, like the streams and the tensors that they get.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_PROGRAMS_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/d2l.h"
#include "common/lesson/cell/cell.h"

namespace d2l::auto_parallelism {

// Prints how long 1000 products take, without and with a wait for them.
void TimeProducts(const Tensor& x);

// Computes x @ x, `products` times.
Tensor Run(const Tensor& x, int products);
// On two devices: all products for the first, then all for the second. Returns
// the seconds that the calls for the first took.
double RunInOrder(const Tensor& x1, const Tensor& x2, int products);
// One product for each device in turn.
std::pair<Tensor, Tensor> RunInTurn(const Tensor& x1, const Tensor& x2,
                                    int products);
// Keeps all results in *y.
void RunAndKeep(const Tensor& x, int products, std::vector<Tensor>* y);
// Computes the products on the streams in turn.
Tensor RunOn(const std::vector<Stream*>& streams, const Tensor& x,
             int products);

// Waits for one device. Returns how many operations another has yet to do.
std::int64_t LeftAfterWaitingFor(Device waited_for, Device working);

// Products y[i] = a[i] @ b, and the host's memory for all of them.
struct ThinProducts {
  // Products of m x k and k x m matrices.
  ThinProducts(Device device, int steps, int m, int k);

  const Tensor a, b;
  std::vector<Tensor> y;
  const StorageRef pinned_memory;
  std::vector<float> pageable_memory;
  float* const pinned;
  float* const pageable;
};
// Copies y[i] to its place at `host`.
void CopyToHost(const ThinProducts& p, std::size_t i, Stream& stream,
                float* host);
// Enqueues all products on the current stream, and their copies on `copies`.
void MultiplyAndCopy(ThinProducts& p, Stream& copies, float* host);

// A batch and its targets, and the weights of two layers.
struct Mlp {
  Tensor x, y, w1, w2;
};
// The second weight's gradient, of half a batch per device; on x's device.
Tensor Gradient(const Mlp& mlp, const std::vector<Device>& devices);

// A cell: random_dag.cc
void RandomDag(Cell& cell);

}  // namespace d2l::auto_parallelism

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_PROGRAMS_H_
