// The clocks of virtual devices. Expected times are processor times that the
// operations measured themselves, so other programs change none of them.

#include "common/device/cpu/virtual_timing.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timer.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/op_label.h"
#include "common/device/stream_stall.h"
#include "common/device/testing/testing.h"
#include "common/device/topology.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::HasSubstr;

constexpr double kPace = 4;
// What the worker does around a task: it is a part of the operation.
constexpr double kAround = 50e-6;

const std::vector<Device>& Virtual() {
  static const std::vector<Device>& devices = *new std::vector<Device>([] {
    std::vector<Device> all;
    for (const DeviceInfo& info : Devices()) {
      if (info.kind == DeviceKind::kVirtual) all.push_back(info.device);
    }
    return all;
  }());
  return devices;
}

// Computes for that much processor time, and adds what it took to *took.
void Compute(Stream& stream, double seconds, double* took) {
  static_cast<CpuStream&>(stream).Enqueue(OpLabel("compute"), [=] {
    const double begin = ThreadSeconds();
    while (ThreadSeconds() - begin < seconds) {
    }
    *took += ThreadSeconds() - begin;
  });
}

VirtualTiming Paced() {
  VirtualTiming timing;
  timing.pace = kPace;
  return timing;
}

VirtualTiming Linked(double bytes_per_second, double latency) {
  VirtualTiming timing;
  timing.links = Topology::PcieSwitch(static_cast<int>(Virtual().size()),
                                      bytes_per_second, latency);
  return timing;
}

double Seconds(const Event& begin, const Event& end) {
  begin.Synchronize();
  end.Synchronize();
  return 1e-3 * ElapsedTime(begin, end);
}

TEST(VirtualTiming, AnOperationLastsThePaceTimesItsComputing) {
  for (const Device device : Virtual()) {
    const VirtualTimingScope scope(Paced());
    Stream& stream = DefaultStream(device);
    double took = 0;
    Event begin, end;
    const Timer timer;
    {
      StreamStall stall(stream);
      begin = stream.Record();
      for (const double seconds : {1e-3, 1e-5, 3e-4, 1e-6}) {
        Compute(stream, seconds, &took);
      }
      end = stream.Record();
    }
    const double lasted = Seconds(begin, end);
    EXPECT_GE(lasted, kPace * took);
    EXPECT_LE(lasted, kPace * (took + 4 * kAround));
    // The program does not see the end before it is due.
    EXPECT_GE(timer.Seconds(), 0.9 * lasted);
  }
}

// Events of a worker that was woken for them have the times of their calls,
// whenever it got a core.
TEST(VirtualTiming, WorkOfAnIdleStreamBeginsWhenItIsEnqueued) {
  const VirtualTimingScope scope(Paced());
  for (const Device device : Virtual()) {
    auto& stream = static_cast<CpuStream&>(DefaultStream(device));
    struct Call {
      Event event;
      double begin, end;  // seconds
    };
    std::vector<Call> calls;
    while (calls.size() < 20) {
      // The worker needs a core to notice that it has nothing to do.
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::int64_t wakeups = stream.wakeups();
      const double begin = 1e-9 * static_cast<double>(NowNanos());
      const Event event = stream.Record();
      const double end = 1e-9 * static_cast<double>(NowNanos());
      if (stream.wakeups() > wakeups) calls.push_back({event, begin, end});
    }
    for (const Call& call : calls) {
      const double passed = Seconds(calls[0].event, call.event);
      EXPECT_GE(passed, call.begin - calls[0].end - 1e-6);
      EXPECT_LE(passed, call.end - calls[0].begin + 1e-6);
    }
  }
}

TEST(VirtualTiming, DevicesWorkAtTheSameTimeAndTheStreamsOfACoreInTurn) {
  const VirtualTimingScope scope(Paced());
  Stream& first = DefaultStream(Virtual()[0]);
  std::vector<Stream*> streams = {&first};
  for (const Device device : Virtual()) {
    if (device != Virtual()[0]) streams.push_back(&DefaultStream(device));
  }
  const bool one_core = GetDeviceInfo(Virtual()[0]).cores == 1;
  if (one_core) streams.push_back(&NewStream(Virtual()[0]));
  std::vector<double> took(streams.size(), 0);
  std::vector<Event> ends;
  Event begin;
  {
    std::vector<std::unique_ptr<StreamStall>> stalls;
    for (Stream* stream : streams) {
      stalls.push_back(std::make_unique<StreamStall>(*stream));
    }
    for (Stream* stream : streams) first.Wait(stream->Record());
    begin = first.Record();
    for (std::size_t i = 0; i < streams.size(); ++i) {
      streams[i]->Wait(begin);
      Compute(*streams[i], 2e-3, &took[i]);
      ends.push_back(streams[i]->Record());
    }
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const double lasted = Seconds(begin, ends[i]);
    EXPECT_GE(lasted, kPace * took[i]) << i;
    const bool shares = streams[i]->device() == Virtual()[0] && one_core;
    if (!shares) {
      EXPECT_LE(lasted, kPace * (took[i] + kAround)) << i;
    }
  }
  if (!one_core) return;
  EXPECT_GE(std::max(Seconds(begin, ends.front()), Seconds(begin, ends.back())),
            kPace * (took.front() + took.back()));
}

