// Through streams on models of a GPU and of CUPTI.

#include "common/device/cuda/cupti_timer.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "common/base/timer.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/cuda_stream.h"
#include "common/device/cuda/cupti_api.h"
#include "common/device/cuda/fake_cuda.h"
#include "common/device/cuda/fake_cupti.h"
#include "common/device/device.h"
#include "common/device/device_times.h"
#include "common/device/op_label.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kMilli = 1'000'000;
// The clocks are compared far more exactly, unless the machine is busy.
constexpr std::int64_t kError = CuptiTimer::kSlackNanos / 2;
constexpr std::size_t kKinds = 7;

constexpr char kNothingReported[] = "CUPTI reports no kernel, copy or memset";
constexpr char kCutOff[] = "CUPTI was asked before it had seen all of the work";

// In nanoseconds from the launch.
struct Span {
  std::int64_t begin;
  std::int64_t end;
};

struct Launched {
  EnqueuedOp op;
  std::int64_t time;  // of the launch
  std::unique_ptr<OpStamps> stamps;
};

void SpinUntil(std::int64_t nanos) {
  while (NowNanos() < nanos) {
  }
}

class CuptiTimerTest : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_THAT(cuda_.violations(), IsEmpty());
    EXPECT_EQ(cupti_.pushed(), 0);
  }

  // An operation with these pieces of work, each of a call of its own. It is
  // done, as far as the stream knows, when they are.
  Launched Launch(CudaStream& stream, const std::vector<Span>& works,
                  std::int64_t wish = OpStamps::kOptional) {
    Launched launched{{&stream, 0}, 0, std::make_unique<OpStamps>()};
    launched.stamps->begin = wish;
    OpLabel label("op");
    label.set_stamps(launched.stamps.get());
    launched.op.number = stream.Launch(label, [&](const CudaLaunch& to) {
      launched.time = NowNanos();
      for (const Span& work : works) {
        const std::uint32_t call = cupti_.Call();
        cuda_.LaunchKernel(to.stream, [this, call, work, at = launched.time] {
          SpinUntil(at + work.end);
          cupti_.Work(call, at + work.begin, at + work.end);
        });
      }
    });
    return launched;
  }

  static void ExpectTime(const DeviceTimes& times, const Launched& launched,
                         std::int64_t begin, std::int64_t end) {
    const FoundTime time = times.Find(launched.op);
    EXPECT_EQ(time.why_not, "");
    EXPECT_NEAR(time.begin, launched.time + begin, kError);
    EXPECT_NEAR(time.end, launched.time + end, kError);
  }

  static void CollectAll(DeviceTimes& times,
                         const std::vector<Launched>& launched) {
    std::vector<EnqueuedOp> ops;
    for (const Launched& one : launched) {
      const_cast<Stream*>(one.op.stream)->WaitFor(one.op.number);
      ops.push_back(one.op);
    }
    times.Collect(ops);
  }

  FakeCuda cuda_;
  FakeCupti cupti_;
  CuptiTimer timer_{cupti_};
  CudaGpu gpu_{cuda_, 0, "sm_90", 4, {900}, &timer_};
  CudaStream stream_{gpu_, Device(DeviceType::kCuda, 0), 0, StreamOptions()};
  CudaStream other_{gpu_, Device(DeviceType::kCuda, 0), 1, StreamOptions()};
};

