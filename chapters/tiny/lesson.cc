// A chapter of one cell, to be copied: ../README.md. It is no part of the
// course. A sum is enqueued, then made; lesson.md has the text.

#include <cstdint>
#include <vector>

#include "common/d2l.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::tiny {
namespace {

// %% tiny/add
Tensor PlusOne(const Tensor& x) { return x + 1; }
// %% tiny/add, measured
void Add(Cell& cell) {
  const std::int64_t n = cell.BySize(100'000, 1'000'000, 100'000'000);
  const Device device = TryGpu();
  const Tensor x = Ones({n}, device);
  Tensor y;
  const Timings t =
      cell.TimeInterleaved({{"x + 1", {device}, [&] { y = PlusOne(x); }}});
  cell.PrintTimes(t);
  cell.CheckClose("y", ToVector<float>(y), std::vector<float>(n, 2), 0);
  const Timing& sum = t["x + 1"];
  cell.Claim("The sum takes longer than the call that enqueues it: {}.",
             Less(sum.enqueue, sum.completion, 1.3),
             Say("The call takes %s, all of it %s.",
                 FormatMedian(sum.enqueue.value, "s"),
                 FormatMedian(sum.completion.value, "s")));
}
// %%
D2L_CELL("tiny/add", Add);

[[maybe_unused]] const bool benchmark =
    BenchmarkWork("BM_tiny_add_PlusOne", /*items=*/1, [](Device device) {
      return [x = Ones({1'000'000}, device)] { PlusOne(x); };
    });

}  // namespace
}  // namespace d2l::tiny