TEST(VirtualTiming, ATransferTakesTheLinksTime) {
  const VirtualTimingScope scope(Linked(100e6, 1e-4));
  Stream& stream = DefaultStream(Virtual()[1]);
  Event begin, sent, end;
  {
    StreamStall stall(stream);
    begin = stream.Record();
    stream.Transfer({0}, 1, 100'000);
    sent = stream.Record();
    // Another way, and a node to itself.
    stream.Transfer({kHostNode}, 1, 0);
    stream.Transfer({1}, 1, 1'000'000);
    end = stream.Record();
  }
  EXPECT_NEAR(Seconds(begin, sent), 2e-4 + 1e-3, 1e-8);
  EXPECT_NEAR(Seconds(sent, end), 2e-4, 1e-8);
}

// The first work of a stream may be there before its worker is, and the first
// of a scope before the worker is idle.
TEST(VirtualTiming, NoWorkBeginsBeforeItsStreamOrItsScope) {
  for (int i = 0; i < 100; ++i) {
    CpuStream fresh(Virtual()[0], 0, StreamOptions(),
                    std::make_shared<ThreadPool>(2));
    Stream& used = DefaultStream(Virtual()[0]);
    used.Record().Synchronize();
    for (Stream* const stream : {static_cast<Stream*>(&fresh), &used}) {
      const VirtualTimingScope scope(Linked(1e9, 0));
      const Timer timer;
      stream->Transfer({0}, 1, 500'000);
      stream->Synchronize();
      EXPECT_GE(timer.Seconds(), 4e-4) << (stream == &fresh);
    }
  }
}

TEST(VirtualTiming, LinksServeInTheOrderOfTheirClock) {
  internal::LinkClock links(Topology::PcieSwitch(3, 1e6));
  const auto book = [&](int from, int to, std::int64_t ready) {
    return links.Book(from, to, /*bytes=*/1, ready).begin;  // 1 us
  };
  EXPECT_EQ(book(0, 1, 5'000), 5'000);
  EXPECT_EQ(book(0, 2, 5'500), 6'000);  // the way out of 0 is taken
  EXPECT_EQ(book(2, 1, 5'500), 6'000);  // and the way into 1
  EXPECT_EQ(book(1, 0, 5'500), 5'500);  // the other direction is free
  EXPECT_EQ(book(0, 1, 0), 0);          // called late, before all of them
  EXPECT_EQ(book(0, 1, 500), 1'000);
  EXPECT_EQ(book(0, 1, 4'500), 7'000);  // the gap is too short
}

TEST(VirtualTiming, WorkThatIsSkippedTakesNoTime) {
  const VirtualTimingScope scope(Paced());
  auto& stream = static_cast<CpuStream&>(DefaultStream(Virtual()[0]));
  bool ran = false;
  Event begin, end;
  {
    StreamStall stall(stream);
    stream.Enqueue(OpLabel("fails"), [] { throw std::runtime_error("no"); });
    begin = stream.Record();
    stream.Enqueue(OpLabel("skipped"), [&ran] { ran = true; });
    end = stream.Record();
  }
  EXPECT_THROW(stream.Synchronize(), AsyncError);
  EXPECT_EQ(ElapsedTime(begin, end), 0);
  EXPECT_FALSE(ran);
  double took = 0;
  Compute(stream, 1e-4, &took);
  stream.Synchronize();
  EXPECT_GT(took, 0);
}

TEST(VirtualTiming, WithoutAScopeTimeIsTheHosts) {
  Stream& stream = DefaultStream(Virtual()[0]);
  {
    const VirtualTimingScope scope(Linked(1e6, 0));
    stream.Transfer({1}, 0, 1000);
    stream.Synchronize();
  }
  const Timer timer;
  const Event begin = stream.Record();
  stream.Transfer({1}, 0, std::size_t{1} << 40);
  double took = 0;
  Compute(stream, 1e-4, &took);
  const double lasted = Seconds(begin, stream.Record());
  EXPECT_GE(lasted, took);
  EXPECT_LE(lasted, timer.Seconds());
}

TEST(VirtualTiming, RefusesWhatMakesNoSense) {
  const auto refusal = [](const VirtualTiming& timing) -> std::string {
    try {
      const VirtualTimingScope scope(timing);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return "";
  };
  VirtualTiming timing;
  timing.pace = -1;
  EXPECT_THAT(refusal(timing), HasSubstr("a pace of -1; it must be 0 or more"));
  timing.pace = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refusal(timing), HasSubstr("a pace of nan"));
  timing.pace = 0;
  timing.links = Topology::Ring(2, 1e9);
  EXPECT_THAT(refusal(timing),
              HasSubstr("cpu:2 is not in a ring of 2 devices"));
  const VirtualTimingScope scope(Paced());
  EXPECT_THAT(refusal(Paced()), HasSubstr("there is a scope already"));
}

}  // namespace
}  // namespace d2l
