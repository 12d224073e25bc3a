#include "common/profiler/what_if.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/profiler/play.h"
#include "common/profiler/profile_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::HasSubstr;

constexpr int kHost = PlayedRequest::kHost;

SourceLocation At(int line) { return {"a.cc", line}; }

PlayedRequest Operation(const char* name, double work, int stream,
                        std::vector<int> inputs, int line) {
  PlayedRequest request = {1, work, stream};
  request.name = name;
  request.kind = PlayedRequest::Kind::kOperation;
  request.inputs = std::move(inputs);
  request.at = At(line);
  return request;
}

PlayedRequest Wait(int awaits, int line) {
  PlayedRequest request = {0, 0, kHost, {}, {awaits}};
  request.name = "item";
  request.at = At(line);
  return request;
}

double Seconds(const PlayedProgram& program) {
  return Play(program, {}).seconds;
}

// Two products on cpu:0; their result is read; then one on cpu:1.
RecordedProgram Example() {
  RecordedProgram recorded;
  PlayedProgram& program = recorded.program;
  program.requests = {Operation("matmul", 10, 0, {}, 1),
                      Operation("matmul", 20, 0, {0}, 2), Wait(1, 5),
                      Operation("add", 30, 1, {}, 7), Wait(3, 9)};
  program.device_of = {0, 1};
  program.streams = {"cpu:0", "cpu:1"};
  recorded.devices = {Device(DeviceType::kCpu, 0), Device(DeviceType::kCpu, 1)};
  recorded.seconds = 62;
  return recorded;
}

TEST(WhatIfTest, EachChangeTakesWhatItShould) {
  const PlayedProgram program = Example().program;
  EXPECT_EQ(Seconds(program), 62);
  EXPECT_EQ(Seconds(WithFreeRequests(program)), 60);
  EXPECT_EQ(Seconds(WithoutWaits(program, At(5))), 33);
  // Line 9 has the program's last wait, which stays.
  EXPECT_EQ(Seconds(WithoutWaits(program, At(9))), 62);
  EXPECT_EQ(Seconds(WithWaits(program)), 63);
  EXPECT_EQ(Seconds(Faster(program, 2, "matmul")), 47);
  const PlayedProgram without = WithoutWaits(program, At(5));
  EXPECT_EQ(Seconds(OnDevices(without, 1)), 61);
  EXPECT_EQ(Seconds(OnDevices(without, 3)), 33);
}

TEST(WhatIfTest, TheTableRanksAndExplains) {
  const WhatIf what_if(Example(), RoundPeaks());
  EXPECT_EQ(what_if.seconds, 62);
  const std::vector<WhatIf::Change>& changes = what_if.changes;
  EXPECT_TRUE(std::is_sorted(
      changes.begin(), changes.end(),
      [](const auto& a, const auto& b) { return a.seconds > b.seconds; }));
  const std::string text = what_if.ToText();
  EXPECT_THAT(text, HasSubstr("recorded: 3 operations, 62.0 s, on cpu:0 and "
                              "cpu:1; played again: 62.0 s\n"));
  EXPECT_THAT(text,
              HasSubstr("no wait in a.cc:5                 33.0 s    cpu:1 "
                        "idles 29.0 s behind it\n"));
  EXPECT_THAT(text, HasSubstr("a chain of 1 add takes 30.0 s"));
  EXPECT_THAT(text, HasSubstr("takes 2.00 s of the longest chain"));
  EXPECT_THAT(text, HasSubstr("two H100, SIMULATED"));
}

TEST(WhatIfTest, AReasonForMoreTimeIsGivenOnlyForMore) {
  RecordedProgram recorded;
  recorded.program.requests = {Operation("matmul", 10, 0, {}, 1), Wait(0, 2)};
  recorded.program.device_of = {0};
  recorded.program.streams = {"cpu:0"};
  recorded.devices = {Device(DeviceType::kCpu, 0)};
  for (const WhatIf::Change& change : WhatIf(recorded, RoundPeaks()).changes) {
    if (change.what != "a wait for each operation") continue;
    EXPECT_EQ(change.seconds, 11);  // it waits already
    EXPECT_EQ(change.because, "a chain of 1 matmul takes 10.0 s");
  }
}

// Eight operations for one stream, all waited for together.
PlayedProgram Independent() {
  PlayedProgram program;
  program.device_of = {0};
  for (int i = 0; i < 8; ++i) {
    program.requests.push_back(Operation("matmul", 10, 0, {}, 1));
  }
  program.requests.push_back({0, 0, 0});
  program.requests.push_back(Wait(8, 2));
  return program;
}

TEST(WhatIfTest, MoreDevicesTakeWhatIsIndependent) {
  EXPECT_EQ(Seconds(Independent()), 81);
  EXPECT_EQ(Seconds(OnDevices(Independent(), 2)), 42);
  EXPECT_EQ(Seconds(OnDevices(Independent(), 8)), 18);
  PlayedProgram chain = Independent();
  for (int i = 1; i < 8; ++i) chain.requests[i].inputs = {i - 1};
  EXPECT_EQ(Seconds(OnDevices(chain, 8)), 81);
  // A copy behind all of them, for which the host waits.
  PlayedProgram copied = Independent();
  copied.requests[8] = {0, 5, 0};
  EXPECT_EQ(Seconds(OnDevices(copied, 2)), 47);
}

TEST(WhatIfTest, FewerDevicesTakeTurns) {
  PlayedProgram program;
  program.device_of = {0, 1, 2};
  for (int i = 0; i < 6; ++i) {
    program.requests.push_back(Operation("matmul", 10, i % 3, {}, 1));
  }
  program.requests.push_back({0, 25, 2});  // a copy behind number 5
  EXPECT_EQ(Seconds(program), 3 + 10 + 10 + 25);
  EXPECT_EQ(Seconds(OnDevices(program, 2)), 2 + 30 + 25);
  EXPECT_EQ(Seconds(OnDevices(program, 1)), 1 + 60 + 25);
}

TEST(WhatIfTest, AnotherMachineIsAsFarFromItsBounds) {
  PlayedProgram program;
  PlayedRequest product = Operation("matmul", 0.2, 0, {}, 1);
  product.cost = {10'000'000'000, 1000};  // 0.1 s on RoundPeaks
  PlayedRequest copy = {1, 5, 0};
  copy.kind = PlayedRequest::Kind::kCopy;
  copy.cost = {0, 1'000'000};
  program.requests = {product, copy};
  PlayedMachine machine;
  machine.ask = 3;
  machine.kernel = 0.5;
  machine.flop_per_second = 1e10;
  machine.bytes_per_second = 1e12;
  machine.link_bytes_per_second = 1e6;
  const PlayedProgram there = OnMachine(program, machine, RoundPeaks());
  EXPECT_DOUBLE_EQ(there.requests[0].work, 0.5 + 2);
  EXPECT_DOUBLE_EQ(there.requests[1].work, 0.5 + 1);
  EXPECT_EQ(there.requests[1].ask, 3);
}

}  // namespace
}  // namespace d2l
