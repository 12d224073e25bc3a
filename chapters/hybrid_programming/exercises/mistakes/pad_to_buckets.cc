#include <cstdint>
#include <map>
#include <vector>

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

namespace not_compiled {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) { return net.module()(x); }
}  // namespace not_compiled

namespace row_by_row {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) {
  std::vector<Tensor> rows;
  for (const Tensor& row : Split(x, 1)) rows.push_back(net(row));
  return Cat(rows);
}
}  // namespace row_by_row

namespace only_grows {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) {
  static std::int64_t rows = 1;
  while (rows < x.shape()[0]) rows *= 2;
  return Slice(net(Padded(x, rows)), 0, 0, x.shape()[0]);
}
}  // namespace only_grows

namespace zeros_in_front {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) {
  std::int64_t rows = 1;
  while (rows < x.shape()[0]) rows *= 2;
  const Tensor zeros = Zeros({rows - x.shape()[0], x.shape()[1]}, x.device());
  return Slice(net(Cat({zeros, x})), 0, 0, x.shape()[0]);
}
}  // namespace zeros_in_front

namespace kept_from_the_first_call {
Tensor CallPadded(nn::Hybrid& net, const Tensor& x) {
  static auto& kept = *new std::map<std::int64_t, Tensor>;
  std::int64_t rows = 1;
  while (rows < x.shape()[0]) rows *= 2;
  Tensor& padded = kept[x.shape()[0]];
  if (!padded.defined()) padded = Padded(x, rows);
  return Slice(net(padded), 0, 0, x.shape()[0]);
}
}  // namespace kept_from_the_first_call

D2L_MISTAKE("pad_to_buckets", as_it_comes, CallPadded,
            "Each new number of rows");
D2L_MISTAKE("pad_to_buckets", always_64, CallPadded,
            "A call with few rows computes many");
D2L_MISTAKE("pad_to_buckets", not_cut_off, CallPadded, "Cut off");
D2L_MISTAKE("pad_to_buckets", not_compiled, CallPadded,
            "no call of the compiled net");
D2L_MISTAKE("pad_to_buckets", row_by_row, CallPadded, "calls of the net");
D2L_MISTAKE("pad_to_buckets", only_grows, CallPadded,
            "keep nothing from call to call");
D2L_MISTAKE("pad_to_buckets", zeros_in_front, CallPadded,
            "Which rows of the result belong to x?");
D2L_MISTAKE("pad_to_buckets", kept_from_the_first_call, CallPadded,
            "The results are those of an earlier x");

}  // namespace
}  // namespace d2l
