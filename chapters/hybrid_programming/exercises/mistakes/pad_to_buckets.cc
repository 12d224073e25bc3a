#include <cstdint>

#include "common/exercise/exercise.h"
#include "common/nn/hybrid.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

Tensor Padded(const Tensor& x, std::int64_t rows) {
  return Cat({x, Zeros({rows - x.shape()[0], x.shape()[1]}, x.device())});
}

namespace as_it_comes {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) { return net(x); }
}  // namespace as_it_comes

namespace always_64 {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) {
  return Slice(net(Padded(x, 64)), 0, 0, x.shape()[0]);
}
}  // namespace always_64

namespace not_cut_off {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) {
  std::int64_t rows = 1;
  while (rows < x.shape()[0]) rows *= 2;
  return net(Padded(x, rows));
}
}  // namespace not_cut_off

D2L_MISTAKE("pad_to_buckets", as_it_comes, CallPadded, "Each number of rows");
D2L_MISTAKE("pad_to_buckets", always_64, CallPadded,
            "A call with few rows computes many");
D2L_MISTAKE("pad_to_buckets", not_cut_off, CallPadded, "Cut off");

}  // namespace
}  // namespace d2l
