// Tests that the expectations fail where they should.

#include "common/lesson/testing/lesson_testing.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace d2l {
namespace {

TestedLesson OneCell() { return {"sample", {{"s/good", {"t/good"}, 1, 1}}}; }

// A run without any fault.
LessonRun Good() {
  LessonRun run;
  run.arguments = {"--devices=cpu:0,cpu:1"};
  run.exit_code = 0;
  run.output =
      "====\n1.1  Good          d2l 1 [s/good]\n\n0 wrong results, 0 errors.\n";
  run.json = nlohmann::json::parse(R"json({
    "lesson": "sample",
    "devices": [{"name": "cpu:0"}, {"name": "cpu:1"}],
    "cells": [{
      "id": "s/good",
      "also": ["t/good"],
      "predict": "Does it hold?",
      "choices": ["yes", "no"],
      "figures": [{"name": "work (cpu:0, virtual)", "unit": "s",
                   "low": 1, "median": 2, "high": 3},
                  {"name": "gain", "unit": "%",
                   "low": -1, "median": 2, "high": 3}],
      "drawings": [{"name": "time"}],
      "claims": [{"text": "It holds.", "meaning": "It holds.",
                  "verdict": "HOLDS", "evidence": "So it is.",
                  "because": ""}],
      "not_asked": 0}]})json");
  return run;
}

void ExpectListed(const LessonRun& run) { ExpectCellsAsListed(OneCell(), run); }

TEST(LessonTestingTest, AcceptsAGoodRun) {
  ExpectRightResults(Good());
  ExpectListed(Good());
  ExpectEightyColumns(Good());
}

TEST(LessonTestingTest, RefusesAnExitCode) {
  LessonRun run = Good();
  run.exit_code = 1;
  EXPECT_NONFATAL_FAILURE(ExpectRightResults(run), "exit_code");
}

TEST(LessonTestingTest, RefusesAWrongResult) {
  LessonRun run = Good();
  run.output += "WRONG RESULT in s/good: z\n";
  EXPECT_NONFATAL_FAILURE(ExpectRightResults(run), "WRONG RESULT");
}

TEST(LessonTestingTest, RefusesAnError) {
  LessonRun run = Good();
  run.output += "Error in s/good: [matmul]\n";
  EXPECT_NONFATAL_FAILURE(ExpectRightResults(run), "Error in ");
}

TEST(LessonTestingTest, RefusesAnotherNumberOfDevices) {
  LessonRun run = Good();
  run.arguments = {"--devices=cpu:0"};
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "devices");
}

TEST(LessonTestingTest, NamesACellThatIsNotListedOrDidNotRun) {
  LessonRun run = Good();
  run.json["cells"][0]["id"] = "s/other";
  EXPECT_NONFATAL_FAILURE(ExpectListed(run),
                          "s/other ran, but is not listed\n"
                          "s/good is listed, but did not run");
  run = Good();
  run.json["cells"].clear();
  EXPECT_NONFATAL_FAILURE(ExpectListed(run),
                          "s/good is listed, but did not run");
  run.json["cells"] = {{{"id", "s/good"}}, {{"id", "s/new"}}};
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "s/new ran, but is not listed");
}

TEST(LessonTestingTest, RefusesAnotherOrder) {
  TestedLesson lesson = OneCell();
  lesson.cells.push_back({"s/new", {}});
  LessonRun run = Good();
  run.json["cells"] = {{{"id", "s/new"}}, {{"id", "s/good"}}};
  EXPECT_NONFATAL_FAILURE(ExpectCellsAsListed(lesson, run),
                          "They ran as s/new, s/good\n"
                          "and are listed as s/good, s/new");
}

TEST(LessonTestingTest, RefusesAnIdThatIsNotPrinted) {
  LessonRun run = Good();
  run.output = "s/good\n";
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "[s/good]");
}

TEST(LessonTestingTest, RefusesACellWithoutAQuestion) {
  LessonRun run = Good();
  run.json["cells"][0]["predict"] = "";
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "predict");
}

TEST(LessonTestingTest, RefusesTooFewAndTooManyChoices) {
  LessonRun run = Good();
  run.json["cells"][0]["choices"] = {"yes"};
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "choices");
  run.json["cells"][0]["choices"] = {"1", "2", "3", "4", "5"};
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "choices");
}

TEST(LessonTestingTest, RefusesAMissingClaim) {
  LessonRun run = Good();
  run.json["cells"][0]["claims"].clear();
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "claims");
}

TEST(LessonTestingTest, CountsAClaimThatIsNotAsked) {
  LessonRun run = Good();
  run.json["cells"][0]["claims"].clear();
  run.json["cells"][0]["not_asked"] = 1;
  ExpectListed(run);
}

TEST(LessonTestingTest, RefusesAReasonThatTheFiguresDoNotBearOut) {
  LessonRun run = Good();
  const auto because = [&](const std::string& text) {
    run.json["cells"][0]["claims"][0]["because"] = text;
  };
  because("A call takes 3.00 us.");
  ExpectReasonsBorneOut(run);
  because("t2 is 1.02x t1: the device is slower than the front end.");
  ExpectReasonsBorneOut(run);
  because("t2 is 0.90x t1: the device is slower than the front end.");
  EXPECT_NONFATAL_FAILURE(ExpectReasonsBorneOut(run), "0.90x");
  because(
      "2.96 ms on one stream and 3.00 ms on two; enqueueing them takes 80.0 "
      "us. The front end enqueues no faster than the device works.");
  EXPECT_NONFATAL_FAILURE(ExpectReasonsBorneOut(run), "80.0 us");
  because("The device is slower than a snail.");
  EXPECT_NONFATAL_FAILURE(ExpectReasonsBorneOut(run), "a snail");
}

