// How a program that has GPUs, or models of them, ends. Each case is a process
// of its own, whose device table has been made by main.

#include <atomic>
#include <cstdlib>
#include <stdexcept>

#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/stream.h"
#include "common/device/testing/testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

std::atomic<int> ran{0};

// Destroyed after the streams have been stopped.
struct Leftovers {
  ~Leftovers() {
    if (stream == nullptr) return;
    stream->HostCallback([] { ++ran; });
    stream->Wait(event);
    stream->Record().Synchronize();
    event.Synchronize();
    stream->Synchronize();
  }
  Event event;
  Stream* stream = nullptr;
} leftovers;

class ExitTest : public testing::Test {
 protected:
  ExitTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

void QueueEverywhere() {
  for (const Device device : AllDevices()) {
    for (int i = 0; i < 2000; ++i) {
      DefaultStream(device).HostCallback([] { ++ran; });
    }
  }
}

TEST_F(ExitTest, WithWorkQueuedOnEveryDevice) {
  EXPECT_EXIT(
      {
        QueueEverywhere();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

// Both streams are full of work, each waiting for the other again and again.
TEST_F(ExitTest, WithStreamsThatWaitForEachOther) {
  EXPECT_EXIT(
      {
        Stream& a = DefaultStream(AllDevices().front());
        Stream& b = NewStream(AllDevices().back());
        for (int i = 0; i < 300; ++i) {
          a.HostCallback([] { ++ran; });
          b.Wait(a.Record());
          b.HostCallback([] { ++ran; });
          a.Wait(b.Record());
        }
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(ExitTest, WithAFailureNobodyHasSeen) {
  EXPECT_EXIT(
      {
        Stream& stream = DefaultStream(AllDevices().front());
        stream.HostCallback([] { throw std::runtime_error("alas"); });
        stream.Record().state()->Block();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "Unreported asynchronous error: host_callback .*alas");
}

// The object that would release the stream is not destroyed before.
TEST_F(ExitTest, WithAStreamHeldUp) {
  EXPECT_EXIT(
      {
        Stream& stream = DefaultStream(AllDevices().front());
        // volatile: otherwise the compiler removes the unread pointer, and the
        // object counts as a leak.
        [[maybe_unused]] static StreamStall* volatile held = nullptr;
        held = new StreamStall(stream);
        stream.HostCallback([] { ++ran; });
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

TEST_F(ExitTest, WithObjectsThatUseStreamsWhenTheyAreStopped) {
  EXPECT_EXIT(
      {
        QueueEverywhere();
        leftovers.stream = &DefaultStream(AllDevices().front());
        leftovers.event = DefaultStream(AllDevices().back()).Record();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace d2l
