#include "chapters/auto_parallelism/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/device/device.h"
#include "common/graph/program_graph.h"
#include "common/lesson/judge.h"
#include "common/lesson/recorder.h"
#include "common/lesson/recording_testing.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

// Operation i runs from 1000 (i + 1) to 1000 (i + 1) + 500 (recording_testing).
// randn, a view of it, then on a second stream a product of the view.
Recording TwoStreams() {
  FakeProgram program;
  const int x = program.Op("randn", {});
  const int view = program.View("transpose", x);
  program.Op("matmul", {x, view});
  Recording& recording = program.recording();
  recording.streams.push_back({"cpu:1", Device(DeviceType::kCpu, 1)});
  recording.ops[2].stream = 1;
  return recording;
}

TEST(ScheduleTest, HoldsIfEverythingBeganAfterWhatItNeeds) {
  const Judgement judgement = FollowsTheData(ProgramGraph(TwoStreams()));
  EXPECT_EQ(judgement.verdict, Verdict::kHolds);
  EXPECT_THAT(judgement.reason, HasSubstr("Of 3 operations, 0 began"));
  EXPECT_THAT(judgement.reason, HasSubstr("3 dependencies, 1 of them between"));
  EXPECT_EQ(judgement.figures, "0 of 3 early");
}

TEST(ScheduleTest, BeginningAtTheSameMomentIsInTime) {
  Recording recording = TwoStreams();
  recording.ops[2].begin = recording.ops[0].end;
  EXPECT_EQ(EarlyStarts(ProgramGraph(recording)), 0);
}

TEST(ScheduleTest, FailsIfOneBeganTooEarly) {
  Recording recording = TwoStreams();
  recording.ops[2].begin = recording.ops[0].end - 1;
  const ProgramGraph graph(recording);
  EXPECT_EQ(EarlyStarts(graph), 1);
  EXPECT_EQ(FollowsTheData(graph).verdict, Verdict::kFails);
}

TEST(ScheduleTest, LooksThroughViews) {
  FakeProgram program;
  const int x = program.Op("randn", {});
  const int view = program.View("transpose", program.View("slice", x));
  program.Op("relu", {view});
  EXPECT_EQ(EarlyStarts(ProgramGraph(program.recording())), 0);
  program.recording().ops[3].begin = program.recording().ops[0].end - 1;
  EXPECT_EQ(EarlyStarts(ProgramGraph(program.recording())), 1);
}

TEST(ScheduleTest, OverwritingMustWaitForReaders) {
  FakeProgram program;
  const int x = program.Op("randn", {});
  program.Op("relu", {x});
  program.InPlace("add_", {x}, x);
  EXPECT_EQ(EarlyStarts(ProgramGraph(program.recording())), 0);
  program.recording().ops[2].begin = program.recording().ops[1].end - 1;
  EXPECT_EQ(EarlyStarts(ProgramGraph(program.recording())), 1);
}

TEST(ScheduleTest, WhatDidNotRunIsNotInOrder) {
  Recording recording = TwoStreams();
  recording.ops[2].begin = recording.ops[2].end = 0;
  EXPECT_EQ(EarlyStarts(ProgramGraph(recording)), 1);
}

TEST(ScheduleTest, NothingIsInOrder) {
  EXPECT_EQ(EarlyStarts(ProgramGraph(Recording())), 0);
}

}  // namespace
}  // namespace d2l