TEST_F(CuptiTimerTest, FromTheFirstBeginToTheLastEnd) {
  for (const std::size_t records : {1, 3, 1000}) {
    cupti_.SetBufferSize(records);
    const std::shared_ptr<DeviceTimes> times = timer_.Begin();
    ASSERT_TRUE(times->available());
    EXPECT_THAT(times->Notes(), IsEmpty());
    const int forced = cupti_.forced_flushes();
    std::vector<Launched> ops;
    ops.push_back(Launch(stream_, {{kMilli, 2 * kMilli}}));
    ops.push_back(Launch(other_, {{4 * kMilli, 5 * kMilli},
                                  {3 * kMilli, 6 * kMilli},
                                  {2 * kMilli, 3 * kMilli}}));
    ops.push_back(
        Launch(stream_, {{2 * kMilli, 3 * kMilli}, {3 * kMilli, 3 * kMilli}}));
    times->End();
    CollectAll(*times, ops);
    ExpectTime(*times, ops[0], kMilli, 2 * kMilli);
    ExpectTime(*times, ops[1], 2 * kMilli, 6 * kMilli);
    ExpectTime(*times, ops[2], 2 * kMilli, 3 * kMilli);
    EXPECT_EQ(cupti_.forced_flushes(), forced);
    EXPECT_THAT(times->Notes(), IsEmpty());
    // Once more, and of nothing.
    times->Collect({});
    ExpectTime(*times, ops[0], kMilli, 2 * kMilli);
  }
}

TEST_F(CuptiTimerTest, WhatReportsNothingHasNoTime) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  std::vector<Launched> ops;
  ops.push_back(Launch(stream_, {}));
  ops.push_back(Launch(stream_, {{0, kMilli}}));
  CollectAll(*times, ops);
  EXPECT_EQ(times->Find(ops[0].op).why_not, kNothingReported);
  EXPECT_EQ(times->Find(ops[0].op).end, 0);
  ExpectTime(*times, ops[1], 0, kMilli);
  // Operations that it has nothing to do with.
  const FoundTime unknown = times->Find({&other_, ops[0].op.number});
  EXPECT_EQ(unknown.why_not, "");
  EXPECT_EQ(unknown.end, 0);
}

// Stamps belong to whoever asked as soon as the launch has returned.
TEST_F(CuptiTimerTest, StampsAreGivenBackAtOnceAndNeverWrittenLater) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  std::atomic<bool> go{false};
  std::uint64_t before =
      stream_.Launch(OpLabel("gate"), [&](const CudaLaunch& to) {
        cuda_.LaunchKernel(to.stream, [&go] {
          while (!go) {
          }
        });
      });
  Launched op = Launch(stream_, {{0, kMilli}});
  EXPECT_EQ(op.stamps->end, OpStamps::kElsewhere);
  EXPECT_EQ(op.op.number, before + 1);
  op.stamps.reset();  // ASan sees it if they are written
  go = true;
  stream_.WaitFor(op.op.number);
  times->Collect({&op.op, 1});
  ExpectTime(*times, op, 0, kMilli);
}

TEST_F(CuptiTimerTest, EventsServeThoseWhoNeedTheirStamps) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  const Launched needed = Launch(stream_, {{0, kMilli}}, /*wish=*/0);
  // Two listeners: one of them can do without, and gets them too.
  OpStamps stamps[2];
  stamps[0].begin = OpStamps::kOptional;
  stamps[0].next = &stamps[1];
  OpLabel label("op");
  label.set_stamps(stamps);
  const EnqueuedOp both = {&stream_,
                           stream_.Launch(label, [&](const CudaLaunch& to) {
                             cuda_.LaunchKernel(to.stream, [] {});
                           })};
  stream_.WaitFor(both.number);
  times->Collect({&needed.op, 1});
  times->Collect({&both, 1});
  EXPECT_GT(needed.stamps->end, 0);
  EXPECT_GT(stamps[0].end, 0);
  EXPECT_GT(stamps[0].begin, 0);
  EXPECT_GT(stamps[1].end, 0);
  EXPECT_EQ(times->Find(needed.op).end, 0);
  EXPECT_EQ(times->Find(both).end, 0);
}

