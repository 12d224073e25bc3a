// Tests that the model of CUDA refuses while a stream is captured what CUDA
// refuses. The streams' own tests show the rest of the model.

#include "common/device/cuda/fake/fake_cuda.h"

#include "common/device/cuda/cuda_errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::AnyOf;
using testing::IsEmpty;

class CaptureTest : public testing::Test {
 protected:
  CaptureTest() {
    cuda_.SetDevice(0);
    cuda_.CreateStream(&stream_);
    cuda_.CreateStream(&other_);
    cuda_.CreateEvent(false, &event_);
    EXPECT_EQ(cuda_.BeginCapture(stream_), 0);
  }
  ~CaptureTest() override {
    cuda_.DestroyStream(stream_);
    cuda_.DestroyStream(other_);
  }
  // Every call fails from then on, until the capture ends.
  void ExpectSpoiled() {
    EXPECT_EQ(cuda_.RecordEvent(event_, stream_),
              kCudaStreamCaptureInvalidated);
    cuda_.LaunchKernel(stream_, [] {});
    EXPECT_EQ(cuda_.TakeLaunchError(), kCudaStreamCaptureInvalidated);
    EXPECT_EQ(cuda_.EndCapture(stream_, &graph_),
              kCudaStreamCaptureInvalidated);
    cuda_.LaunchKernel(stream_, [] {});
    EXPECT_EQ(cuda_.TakeLaunchError(), 0);
    EXPECT_THAT(cuda_.violations(), IsEmpty());
  }

  FakeCuda cuda_;
  CudaStreamHandle stream_ = nullptr;
  CudaStreamHandle other_ = nullptr;
  CudaEventHandle event_ = nullptr;
  CudaGraphHandle graph_ = nullptr;
};

TEST_F(CaptureTest, AnEventOfItCannotBeAskedFor) {
  EXPECT_EQ(cuda_.RecordEvent(event_, stream_), 0);
  EXPECT_EQ(cuda_.WaitEvent(stream_, event_), 0) << "an order within it";
  EXPECT_EQ(cuda_.QueryEvent(event_), kCudaCapturedEvent);
  ExpectSpoiled();
}

TEST_F(CaptureTest, AnEventOfItCannotBeWaitedFor) {
  EXPECT_EQ(cuda_.RecordEvent(event_, stream_), 0);
  EXPECT_EQ(cuda_.SynchronizeEvent(event_), kCudaCapturedEvent);
  ExpectSpoiled();
}

TEST_F(CaptureTest, ItCannotWaitForWhatIsOutside) {
  EXPECT_EQ(cuda_.RecordEvent(event_, other_), 0);
  EXPECT_THAT(cuda_.QueryEvent(event_), AnyOf(0, kCudaNotReady));
  EXPECT_EQ(cuda_.WaitEvent(stream_, event_), kCudaStreamCaptureIsolation);
  ExpectSpoiled();
}

TEST_F(CaptureTest, PageableMemoryCannotBeCopied) {
  char from = 0, to = 0;
  EXPECT_EQ(cuda_.CopyAsync(&to, &from, 1, stream_),
            kCudaStreamCaptureUnsupported);
  ExpectSpoiled();
}

TEST_F(CaptureTest, BeginsAndEndsOnce) {
  EXPECT_EQ(cuda_.BeginCapture(stream_), kCudaIllegalState);
  EXPECT_EQ(cuda_.EndCapture(stream_, &graph_), 0);
  EXPECT_EQ(cuda_.EndCapture(stream_, &graph_), kCudaIllegalState);
}

// In relaxed mode.
TEST_F(CaptureTest, MemoryCanBeAllocatedMeanwhile) {
  void* data = nullptr;
  EXPECT_EQ(cuda_.Allocate(100, &data), 0);
  EXPECT_EQ(cuda_.EndCapture(stream_, &graph_), 0);
  EXPECT_EQ(cuda_.Free(data), 0);
}

TEST_F(CaptureTest, ADestroyedGraphCannotBeLaunched) {
  EXPECT_EQ(cuda_.EndCapture(stream_, &graph_), 0);
  EXPECT_EQ(cuda_.DestroyGraph(graph_), 0);
  EXPECT_EQ(cuda_.LaunchGraph(graph_, other_), kCudaInvalidValue);
  EXPECT_EQ(cuda_.DestroyGraph(graph_), kCudaInvalidValue);
  EXPECT_EQ(cuda_.violations().size(), 2u);
}

}  // namespace
}  // namespace d2l
