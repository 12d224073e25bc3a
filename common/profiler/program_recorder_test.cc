#include "common/profiler/program_recorder.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device_table.h"
#include "common/device/stream_stall.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/profiler/play.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SourceLocation At(int line) { return {"program.cc", line}; }

class ProgramRecorderTest : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override { Synchronize(GetParam()); }

  RecordedProgram Record(const std::function<void()>& program) {
    ProgramRecorder recorder;
    program();
    return recorder.Stop();
  }
  // The number of the only request of that line.
  static int Find(const RecordedProgram& recorded, int line, bool work) {
    int found = -1;
    const auto& requests = recorded.program.requests;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (!(requests[i].at == At(line))) continue;
      if ((requests[i].stream >= 0 && requests[i].work > 0) != work) continue;
      EXPECT_EQ(found, -1) << "line " << line;
      found = static_cast<int>(i);
    }
    EXPECT_GE(found, 0) << "line " << line;
    return found;
  }
  static bool IsMarker(const PlayedRequest& request) {
    return std::strcmp(request.name, "record") == 0 && request.work == 0;
  }

  Stream& other_ = NewStream(GetParam());
  const Tensor x_ = Rand({32, 32}, GetParam());
};

TEST_P(ProgramRecorderTest, AnOperationHasItsLineWorkAndInputs) {
  const RecordedProgram recorded = Record([&] {
    const Tensor y = MatMul(x_, x_, At(1));
    const Tensor z = Square(y, At(2));
  });
  const auto& requests = recorded.program.requests;
  const int first = Find(recorded, 1, true), second = Find(recorded, 2, true);
  EXPECT_STREQ(requests[first].name, "matmul");
  EXPECT_GT(requests[first].work, 0);
  EXPECT_GT(requests[first].ask, 0);
  EXPECT_GT(requests[first].cost.flop, 0);
  EXPECT_EQ(requests[first].kind, PlayedRequest::Kind::kOperation);
  EXPECT_THAT(requests[first].inputs, IsEmpty());
  EXPECT_THAT(requests[second].inputs, ElementsAre(first));
  EXPECT_THAT(recorded.devices, ElementsAre(GetParam()));
  EXPECT_GT(recorded.seconds, 0);
  EXPECT_GT(Play(recorded.program, recorded.machine).seconds, 0);
}

TEST_P(ProgramRecorderTest, AStreamWaitsForAnEventAndNoLonger) {
  const RecordedProgram recorded = Record([&] {
    Square(x_, At(1));
    const Event event = CurrentStream(GetParam()).Record();
    Square(x_, At(2));
    other_.Wait(event);
    const StreamGuard guard(other_);
    Square(x_, At(3));
    Square(x_, At(4));
  });
  const auto& requests = recorded.program.requests;
  const PlayedRequest& behind = requests[Find(recorded, 3, true)];
  ASSERT_THAT(behind.after, SizeIs(1));
  const int event = behind.after[0];
  EXPECT_TRUE(IsMarker(requests[event]));
  EXPECT_GT(event, Find(recorded, 1, true));
  EXPECT_LT(event, Find(recorded, 2, true));
  EXPECT_NE(behind.stream, requests[event].stream);
  EXPECT_THAT(requests[Find(recorded, 4, true)].after, IsEmpty());
  EXPECT_THAT(recorded.program.device_of, ElementsAre(0, 0));
}

TEST_P(ProgramRecorderTest, TheHostWaitsForWhatItReadsOrForAll) {
  const RecordedProgram recorded = Record([&] {
    const Tensor y = Square(x_, At(1));
    Square(x_, At(2));
    ToVector<float>(y, At(3));
    Synchronize(GetParam(), At(4));
    const Event event = CurrentStream(GetParam()).Record();
    event.Synchronize(At(5));
  });
  const auto& requests = recorded.program.requests;
  const PlayedRequest& read = requests[Find(recorded, 3, false)];
  EXPECT_EQ(read.stream, PlayedRequest::kHost);
  EXPECT_STREQ(read.name, "to_vector");
  EXPECT_THAT(read.awaits, ElementsAre(Find(recorded, 1, true)));
  for (const int line : {4, 5}) {
    const PlayedRequest& wait = requests[Find(recorded, line, false)];
    ASSERT_THAT(wait.awaits, SizeIs(1)) << line;
    EXPECT_TRUE(IsMarker(requests[wait.awaits[0]])) << line;
    EXPECT_GT(wait.awaits[0], Find(recorded, 2, true)) << line;
  }
}

TEST_P(ProgramRecorderTest, CopiesAndCallbacksAreWork) {
  const StorageRef pinned = PinnedMemory(GetParam()).AllocatePinned(4096);
  std::vector<float> pageable(1024);
  Stream& stream = CurrentStream(GetParam());
  const RecordedProgram recorded = Record([&] {
    stream.CopyAsync(pinned->data(), x_.data(), 4096, CopyKind::kDeviceToHost,
                     At(1));
    stream.HostCallback([] {}, At(2));
    stream.CopyAsync(pageable.data(), x_.data(), 4096, CopyKind::kDeviceToHost,
                     At(3));
    Synchronize(GetParam(), At(4));
  });
  const auto& requests = recorded.program.requests;
  std::vector<std::string> names;
  bool waits_for_copy = false;
  for (const PlayedRequest& request : requests) {
    if (request.stream >= 0 && !IsMarker(request)) {
      names.push_back(request.name);
      EXPECT_TRUE(request.beside);
      if (GetParam().type() == DeviceType::kCpu) {
        EXPECT_GT(request.work, 0);
      }
    }
    // Only the copy of pageable memory waits.
    if (request.stream == PlayedRequest::kHost && !request.awaits.empty() &&
        std::strcmp(request.name, "copy") == 0) {
      EXPECT_EQ(request.at, At(3));
      EXPECT_FALSE(waits_for_copy);
      waits_for_copy = true;
    }
  }
  EXPECT_THAT(names, ElementsAre("copy", "host_callback", "copy"));
  EXPECT_TRUE(waits_for_copy);
}

TEST_P(ProgramRecorderTest, AFullQueueGivesTheMachineItsLength) {
  if (GetParam().type() != DeviceType::kCpu) GTEST_SKIP() << "512 launches";
  Stream& stream = NewStream(GetParam(), 8);
  const RecordedProgram recorded = Record([&] {
    const StreamGuard guard(stream);
    StreamStall stall(stream);
    // The host blocks, at last for the seventh.
    std::thread release([&] {
      while (stream.QueuedOperations() < 9) std::this_thread::yield();
      stall.Release();
    });
    for (int i = 0; i < 20; ++i) Square(x_, At(1));
    release.join();
    Synchronize(GetParam(), At(2));
  });
  EXPECT_EQ(recorded.machine.queue, 8);
  int operations = 0;
  for (const PlayedRequest& request : recorded.program.requests) {
    operations += request.work > 0;
    EXPECT_LE(request.slots, 2);  // the stall is a task, too
  }
  EXPECT_EQ(operations, 20);
}

TEST_P(ProgramRecorderTest, ThreadsAreToldApart) {
  const RecordedProgram recorded = Record([&] {
    Square(x_, At(1));
    std::thread thread([&] { Square(x_, At(2)); });
    thread.join();
  });
  const auto& requests = recorded.program.requests;
  EXPECT_NE(requests[Find(recorded, 1, true)].thread,
            requests[Find(recorded, 2, true)].thread);
}

INSTANTIATE_TEST_SUITE_P(All, ProgramRecorderTest,
                         testing::ValuesIn(AllDevices()), DeviceTestName);

}  // namespace
}  // namespace d2l