TEST_F(CuptiTimerTest, EventsServeWhenNoTimesAreTaken) {
  const auto expect_events = [this](const char* when) {
    SCOPED_TRACE(when);
    const Launched op = Launch(stream_, {{0, kMilli / 10}});
    stream_.WaitFor(op.op.number);
    EXPECT_GT(op.stamps->begin, 0);
    EXPECT_GT(op.stamps->end, 0);
  };
  expect_events("never begun");
  std::shared_ptr<DeviceTimes> times = timer_.Begin();
  cupti_.FailPush(999);
  expect_events("the push fails");
  cupti_.FailPush(0);
  times->End();
  expect_events("ended");
  times = timer_.Begin();
  times.reset();
  expect_events("nobody is interested any more");
  cupti_.SetWhyNotLoaded("it is not there");
  times = timer_.Begin();
  expect_events("refused");
}

// ---- Refusals.

TEST_F(CuptiTimerTest, ARefusalSaysWhatToDo) {
  cupti_.FailEnable(CuptiKind::kMemsets, kCuptiInsufficientPrivileges);
  std::shared_ptr<DeviceTimes> times = timer_.Begin();
  EXPECT_FALSE(times->available());
  EXPECT_THAT(
      times->Notes(),
      ElementsAre(AllOf(
          HasSubstr("No kernel times: CUPTI was refused (permission, "
                    "CUPTI_ERROR_35). CUDA events take the times instead"),
          HasSubstr("as root"), HasSubstr("--cap-add=SYS_ADMIN"),
          HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"))));
  EXPECT_THAT(cupti_.enabled(), IsEmpty());
  times->Collect({});
  times->End();
  // It may be given later.
  cupti_.FailEnable(CuptiKind::kMemsets, 0);
  times = timer_.Begin();
  EXPECT_TRUE(times->available());
  EXPECT_EQ(cupti_.enabled().size(), kKinds);
}

TEST_F(CuptiTimerTest, EveryRefusalIsTold) {
  const auto note = [this] {
    const std::shared_ptr<DeviceTimes> times = timer_.Begin();
    EXPECT_FALSE(times->available());
    EXPECT_THAT(cupti_.enabled(), IsEmpty());
    EXPECT_FALSE(cupti_.subscribed());
    return times->Notes().at(0);
  };
  cupti_.FailSubscribe(kCuptiMultipleSubscribers);
  EXPECT_THAT(note(), HasSubstr("No kernel times: another tool uses CUPTI in "
                                "this program (CUPTI_ERROR_39). CUDA events"));
  cupti_.FailSubscribe(0);
  cupti_.FailEnable(CuptiKind::kPushedIds,
                    kCuptiVirtualizedInsufficientPrivileges);
  EXPECT_THAT(note(), HasSubstr("refused (permission, CUPTI_ERROR_40)"));
  cupti_.FailEnable(CuptiKind::kPushedIds, 15);
  EXPECT_THAT(note(), HasSubstr("No kernel times: CUPTI does not begin "
                                "(CUPTI_ERROR_15). CUDA events"));
  cupti_.FailEnable(CuptiKind::kPushedIds, 0);
  cupti_.FailNow(7);
  EXPECT_THAT(note(), HasSubstr("(CUPTI_ERROR_7)"));
  cupti_.FailNow(0);
  cupti_.SetWhyNotLoaded("CUPTI is not here");
  EXPECT_THAT(note(),
              HasSubstr("No kernel times: CUPTI is not here. CUDA events"));
}

// ---- What CUPTI keeps back, or gets wrong.

TEST_F(CuptiTimerTest, WhatStillRunsIsCutOffOnlyIfNeedBe) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  int running = 0;
  const auto launch_running = [&] {
    Launched launched = Launch(other_, {});
    OpLabel label("long");
    OpStamps stamps;
    stamps.begin = OpStamps::kOptional;
    label.set_stamps(&stamps);
    launched.op.number = other_.Launch(label, [&](const CudaLaunch&) {
      launched.time = NowNanos();
      running = cupti_.StartWork(cupti_.Call(), launched.time);
    });
    return launched;
  };
  // Each in buffers of its own: nothing is forced.
  cupti_.SetBufferSize(1);
  const Launched apart = launch_running();
  std::vector<Launched> done;
  done.push_back(Launch(stream_, {{0, kMilli}}));
  CollectAll(*times, done);
  ExpectTime(*times, done[0], 0, kMilli);
  EXPECT_EQ(cupti_.forced_flushes(), 0);
  EXPECT_EQ(times->Find(apart.op).end, 0);
  SpinUntil(apart.time + kMilli);
  cupti_.EndWork(running, apart.time + kMilli);
  times->Collect({&apart.op, 1});
  ExpectTime(*times, apart, 0, kMilli);
  EXPECT_EQ(cupti_.forced_flushes(), 0);

  // In one buffer: what is asked for comes, and the other is lost.
  cupti_.SetBufferSize(1000);
  const Launched together = launch_running();
  done.clear();
  done.push_back(Launch(stream_, {{0, kMilli}}));
  CollectAll(*times, done);
  ExpectTime(*times, done[0], 0, kMilli);
  EXPECT_EQ(cupti_.forced_flushes(), 1);
  cupti_.EndWork(running, NowNanos());
  times->Collect({&together.op, 1});
  EXPECT_EQ(times->Find(together.op).why_not, kCutOff);
  EXPECT_EQ(times->Find(together.op).end, 0);
}

TEST_F(CuptiTimerTest, ImpossibleTimesAreNoTimes) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  std::vector<Launched> ops;
  ops.push_back(Launch(stream_, {{-100 * kMilli, kMilli}}));
  const auto launch_wrong = [&](std::int64_t begin, std::int64_t end) {
    Launched launched = Launch(stream_, {});
    OpStamps stamps;
    stamps.begin = OpStamps::kOptional;
    OpLabel label("op");
    label.set_stamps(&stamps);
    launched.op.number = stream_.Launch(label, [&](const CudaLaunch&) {
      cupti_.Work(cupti_.Call(), begin, end);
    });
    return launched;
  };
  const std::int64_t now = NowNanos();
  ops.push_back(launch_wrong(now, now + 3600 * 1000 * kMilli));
  ops.push_back(launch_wrong(now + kMilli, now));
  ops.push_back(Launch(stream_, {{0, kMilli}}));
  CollectAll(*times, ops);
  EXPECT_THAT(times->Find(ops[0].op).why_not, HasSubstr("before the launch"));
  EXPECT_THAT(times->Find(ops[1].op).why_not, HasSubstr("in the future"));
  EXPECT_EQ(times->Find(ops[2].op).why_not, kCutOff);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(times->Find(ops[i].op).end, 0);
  ExpectTime(*times, ops[3], 0, kMilli);
}

TEST_F(CuptiTimerTest, LostRecordsAndAMovedClockAreNoted) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  std::vector<Launched> ops;
  ops.push_back(Launch(stream_, {{0, kMilli}}));
  cupti_.Drop(2);
  CollectAll(*times, ops);
  cupti_.Drop(3);
  times->Collect({});
  EXPECT_THAT(times->Notes(),
              ElementsAre(HasSubstr("no room for 5 of its records")));
  cupti_.MoveClock(-7 * kMilli);
  times->Collect({});
  EXPECT_THAT(times->Notes(),
              ElementsAre(HasSubstr("no room for 5"),
                          HasSubstr("The system's clock was changed by ")));
  // What was lost before it began is not its business.
  EXPECT_THAT(timer_.Begin()->Notes(), IsEmpty());
}

