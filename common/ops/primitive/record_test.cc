#include "common/ops/primitive/record.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/base/timer.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// Keeps the records that it receives.
class Recorder : public OpListener {
 public:
  struct Op {
    std::unique_ptr<Primitive> primitive;
    std::vector<std::uint64_t> inputs;
    ValueRecord output;
    bool in_place;
    bool view;
    const Stream* stream;
    std::uint64_t number;
    std::int64_t host_begin;
    std::int64_t host_end;
  };

  void OnOp(const OpRecord& record) override {
    Op op{record.primitive->Clone(),
          {},
          ToRecord(record.output),
          record.in_place,
          record.view,
          record.stream,
          record.number,
          record.host_begin,
          record.host_end};
    for (const Tensor* input : record.inputs) {
      op.inputs.push_back(input->id());
    }
    ops.push_back(std::move(op));
  }
  void BeforeRead(const ReadRecord& record) override {
    before_reads.push_back(record.reader);
  }
  void AfterRead(const ReadRecord& record) override {
    EXPECT_GE(record.host_end, record.host_begin);
    after_reads.push_back(record.reader);
  }
  bool wants_times() const override { return want_times; }
  OpStamps* NewStamps(Stream&) override {
    if (!want_stamps) return nullptr;
    stamps.push_back(std::make_unique<OpStamps>());
    return stamps.back().get();
  }

  std::vector<Op> ops;
  std::vector<std::string> before_reads;
  std::vector<std::string> after_reads;
  bool want_times = true;
  // The device writes to stamps: a test that wants them must synchronize.
  bool want_stamps = false;
  std::vector<std::unique_ptr<OpStamps>> stamps;
};

const Device kCpu(DeviceType::kCpu, 0);

TEST(OpRecord, DescribesTheProgram) {
  const Tensor x = Ones({2, 3}, kCpu);
  Recorder seen;
  Tensor z;
  {
    ScopedOpListener listen(&seen);
    z = x * x + 2;
    z += x;
  }
  const Tensor unheard = x + 1;
  ASSERT_EQ(seen.ops.size(), 3u);

  EXPECT_STREQ(seen.ops[0].primitive->name(), "mul");
  EXPECT_THAT(seen.ops[0].inputs, ElementsAre(x.id(), x.id()));
  EXPECT_EQ(seen.ops[0].output.shape, (Shape{2, 3}));
  EXPECT_FALSE(seen.ops[0].in_place);
  EXPECT_FALSE(seen.ops[0].view);
  EXPECT_EQ(seen.ops[0].stream, &CurrentStream(kCpu));

  EXPECT_STREQ(seen.ops[1].primitive->name(), "add");
  EXPECT_THAT(seen.ops[1].inputs, ElementsAre(seen.ops[0].output.id));
  EXPECT_THAT(seen.ops[1].primitive->attributes(),
              ElementsAre(Pair("second", "2")));
  EXPECT_EQ(seen.ops[1].output.id, z.id());
  EXPECT_EQ(seen.ops[1].output.version, 1u);
  EXPECT_EQ(seen.ops[1].number, seen.ops[0].number + 1);

  EXPECT_TRUE(seen.ops[2].in_place);
  EXPECT_EQ(seen.ops[2].output.id, z.id());
  EXPECT_EQ(seen.ops[2].output.version, 2u);
  EXPECT_EQ(seen.ops[2].output.storage, seen.ops[1].output.storage);
  for (const auto& op : seen.ops) EXPECT_LE(op.host_begin, op.host_end);
}

TEST(OpRecord, ViewsLaunchNothing) {
  const Tensor x = Ones({2, 3}, kCpu);
  const std::uint64_t version = x.version();
  Recorder seen;
  ScopedOpListener listen(&seen);
  const std::vector<Tensor> views = {View(x, {6}),
                                     T(x),
                                     Transpose(x, 0, 1),
                                     Slice(x, 1, 1),
                                     Select(x, 0, 1),
                                     Squeeze(x),
                                     Unsqueeze(x, 0),
                                     Expand(x, {4, 2, 3}),
                                     x[1],
                                     Reshape(x, {3, 2})};
  const std::vector<Tensor> pieces = Split(x, 1);
  ASSERT_EQ(seen.ops.size(), views.size() + pieces.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < seen.ops.size(); ++i) {
    const Recorder::Op& op = seen.ops[i];
    const Tensor& view = i < views.size() ? views[i] : pieces[i - views.size()];
    names.push_back(op.primitive->name());
    EXPECT_EQ(op.stream, nullptr);
    EXPECT_TRUE(op.view);
    EXPECT_FALSE(op.in_place);
    EXPECT_THAT(op.inputs, ElementsAre(x.id()));
    EXPECT_EQ(op.output.id, view.id());
    EXPECT_EQ(op.output.storage, x.storage()->id());
    EXPECT_EQ(op.output.version, version);
    EXPECT_EQ(op.output.shape, view.shape());
    EXPECT_LE(op.host_begin, op.host_end);
  }
  EXPECT_THAT(names, ElementsAre("view", "transpose", "transpose", "slice",
                                 "select", "squeeze", "unsqueeze", "expand",
                                 "select", "view", "slice", "slice"));
  EXPECT_THAT(
      seen.ops[3].primitive->attributes(),
      ElementsAre(Pair("dim", "1"), Pair("start", "1"),
                  Pair("end", "9223372036854775807"), Pair("step", "1")));
}

