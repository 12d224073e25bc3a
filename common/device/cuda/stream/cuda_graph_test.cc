// CudaGraph on a model of a GPU.

#include "common/device/cuda/stream/cuda_graph.h"

#include <array>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/device/cpu/cpu_stream.h"
#include "common/device/cuda/cuda_errors.h"
#include "common/device/cuda/cuda_gpu.h"
#include "common/device/cuda/fake/fake_cuda.h"
#include "common/device/cuda/stream/cuda_stream.h"
#include "common/device/failure.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CudaGraphTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(cuda_.violations(), IsEmpty()); }

  void Launch(std::function<void()> kernel) {
    stream_->Launch(OpLabel("kernel", SourceLocation("net.cc", 88)),
                    [&](const CudaLaunch& to) {
                      cuda_.LaunchKernel(to.stream, std::move(kernel));
                    });
  }
  // Launches that append these numbers to seen_.
  std::function<void()> Numbers(std::vector<int> numbers) {
    return [this, numbers] {
      for (const int n : numbers) Launch([this, n] { seen_.push_back(n); });
    };
  }
  std::uint64_t Run(const CudaGraph& graph) {
    return stream_->Launch(OpLabel("program"),
                           [&](const CudaLaunch& to) { graph.Launch(to); });
  }
  // The message of why the graph cannot be made.
  std::string WhyNot(const std::function<void()>& launches) {
    try {
      const CudaGraph graph(*stream_, launches);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "it can";
  }
  // The stream and the thread work as before.
  void ExpectAsBefore() {
    seen_.clear();
    Numbers({1, 2})();
    stream_->Synchronize();
    EXPECT_THAT(seen_, ElementsAre(1, 2));
    const CudaGraph graph(*stream_, Numbers({3}));
    Run(graph);
    stream_->Synchronize();
    EXPECT_THAT(seen_, ElementsAre(1, 2, 3));
  }

  FakeCuda cuda_;
  CudaGpu gpu_{cuda_, 0, "sm_75", 4, {800, 900}};
  std::unique_ptr<CudaStream> stream_ = std::make_unique<CudaStream>(
      gpu_, Device{DeviceType::kCuda, 0}, 1, StreamOptions());
  std::vector<int> seen_;  // on the stream
};

TEST_F(CudaGraphTest, RunsWhatWasRecordedAgainAndAgain) {
  const CudaGraph graph(*stream_, Numbers({1, 2, 3}));
  stream_->Synchronize();
  EXPECT_THAT(seen_, IsEmpty()) << "recorded, not run";
  Numbers({4})();
  Run(graph);
  Numbers({5})();
  Run(graph);
  stream_->Synchronize();
  EXPECT_THAT(seen_, ElementsAre(4, 1, 2, 3, 5, 1, 2, 3));
}

TEST_F(CudaGraphTest, MayBeEmpty) {
  const CudaGraph graph(*stream_, [] {});
  Run(graph);
  stream_->Synchronize();
}

// One call launches all of it, without checkpoints in between; another one
// before it if an error may be reported.
TEST_F(CudaGraphTest, IsOneOperationAndOneCall) {
  for (const bool may_report : {false, true}) {
    seen_.clear();
    const std::int64_t events = cuda_.Calls("RecordEvent");
    const CudaGraph graph(*stream_, Numbers(std::vector<int>(100, 1)),
                          may_report);
    EXPECT_EQ(cuda_.Calls("RecordEvent"), events);
    const std::int64_t calls = cuda_.Calls("");
    const std::int64_t graphs = cuda_.Calls("LaunchGraph");
    Run(graph);
    EXPECT_EQ(cuda_.Calls("LaunchGraph"), graphs + 1);
    EXPECT_EQ(cuda_.Calls("WriteWord"), may_report ? 1 : 0);
    EXPECT_EQ(cuda_.Calls(""), calls + (may_report ? 3 : 2))
        << "and TakeLaunchError";
    stream_->Synchronize();
    EXPECT_EQ(seen_.size(), 100u);
  }
}