TEST_F(CuptiTimerTest, WithoutItsClockTheLastComparisonHolds) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  std::vector<Launched> ops;
  ops.push_back(Launch(stream_, {{0, kMilli}}));
  cupti_.FailNow(999);
  CollectAll(*times, ops);
  ExpectTime(*times, ops[0], 0, kMilli);
}

// ---- Several, and the end.

TEST_F(CuptiTimerTest, EachHasTheTimesOfItsOperations) {
  std::shared_ptr<DeviceTimes> first = timer_.Begin();
  std::vector<Launched> of_first;
  of_first.push_back(Launch(stream_, {{0, kMilli}}));
  first->End();
  const Launched between = Launch(stream_, {{0, kMilli}});
  std::shared_ptr<DeviceTimes> second = timer_.Begin();
  first->End();  // does nothing any more
  std::vector<Launched> of_second;
  of_second.push_back(Launch(stream_, {{kMilli, 2 * kMilli}}));
  EXPECT_EQ(cupti_.loads(), 1);
  CollectAll(*second, of_second);
  ExpectTime(*second, of_second[0], kMilli, 2 * kMilli);
  EXPECT_EQ(second->Find(of_first[0].op).end, 0);
  EXPECT_GT(between.stamps->end, 0);
  second.reset();
  // Its records came when the other one asked.
  EXPECT_EQ(cupti_.enabled().size(), kKinds);
  CollectAll(*first, of_first);
  ExpectTime(*first, of_first[0], 0, kMilli);
  EXPECT_EQ(first->Find(of_second[0].op).end, 0);
  first.reset();
  EXPECT_THAT(cupti_.enabled(), IsEmpty());
  EXPECT_FALSE(cupti_.subscribed());
}