TEST(OpRecord, EmptyLaunchesNothingAndIsNoView) {
  Recorder seen;
  ScopedOpListener listen(&seen);
  const Tensor x = Empty({2, 3}, kCpu);
  ASSERT_EQ(seen.ops.size(), 1u);
  EXPECT_STREQ(seen.ops[0].primitive->name(), "empty");
  EXPECT_EQ(seen.ops[0].stream, nullptr);
  EXPECT_FALSE(seen.ops[0].view);
  EXPECT_TRUE(seen.ops[0].inputs.empty());
  EXPECT_EQ(seen.ops[0].output.id, x.id());
  EXPECT_EQ(seen.ops[0].output.version, x.version());
}

TEST(OpRecord, WhatWritesInPlaceSaysSo) {
  Tensor x = Ones({2, 3}, kCpu);
  const Tensor row = Ones({3}, kCpu);
  Recorder seen;
  {
    ScopedOpListener listen(&seen);
    x *= 2;
    ApplyUnaryInPlace(kernels::UnaryOp::kRelu, x);
    FillInPlace(x, 1);
    CopyTo(row, x);
    x[0] = row;  // a view, then the copy
    const Tensor y = To(x, DType::kInt64);
  }
  std::vector<std::string> names;
  std::vector<bool> in_place;
  std::vector<std::uint64_t> versions;
  for (const Recorder::Op& op : seen.ops) {
    names.push_back(op.primitive->name());
    in_place.push_back(op.in_place);
    versions.push_back(op.output.version);
  }
  EXPECT_THAT(names, ElementsAre("mul", "relu", "fill", "copy", "select",
                                 "copy", "to"));
  EXPECT_THAT(in_place,
              ElementsAre(true, true, true, true, false, true, false));
  EXPECT_THAT(versions, ElementsAre(2, 3, 4, 5, 5, 6, 1));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(seen.ops[i].output.storage, x.storage()->id());
  }
}

TEST(OpRecord, AClonedPrimitiveIsTheSameOperation) {
  const Tensor x = FromVector<float>({1, 2, 3, 4, 5, 6}, {2, 3}, kCpu);
  const Tensor index = Zeros({2}, kCpu, DType::kInt64);
  Recorder seen;
  std::vector<Tensor> results;
  {
    ScopedOpListener listen(&seen);
    results = {x + 1,
               2 - x,
               Where(x > 2, x, 0),
               Exp(x),
               MatMul(x, T(x)),
               Sum(x, 1, true),
               ArgMax(x),
               Softmax(x, 0),
               Cat({x, x}, 1),
               IndexSelect(x, 0, index),
               Clone(x),
               Full({2}, 7, kCpu),
               Arange(2, 8, 3, kCpu),
               Eye(2, kCpu),
               FromVector<float>({8, 9}, {2}, kCpu)};
  }
  // Replays the recorded operations on their inputs.
  std::map<std::uint64_t, Tensor> values = {{x.id(), x}, {index.id(), index}};
  for (const Recorder::Op& op : seen.ops) {
    std::vector<const Tensor*> inputs;
    for (const std::uint64_t id : op.inputs) inputs.push_back(&values.at(id));
    const auto* view = dynamic_cast<const ViewPrimitive*>(op.primitive.get());
    const SourceLocation at = SourceLocation::Current();
    values[op.output.id] = view != nullptr ? ApplyView(*view, *inputs[0], at)
                                           : Apply(*op.primitive, inputs, at);
  }
  for (const Tensor& result : results) {
    EXPECT_TRUE(Equal(values.at(result.id()), result)) << result;
  }
}