TEST_F(CudaGraphTest, NobodyWaitsForWhatIsBehindOneWithALongKernel) {
  const CudaGraph graph(*stream_, [this] {
    Numbers({1})();
    stream_->Launch(OpLabel("product"), [this](const CudaLaunch& to) {
      cuda_.LaunchKernel(to.stream, [] {});
      internal::long_kernel_launched = true;
    });
    Numbers({2})();
  });
  stream_->Synchronize();
  const std::uint64_t number = Run(graph);
  std::promise<void> gate;
  Launch([open = gate.get_future().share()] { open.wait(); });
  stream_->WaitFor(number);  // would hang
  EXPECT_THAT(seen_, ElementsAre(1, 2));
  gate.set_value();
  stream_->Synchronize();
}

TEST_F(CudaGraphTest, QueuedLaunchesOutliveIt) {
  std::optional<CudaGraph> graph;
  graph.emplace(*stream_, Numbers({1, 2}));
  std::promise<void> gate;
  Launch([open = gate.get_future().share()] { open.wait(); });
  Run(*graph);
  Run(*graph);
  graph.reset();
  EXPECT_EQ(cuda_.Calls("DestroyGraph"), 1);
  gate.set_value();
  stream_->Synchronize();
  EXPECT_THAT(seen_, ElementsAre(1, 2, 1, 2));
}

TEST_F(CudaGraphTest, OtherThreadsEnqueueMeanwhile) {
  const CudaGraph graph(*stream_, [&] {
    Numbers({1})();
    std::thread([this] {
      Numbers({7})();
      stream_->Synchronize();
    }).join();
    Numbers({2})();
  });
  EXPECT_THAT(seen_, ElementsAre(7));
  Run(graph);
  stream_->Synchronize();
  EXPECT_THAT(seen_, ElementsAre(7, 1, 2));
}

TEST_F(CudaGraphTest, SeveralThreadsRecord) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int k = 0; k < 20; ++k) {
        const CudaGraph graph(*stream_, Numbers({2 * i, 2 * i + 1}));
        Run(graph);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stream_->Synchronize();
  ASSERT_EQ(seen_.size(), 160u);
  for (std::size_t k = 0; k < seen_.size(); k += 2) {
    EXPECT_EQ(seen_[k] % 2, 0);
    EXPECT_EQ(seen_[k + 1], seen_[k] + 1);
  }
}

TEST_F(CudaGraphTest, TakesNothingButLaunches) {
  const auto other = std::make_unique<CudaStream>(
      gpu_, Device{DeviceType::kCuda, 0}, 2, StreamOptions());
  CpuStream cpu(Device(DeviceType::kCpu, 0), 1, StreamOptions());
  int number = 0;
  const std::function<void()> refused[] = {
      [&] { stream_->Record(); },
      [&] { stream_->Wait(Event()); },
      [&] { stream_->HostCallback([] {}); },
      [&] { stream_->Synchronize(); },
      [&] { stream_->CopyAsync(&number, &number, 1, CopyKind::kHostToDevice); },
      [&] { CudaGraph inner(*stream_, [] {}); },
      [&] { other->Launch(OpLabel("other"), [](const CudaLaunch&) {}); },
      [&] { cpu.Enqueue(OpLabel("add"), [] {}); },
      [&] { cpu.CopyAsync(&number, &number, 1, CopyKind::kDeviceToDevice); }};
  for (const auto& call : refused) {
    EXPECT_THAT(WhyNot([&] {
                  Numbers({9})();
                  call();
                }),
                HasSubstr("captures this thread's"));
    ExpectAsBefore();
  }
  // Every graph has been destroyed.
  EXPECT_EQ(cuda_.Calls("DestroyGraph"), cuda_.Calls("EndCapture"));
}