TEST_F(CuptiTimerTest, RecordsThatComeTooLateBelongToNobody) {
  std::shared_ptr<DeviceTimes> times = timer_.Begin();
  const Launched old = Launch(stream_, {{0, kMilli}});
  stream_.WaitFor(old.op.number);
  std::uint32_t call = 0;
  OpStamps stamps;
  stamps.begin = OpStamps::kOptional;
  OpLabel label("long");
  label.set_stamps(&stamps);
  int running = 0;
  stream_.Launch(label, [&](const CudaLaunch&) {
    call = cupti_.Call();
    running = cupti_.StartWork(call, NowNanos());
  });
  times.reset();
  cupti_.EndWork(running, NowNanos());
  times = timer_.Begin();
  std::vector<Launched> ops;
  ops.push_back(Launch(other_, {{0, kMilli}}));
  // Of a call from before, and of one that nobody has pushed an id for.
  cupti_.Work(call, NowNanos(), NowNanos());
  cupti_.Work(cupti_.Call(), NowNanos(), NowNanos());
  CollectAll(*times, ops);
  ExpectTime(*times, ops[0], 0, kMilli);
}

TEST_F(CuptiTimerTest, ALaunchThatThrowsLeavesNoId) {
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  OpStamps stamps;
  stamps.begin = OpStamps::kOptional;
  OpLabel label("bad");
  label.set_stamps(&stamps);
  EXPECT_THROW(
      stream_.Launch(label,
                     [](const CudaLaunch&) { throw std::runtime_error("no"); }),
      AsyncError);
  EXPECT_EQ(cupti_.pushed(), 0);
  EXPECT_EQ(stamps.end, OpStamps::kElsewhere);
}

TEST_F(CuptiTimerTest, ThreadsLaunchWhileOthersCollect) {
  constexpr int kOps = 200;
  const std::shared_ptr<DeviceTimes> times = timer_.Begin();
  std::vector<Launched> ops[2];
  std::atomic<bool> done{false};
  std::thread collector([&] {
    while (!done) times->Collect({});
  });
  std::thread launchers[2];
  for (int t = 0; t < 2; ++t) {
    launchers[t] = std::thread([&, t] {
      CudaStream& stream = t == 0 ? stream_ : other_;
      for (int i = 0; i < kOps; ++i) {
        ops[t].push_back(Launch(stream, {{i, i + 10}, {i + 5, i + 100}}));
      }
    });
  }
  for (std::thread& launcher : launchers) launcher.join();
  for (const std::vector<Launched>& of_thread : ops) {
    CollectAll(*times, of_thread);
  }
  done = true;
  collector.join();
  for (const std::vector<Launched>& of_thread : ops) {
    for (int i = 0; i < kOps; ++i) {
      ExpectTime(*times, of_thread[i], i, i + 100);
    }
  }
}

}  // namespace
}  // namespace d2l