TEST(OpRecord, ValueIdsAreNotReusedWhenMemoryIs) {
  const Tensor x = Ones({1}, kCpu);
  Recorder seen;
  ScopedOpListener listen(&seen);
  for (int i = 0; i < 3; ++i) x + 1;  // NOLINT: each result is freed at once
  EXPECT_NE(seen.ops[0].output.id, seen.ops[1].output.id);
  EXPECT_NE(seen.ops[0].output.storage, seen.ops[2].output.storage);
}

TEST(OpRecord, ReadsAreRecorded) {
  const Tensor x = Ones({1}, kCpu);
  Recorder seen;
  ScopedOpListener listen(&seen);
  Item(x);
  ToVector<float>(x);
  WaitToRead(x);
  EXPECT_THAT(seen.before_reads,
              ElementsAre("item", "to_vector", "wait_to_read"));
  EXPECT_EQ(seen.after_reads, seen.before_reads);
}

TEST(OpRecord, StampsAreWrittenByTheDevice) {
  Recorder seen;
  seen.want_stamps = true;
  const std::int64_t before = NowNanos();
  {
    ScopedOpListener listen(&seen);
    Ones({1000}, kCpu);
  }
  Synchronize(kCpu);
  ASSERT_EQ(seen.stamps.size(), 1u);
  const OpStamps& stamps = *seen.stamps[0];
  EXPECT_GE(stamps.begin, before);
  EXPECT_GE(stamps.end, stamps.begin);
  EXPECT_LE(stamps.end, NowNanos());
}

TEST(OpRecord, EveryListenerGetsItsOwnStamps) {
  Recorder of_process;
  Recorder of_thread;
  of_process.want_stamps = true;
  of_thread.want_stamps = true;
  AddProcessOpListener(&of_process);
  {
    ScopedOpListener listen(&of_thread);
    Ones({1000}, kCpu);
  }
  RemoveProcessOpListener(&of_process);
  Synchronize(kCpu);
  ASSERT_EQ(of_process.stamps.size(), 1u);
  ASSERT_EQ(of_thread.stamps.size(), 1u);
  EXPECT_NE(of_thread.stamps[0]->begin, 0);
  EXPECT_EQ(of_thread.stamps[0]->begin, of_process.stamps[0]->begin);
  EXPECT_NE(of_thread.stamps[0]->end, 0);
  EXPECT_EQ(of_thread.stamps[0]->end, of_process.stamps[0]->end);
}

TEST(OpRecord, AllListenersOfAThreadAreTold) {
  Recorder outer, inner;
  const Tensor x = Ones({1}, kCpu);
  ScopedOpListener listen(&outer);
  {
    ScopedOpListener nested(&inner);
    Tensor y = x + 1;
    std::thread([&x] { Tensor z = x + 2; }).join();
  }
  Tensor w = x + 3;
  EXPECT_EQ(inner.ops.size(), 1u);
  EXPECT_EQ(outer.ops.size(), 2u);
  EXPECT_EQ(outer.ops[0].output.id, inner.ops[0].output.id);
}

TEST(OpRecord, TimesAreTakenForThoseWhoWantThem) {
  Recorder tape, profiler;
  tape.want_times = false;
  const Tensor x = Ones({1}, kCpu);
  {
    ScopedOpListener listen(&tape);
    Tensor y = x + 1;
    ScopedOpListener profile(&profiler);
    Tensor z = x + 1;
  }
  ASSERT_EQ(tape.ops.size(), 2u);
  EXPECT_EQ(tape.ops[0].host_begin, 0);
  EXPECT_EQ(tape.ops[0].host_end, 0);
  ASSERT_EQ(profiler.ops.size(), 1u);
  EXPECT_GT(profiler.ops[0].host_begin, 0);
  EXPECT_GE(profiler.ops[0].host_end, profiler.ops[0].host_begin);
}

// Counts from any thread.
class Counter : public OpListener {
 public:
  void OnOp(const OpRecord&) override { ++ops; }
  std::atomic<int> ops{0};
};

TEST(OpRecord, TheProcesssListenerHearsAllThreads) {
  Counter counter;
  const Tensor x = Ones({1}, kCpu);
  Counter second;
  AddProcessOpListener(&counter);
  AddProcessOpListener(&second);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&x] {
      for (int i = 0; i < 100; ++i) Tensor y = x + 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  RemoveProcessOpListener(&counter);
  Tensor heard_by_one = x + 1;
  RemoveProcessOpListener(&second);
  Tensor unheard = x + 1;
  EXPECT_EQ(counter.ops, 300);
  EXPECT_EQ(second.ops, 301);
}

}  // namespace
}  // namespace d2l