TEST_F(CudaGraphTest, GoesOnBehindAProgramThatIsCapturedMeanwhile) {
  class Sink : public StreamCapture {
   public:
    std::uint64_t Capture(CpuStream&, const OpLabel&,
                          std::function<void()>) override {
      return ++tasks;
    }
    std::uint64_t tasks = 0;
  } sink;
  CpuStream cpu(Device(DeviceType::kCpu, 0), 1, StreamOptions());
  const CudaGraph graph(*stream_, [&] {
    {
      const ScopedStreamCapture scope(sink);
      cpu.Enqueue(OpLabel("add"), [] {});
    }
    Numbers({1})();
  });
  stream_->Synchronize();
  EXPECT_EQ(sink.tasks, 1u);
  EXPECT_THAT(seen_, IsEmpty()) << "it is recorded, not run";
  Run(graph);
  stream_->Synchronize();
  EXPECT_THAT(seen_, ElementsAre(1));
  ExpectAsBefore();
}

TEST_F(CudaGraphTest, SaysWhatCudaDoesNotDo) {
  const auto fail = [&](const char* function, int error) {
    cuda_.FailNext(function, error);
    return WhyNot(Numbers({1, 2}));
  };
  EXPECT_EQ(fail("CreateStream", kCudaMemoryAllocation),
            "CUDA does not make a stream to record: cudaErrorMemoryAllocation: "
            "out of memory");
  ExpectAsBefore();
  EXPECT_EQ(fail("BeginCapture", kCudaNotPermitted),
            "CUDA does not record a graph: error 800");
  ExpectAsBefore();
  EXPECT_EQ(fail("LaunchKernel", kCudaStreamCaptureUnsupported),
            "CUDA does not record kernel, requested at net.cc:88: error 900");
  ExpectAsBefore();
  EXPECT_EQ(fail("EndCapture", kCudaStreamCaptureInvalidated),
            "CUDA does not record a graph: error 901");
  ExpectAsBefore();
}

TEST_F(CudaGraphTest, ALaunchThatFailsIsTheCallers) {
  const CudaGraph graph(*stream_, Numbers({1}));
  cuda_.FailNext("LaunchGraph", kCudaMemoryAllocation);
  try {
    Run(graph);
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, "program");
    EXPECT_THAT(error.what(), HasSubstr("CUDA does not launch a graph: "
                                        "cudaErrorMemoryAllocation"));
  }
  Run(graph);
  stream_->Synchronize();
  EXPECT_THAT(seen_, ElementsAre(1));
}

TEST_F(CudaGraphTest, TheGpuIsLost) {
  std::optional<CudaGraph> graph;
  graph.emplace(*stream_, [this] {
    Launch([this] { cuda_.Crash(0, kCudaIllegalAddress); });
    Launch([] {});
  });
  const auto run = [&] {
    Run(*graph);  // which may see it already
    stream_->Synchronize();
  };
  EXPECT_THROW(run(), AsyncError);
  const std::int64_t calls = cuda_.Calls("DestroyGraph");
  graph.reset();
  EXPECT_EQ(cuda_.Calls("DestroyGraph"), calls);
  EXPECT_THAT(WhyNot(Numbers({1})), HasSubstr("cudaErrorIllegalAddress"));
}

// ---- Errors that kernels of a graph report.

class GraphErrorTest : public CudaGraphTest {
 protected:
  // A stream with a graph of three kernels, of which a run's bit k says that
  // kernel k, from 1 on, requested at net.cc:10k, reports an error.
  struct Replays {
    std::unique_ptr<CudaStream> stream;
    std::unique_ptr<CudaGraph> graph;
    std::shared_ptr<std::array<int, 1000>> wrong =
        std::make_shared<std::array<int, 1000>>();  // bits, by run
    int runs = 0;                                   // so far
    std::shared_ptr<int> run = std::make_shared<int>(0);
  };
  Replays Make(int index) {
    Replays made;
    made.stream = std::make_unique<CudaStream>(
        gpu_, Device{DeviceType::kCuda, 0}, index, StreamOptions());
    made.graph = std::make_unique<CudaGraph>(*made.stream, [&] {
      for (int k = 1; k <= 3; ++k) {
        OpLabel label("embedding", SourceLocation("net.cc", 10 * k));
        label.AddInput({k, 2});
        made.stream->Launch(label, [&](const CudaLaunch& to) {
          cuda_.LaunchKernel(to.stream, [errors = to.errors, k,
                                         wrong = made.wrong, run = made.run] {
            if (((*wrong)[*run] >> k & 1) != 0) {
              ReportFromHost(errors, DeviceError::kIndexOutOfRange, *run, k, 3);
            }
            if (k == 3) ++*run;
          });
        });
      }
    });
    return made;
  }
  // wrong: a bit for each kernel that reports.
  std::uint64_t Run(Replays& on, int wrong) {
    (*on.wrong)[on.runs++] = wrong;
    return on.stream->Launch(
        OpLabel("program", SourceLocation("main.cc", 1)),
        [&](const CudaLaunch& to) { on.graph->Launch(to); });
  }
  // Waits until the operation is done; "" if it has not failed.
  static std::string ErrorOf(Replays& on, std::uint64_t number) {
    try {
      on.stream->Finish(number, "Item", {});
      return "";
    } catch (const AsyncError& error) {
      return error.failure().ToString();
    }
  }
  // Of kernel `k` in operation `number`.
  static std::string Expected(const std::string& stream, std::uint64_t number,
                              int k, int run) {
    return absl::StrCat("embedding (operation ", number, " of stream ", stream,
                        ", requested at net.cc:", 10 * k, ", input (", k,
                        ", 2)) failed: index ", k, " at position ", run,
                        " is out of range; valid are 0..2");
  }
};

