#include "common/lesson/cell/trace_program.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <stdexcept>
#include <thread>

#include "common/device/device.h"
#include "common/device/failure.h"
#include "common/device/stream_stall.h"
#include "common/graph/program_graph.h"
#include "common/ops/ops.h"
#include "common/profiler/profile.h"
#include "common/profiler/profiler.h"

namespace d2l {
namespace {

const Device kCpu(DeviceType::kCpu, 0);
const Device kSecond(DeviceType::kCpu, 1);

TEST(TraceProgram, TheGraphHasTheProfilesTimes) {
  const Tensor x = Ones({40, 40}, kCpu);
  const TracedProgram run = TraceProgram([&] {
    const Tensor product = MatMul(x, T(x));
    Relu(To(product, kSecond));
    Synchronize(kSecond);
  });
  std::size_t launched = 0;
  for (const GraphOp& op : run.graph.ops()) {
    if (op.stream < 0) continue;
    ++launched;
    EXPECT_GE(op.begin, run.profile.begin);
    EXPECT_GE(op.end, op.begin);
    EXPECT_GT(op.end, 0);
  }
  EXPECT_EQ(launched, run.graph.ops().size() - 1);  // all but T
  EXPECT_EQ(run.graph.streams().size(), 3u);        // one of them for the copy
  EXPECT_GT(run.graph.critical_path_seconds(), 0);
  bool waited = false;
  for (const ProfiledSpan& span : run.profile.spans) {
    waited |= span.kind == ProfiledKind::kWait;
  }
  EXPECT_TRUE(waited);
}

TEST(TraceProgram, OtherThreadsAreNoPartOfTheGraph) {
  const Tensor x = Ones({2}, kCpu);
  const TracedProgram run = TraceProgram([&] {
    std::thread other([&] { x * 2; });
    other.join();
    x + 1;
  });
  ASSERT_EQ(run.graph.ops().size(), 1u);
  EXPECT_STREQ(run.graph.ops()[0].primitive->name(), "add");
  EXPECT_GT(run.graph.ops()[0].end, 0);
}

TEST(TraceProgram, FailedAndSkippedOperationsHaveNoTimes) {
  const Tensor x = Ones({2}, kCpu);
  Synchronize(kCpu);
  // The failure comes after all requests: no request is refused.
  StreamStall stall(DefaultStream(kCpu));
  const TracedProgram run = TraceProgram([&] {
    DefaultStream(kCpu).HostCallback([] { throw std::runtime_error("no"); });
    x + 1;
    stall.Release();
  });
  ASSERT_EQ(run.graph.ops().size(), 1u);
  EXPECT_EQ(run.graph.ops()[0].end, 0);
  EXPECT_EQ(run.graph.ops()[0].seconds(), 0);
  EXPECT_THROW(Synchronize(kCpu), AsyncError);
}

TEST(TraceProgram, MayBePartOfAProfiledProgram) {
  const Tensor x = Ones({2}, kCpu);
  Profiler profiler;
  profiler.Start();
  const TracedProgram run = TraceProgram([&] { x + 1; });
  x * 2;
  profiler.Stop();
  EXPECT_EQ(run.graph.ops().size(), 1u);
  EXPECT_GT(run.graph.ops()[0].end, 0);
  EXPECT_EQ(profiler.profile().spans.size(), 2u);
}

}  // namespace
}  // namespace d2l