TEST(LessonTestingTest, RefusesAClaimWithoutEvidence) {
  LessonRun run = Good();
  run.json["cells"][0]["claims"][0]["evidence"] = "";
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "evidence");
}

TEST(LessonTestingTest, RefusesAFailureWithoutReason) {
  LessonRun run = Good();
  run.json["cells"][0]["claims"][0]["verdict"] = "FAILS";
  run.json["cells"][0]["claims"][0]["reason"] = "Noise.";
  ExpectListed(run);
  run.json["cells"][0]["claims"][0]["reason"] = "";
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "FAILS");
}

TEST(LessonTestingTest, RefusesAFigureOfAnUnknownPlace) {
  LessonRun run = Good();
  run.json["cells"][0]["figures"][0]["name"] = "work";
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "virtual");
}

TEST(LessonTestingTest, RefusesACellWithoutADrawingOrAReason) {
  LessonRun run = Good();
  run.json["cells"][0]["drawings"].clear();
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "drawings");
  TestedLesson lesson = OneCell();
  lesson.cells[0].not_drawn = "a state dict";
  ExpectCellsAsListed(lesson, run);
}

TEST(LessonTestingTest, RefusesATimeOfZero) {
  LessonRun run = Good();
  run.json["cells"][0]["figures"][0]["low"] = 0;
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "low");
}

TEST(LessonTestingTest, ADifferenceMayBeNegative) {
  LessonRun run = Good();
  run.json["cells"][0]["figures"][0]["low"] = -1;
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "low");
  TestedLesson lesson = OneCell();
  lesson.differences = {"work "};
  ExpectCellsAsListed(lesson, run);
}

TEST(LessonTestingTest, RefusesAMedianOutsideItsInterval) {
  LessonRun run = Good();
  run.json["cells"][0]["figures"][1]["median"] = 4;
  EXPECT_NONFATAL_FAILURE(ExpectListed(run), "median");
}

TEST(LessonTestingTest, RefusesALongLineUnlessItIsAPath) {
  LessonRun run = Good();
  run.output += "Written: " + std::string(80, '/') + "\n";
  ExpectEightyColumns(run);
  run.output += std::string(81, 'x') + "\n";
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(run), "xxx");
}

TEST(LessonTestingTest, RefusesACellThatFillsTwoScreens) {
  const std::string rule = std::string(80, '=') + "\n";
  std::string lines;
  for (int i = 0; i < 40; ++i) lines += "text\n";
  LessonRun run = Good();
  run.output = rule + lines + rule + lines + rule;
  ExpectShortCells(run);
  run.output = rule + lines + lines + rule;
  EXPECT_NONFATAL_FAILURE(ExpectShortCells(run), "text");
  run.output = lines;
  EXPECT_NONFATAL_FAILURE(ExpectShortCells(run), "text");
}

// A profiler's table, 87 columns wide.
const char kTable[] =
    "-----------  ------------------------------------------------------------"
    "  ------------\n"
    "       Name                                                   Self CPU %"
    "      Self CPU\n"
    "-----------  ------------------------------------------------------------"
    "  ------------\n"
    "     matmul                                                        3.00%"
    "      30.000us\n"
    "-----------  ------------------------------------------------------------"
    "  ------------\n";

LessonRun WithOutput(const std::string& output) {
  LessonRun run = Good();
  run.output += output;
  return run;
}

TEST(LessonTestingTest, AcceptsAProfilersTable) {
  const std::string table = kTable;
  ExpectEightyColumns(WithOutput(table));
  ExpectEightyColumns(WithOutput(table + "Self CPU time total: 1.000ms\n"));
  ExpectEightyColumns(WithOutput(table + "\n" + table));
}

TEST(LessonTestingTest, RefusesLongLinesBesideATable) {
  const std::string table = kTable;
  const std::string line = std::string(81, 'x') + "\n";
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(line + table)), "xxx");
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(table + line)), "xxx");
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(table + line + table)),
                          "xxx");
}

TEST(LessonTestingTest, RefusesALineThatIsWiderThanItsTable) {
  std::string table = kTable;
  table.insert(table.rfind("     matmul"), std::string(100, 'y') + "\n");
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(table)), "yyy");
}

TEST(LessonTestingTest, RefusesWhatOnlyBeginsAsATable) {
  const std::string table = kTable;
  // Without its last rule; and with another last rule.
  const std::string open = table.substr(0, table.rfind("-----------  ---"));
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(open)), "matmul");
  EXPECT_NONFATAL_FAILURE(
      ExpectEightyColumns(WithOutput(open + std::string(88, '-') + "\n")),
      "matmul");
  // One run of dashes, which no table has.
  const std::string rule = std::string(88, '-') + "\n";
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(rule + rule + rule)),
                          "----");
}

TEST(LessonTestingTest, CountsColumnsNotBytes) {
  std::string line;
  for (int i = 0; i < 80; ++i) line += "µ";
  ExpectEightyColumns(WithOutput(line + "\n"));
  EXPECT_NONFATAL_FAILURE(ExpectEightyColumns(WithOutput(line + "µ\n")), "µ");
}

}  // namespace
}  // namespace d2l
