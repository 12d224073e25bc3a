#include "chapters/auto_parallelism/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/program_graph.h"
#include "common/graph/program_testing.h"
#include "common/lesson/cell/judge.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

// Operation i runs from 1000 (i + 1) to 1000 (i + 1) + 500 (program_testing).
// randn, a view of it, then on a second stream a product of the view.
FakeProgram TwoStreams() {
  FakeProgram program;
  const int x = program.Op("randn", {});
  const int view = program.View("transpose", x);
  program.Op("matmul", {x, view});
  program.streams.push_back("cpu:1");
  program.ops[2].stream = 1;
  return program;
}

TEST(ScheduleTest, HoldsIfEverythingBeganAfterWhatItNeeds) {
  const Judgement judgement = FollowsTheData(TwoStreams().Graph());
  EXPECT_EQ(judgement.verdict, Verdict::kHolds);
  EXPECT_THAT(judgement.evidence,
              HasSubstr("3 dependencies, 1 of them between"));
  EXPECT_EQ(judgement.number, "0 of 3");
}

TEST(ScheduleTest, IsInconclusiveWithoutDependenciesBetweenStreams) {
  FakeProgram program = TwoStreams();
  program.ops[2].stream = 0;
  EXPECT_EQ(FollowsTheData(program.Graph()).verdict, Verdict::kInconclusive);
  EXPECT_EQ(FollowsTheData(ProgramGraph({})).verdict, Verdict::kInconclusive);
  program.ops[2].begin = program.ops[0].end - 1;
  EXPECT_EQ(FollowsTheData(program.Graph()).verdict, Verdict::kFails);
}

TEST(ScheduleTest, BeginningAtTheSameMomentIsInTime) {
  FakeProgram program = TwoStreams();
  program.ops[2].begin = program.ops[0].end;
  EXPECT_EQ(EarlyStarts(program.Graph()), 0);
}

TEST(ScheduleTest, FailsIfOneBeganTooEarly) {
  FakeProgram program = TwoStreams();
  program.ops[2].begin = program.ops[0].end - 1;
  const ProgramGraph graph = program.Graph();
  EXPECT_EQ(EarlyStarts(graph), 1);
  EXPECT_EQ(FollowsTheData(graph).verdict, Verdict::kFails);
}

TEST(ScheduleTest, LooksThroughViews) {
  FakeProgram program;
  const int x = program.Op("randn", {});
  const int view = program.View("transpose", program.View("slice", x));
  program.Op("relu", {view});
  EXPECT_EQ(EarlyStarts(program.Graph()), 0);
  program.ops[3].begin = program.ops[0].end - 1;
  EXPECT_EQ(EarlyStarts(program.Graph()), 1);
}

TEST(ScheduleTest, OverwritingMustWaitForReaders) {
  FakeProgram program;
  const int x = program.Op("randn", {});
  program.Op("relu", {x});
  program.InPlace("add_", {x}, x);
  EXPECT_EQ(EarlyStarts(program.Graph()), 0);
  program.ops[2].begin = program.ops[1].end - 1;
  EXPECT_EQ(EarlyStarts(program.Graph()), 1);
}

TEST(ScheduleTest, WhatDidNotRunIsNotInOrder) {
  FakeProgram program = TwoStreams();
  program.ops[2].begin = program.ops[2].end = 0;
  EXPECT_EQ(EarlyStarts(program.Graph()), 1);
}

TEST(ScheduleTest, NothingIsInOrder) {
  EXPECT_EQ(EarlyStarts(ProgramGraph({})), 0);
}

}  // namespace
}  // namespace d2l