TEST_F(GraphErrorTest, NamesTheOperationOfTheGraph) {
  Replays on = Make(2);
  for (int round = 0; round < 20; ++round) {
    const int k = 1 + round % 3;
    const std::uint64_t good = Run(on, 0);
    // Kernels behind the first one that reports see its garbage.
    const std::uint64_t bad = Run(on, (1 << k) | (1 << 3));
    const std::uint64_t behind = Run(on, 1 << 1);
    EXPECT_EQ(ErrorOf(on, good), "");
    EXPECT_EQ(ErrorOf(on, behind), Expected("cuda:0/2", bad, k, 3 * round + 1));
    EXPECT_NE(on.stream->FailureOf(behind), nullptr);
    EXPECT_EQ(on.stream->FailureOf(good), nullptr);
  }
}

// The record that a launch uses is the one that is in use at its call.
TEST_F(GraphErrorTest, ALaunchBehindAReportHidesNoErrorAndIsNotHidden) {
  Replays on = Make(2);
  const std::uint64_t first = Run(on, 1 << 1);
  on.stream->Record();
  std::promise<void> gate;
  on.stream->Launch(OpLabel("gate"), [&](const CudaLaunch& to) {
    cuda_.LaunchKernel(to.stream,
                       [open = gate.get_future().share()] { open.wait(); });
  });
  const std::uint64_t late = Run(on, 1 << 2);  // a consequence of `first`
  EXPECT_EQ(ErrorOf(on, first), Expected("cuda:0/2", first, 1, 0));
  const std::uint64_t good = Run(on, 0);
  const std::uint64_t second = Run(on, 1 << 3);
  gate.set_value();
  EXPECT_EQ(ErrorOf(on, second), Expected("cuda:0/2", second, 3, 3));
  EXPECT_EQ(on.stream->FailureOf(late)->number, first);
  EXPECT_EQ(on.stream->FailureOf(good), nullptr);
  EXPECT_EQ(ErrorOf(on, Run(on, 0)), "");
}

TEST_F(GraphErrorTest, OfAnOperationBesideGraphs) {
  Replays on = Make(2);
  const auto fail = [&] {
    return on.stream->Launch(
        OpLabel("gather", SourceLocation("net.cc", 7)),
        [&](const CudaLaunch& to) {
          cuda_.LaunchKernel(to.stream, [errors = to.errors] {
            ReportFromHost(errors, DeviceError::kDivisionByZero, 5);
          });
        });
  };
  for (int round = 0; round < 4; ++round) {
    Run(on, 0);
    const std::uint64_t bad = fail();
    const std::uint64_t behind = Run(on, 1 << 2);
    EXPECT_EQ(ErrorOf(on, behind),
              absl::StrCat("gather (operation ", bad,
                           " of stream cuda:0/2, requested at net.cc:7) "
                           "failed: division by zero at element 5"));
    const std::uint64_t replay = Run(on, 1 << 2);
    EXPECT_EQ(ErrorOf(on, fail()),
              Expected("cuda:0/2", replay, 2, 3 * round + 2));
  }
}

TEST_F(GraphErrorTest, OfTwoGraphsThatGoBeforeTheirLaunches) {
  Replays on = Make(2), other = Make(2);
  other.graph = std::make_unique<CudaGraph>(*on.stream, [&] {
    on.stream->Launch(OpLabel("cross_entropy", SourceLocation("net.cc", 99)),
                      [&](const CudaLaunch& to) {
                        cuda_.LaunchKernel(to.stream, [errors = to.errors] {
                          ReportFromHost(errors, DeviceError::kLabelOutOfRange,
                                         1, 10, 10);
                        });
                      });
  });
  std::promise<void> gate;
  on.stream->Launch(OpLabel("gate"), [&](const CudaLaunch& to) {
    cuda_.LaunchKernel(to.stream,
                       [open = gate.get_future().share()] { open.wait(); });
  });
  Run(on, 0);
  const std::uint64_t bad =
      on.stream->Launch(OpLabel("program"),
                        [&](const CudaLaunch& to) { other.graph->Launch(to); });
  Run(on, 1 << 1);
  on.graph.reset();
  other.graph.reset();
  gate.set_value();
  EXPECT_EQ(ErrorOf(on, bad),
            absl::StrCat("cross_entropy (operation ", bad,
                         " of stream cuda:0/2, requested at net.cc:99) failed: "
                         "label 10 of sample 1 is out of range; there are 10 "
                         "classes, from 0 on"));
}

TEST_F(GraphErrorTest, StreamsFailByThemselvesAndPoisonThoseThatWait) {
  Replays one = Make(2), two = Make(3);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t good = Run(two, 0);
    const std::uint64_t bad = Run(one, 1 << 2);
    const std::uint64_t own = Run(two, 1 << 3);
    EXPECT_EQ(ErrorOf(two, good), "");
    EXPECT_EQ(ErrorOf(two, own), Expected("cuda:0/3", own, 3, 3 * round + 1));
    // A replay that waits for a failed one has failed with it, whatever its
    // own kernels find in the garbage.
    two.stream->Wait(one.stream->Record());
    const std::uint64_t poisoned = Run(two, 1 << 1);
    EXPECT_EQ(ErrorOf(two, poisoned), Expected("cuda:0/2", bad, 2, 2 * round));
    EXPECT_EQ(ErrorOf(one, bad), Expected("cuda:0/2", bad, 2, 2 * round));
    EXPECT_EQ(ErrorOf(one, Run(one, 0)), "");
  }
}

TEST_F(GraphErrorTest, AnErrorIsKnownWithoutAWaitForTheRest) {
  Replays on = Make(2);
  const std::uint64_t bad = Run(on, 1 << 2);
  const Event behind = on.stream->Record();
  std::promise<void> gate;
  on.stream->Launch(OpLabel("gate"), [&](const CudaLaunch& to) {
    cuda_.LaunchKernel(to.stream,
                       [open = gate.get_future().share()] { open.wait(); });
  });
  EXPECT_EQ(ErrorOf(on, bad), Expected("cuda:0/2", bad, 2, 0));
  gate.set_value();
  on.stream->Synchronize();
}

TEST_F(GraphErrorTest, TheWordIsNotWritten) {
  Replays on = Make(2);
  cuda_.FailNext("WriteWord", kCudaMemoryAllocation);
  try {
    Run(on, 0);
    FAIL() << "nothing thrown";
  } catch (const AsyncError& error) {
    EXPECT_EQ(error.failure().operation, "program");
    EXPECT_THAT(error.what(), HasSubstr("cudaErrorMemoryAllocation"));
  }
  EXPECT_EQ(cuda_.Calls("LaunchGraph"), 0);
  on.runs = 0;
  const std::uint64_t bad = Run(on, 1 << 2);
  EXPECT_EQ(ErrorOf(on, bad), Expected("cuda:0/2", bad, 2, 0));
}

}  // namespace
}  // namespace d2l
