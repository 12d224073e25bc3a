// The examples in public headers, compiled and run. Between "Example of FILE"
// and "End of example" stands the code of a block in FILE's first comment, line
// for line.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/autograd/checkpoint.h"
#include "common/autograd/gradient_rules.h"
#include "common/autograd/tape.h"
#include "common/base/console/command_line.h"
#include "common/base/console/format.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/files/fnv1a.h"
#include "common/base/mutex.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"
#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/data/prefetcher.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/event.h"
#include "common/device/failure.h"
#include "common/device/listener.h"
#include "common/device/stream.h"
#include "common/device/stream_stall.h"
#include "common/device/topology.h"
#include "common/drawing/bars.h"
#include "common/drawing/graph_drawing.h"
#include "common/drawing/graphviz.h"
#include "common/drawing/html_timeline.h"
#include "common/drawing/plot.h"
#include "common/drawing/roofline.h"
#include "common/drawing/sectors.h"
#include "common/drawing/svg.h"
#include "common/drawing/text_canvas.h"
#include "common/drawing/timeline.h"
#include "common/graph/captured.h"
#include "common/graph/generated/cpp_code.h"
#include "common/graph/generated/load_cpp.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/graph/program_graph.h"
#include "common/graph/saved/saved.h"
#include "common/graph/trace.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/host_library.h"
#include "common/lesson/cell/trace_program.h"
#include "common/nn/checkpoint.h"
#include "common/nn/hybrid.h"
#include "common/nn/layers.h"
#include "common/nn/models.h"
#include "common/nn/module.h"
#include "common/nn/sgd.h"
#include "common/nn/state_dict.h"
#include "common/ops/creation.h"
#include "common/ops/nn/functional.h"
#include "common/ops/no_grad.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/fields.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/primitives.h"
#include "common/ops/primitive/record.h"
#include "common/ops/primitive/reject.h"
#include "common/ops/primitive/replay.h"
#include "common/parallel/collective/collective.h"
#include "common/parallel/collective/schedule.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/parallel/data_parallel/kv_store.h"
#include "common/parallel/data_parallel/split_batch.h"
#include "common/parallel/simulator/simulator.h"
#include "common/profiler/export.h"
#include "common/profiler/key_averages.h"
#include "common/profiler/peaks.h"
#include "common/profiler/profile.h"
#include "common/profiler/profiler.h"
#include "common/profiler/race_checker.h"
#include "common/safetensors/safetensors.h"
#include "common/tensor/dtype.h"
#include "common/tensor/scalar.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

// Headers whose indented lines are tables or diagrams, or whose examples need
// what a test of this kind does not have: a program's main, a registration, a
// tool beside the GPU.
const std::set<std::string>& NotCompiled() {
  static const auto& headers = *new std::set<std::string>{
      "common/base/files/atomic_file.h",
      "common/base/child_process.h",
      "common/base/event_count.h",
      "common/base/console/language.h",
      "common/base/listener_list.h",
      "common/base/machine.h",
      "common/base/source_location.h",
      "common/base/spin_wait.h",
      "common/base/ticks.h",
      "common/base/undisturbed_timer.h",
      "common/device/backend.h",
      "common/device/failed_intervals.h",
      "common/device/memory/free_blocks.h",
      "common/device/memory/host_memory.h",
      "common/device/memory/memory.h",
      "common/device/nvtx_range.h",
      "common/device/op_label.h",
      "common/device/memory/storage.h",
      "common/graph/fused_args.h",
      "common/graph/strips.h",
      "common/lesson/cell/benchmark.h",
      "common/lesson/cell/cell.h",
      "common/lesson/run/flags.h",
      "common/lesson/cell/figure_drawings.h",
      "common/lesson/run/fresh_process.h",
      "common/lesson/cell/judge.h",
      "common/base/console/language.h",
      "common/lesson/text/lesson.h",
      "common/lesson/cell/other_load.h",
      "common/lesson/run/report.h",
      "common/lesson/run/run_profile.h",
      "common/lesson/run/runner.h",
      "common/lesson/text/source.h",
      "common/ops/compare.h",
      "common/ops/primitive/launch.h",
      "common/ops/ops.h",
      "common/ops/primitive/primitive.h",
      "common/ops/primitive/recording_tape.h",
      "common/parallel/data_parallel/buckets.h",
      "common/parallel/data_parallel/communicator.h",
      "common/parallel/data_parallel/replicas.h",
      "common/parallel/data_parallel/shards.h",
      "common/parallel/data_parallel/step.h",
      "common/parallel/nccl/nccl.h",
      "common/profiler/collector.h",
      "common/tensor/dtype.h",
  };
  return headers;
}

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// The comment that a header begins with.
std::vector<std::string> FirstComment(const std::string& path) {
  std::vector<std::string> lines = LinesOf(path);
  std::size_t end = 0;
  while (end < lines.size() && lines[end].rfind("//", 0) == 0) ++end;
  lines.resize(end);
  return lines;
}

bool IsIndented(const std::string& comment) {
  return comment.rfind("//   ", 0) == 0;
}

// Each example of this file as the lines of a comment, with its header.
std::vector<std::pair<std::string, std::vector<std::string>>> Examples() {
  const std::string kBegin = "// Example of ";
  std::vector<std::pair<std::string, std::vector<std::string>>> examples;
  bool inside = false;
  std::size_t indent = 0;
  for (const std::string& line : LinesOf("common/examples_test.cc")) {
    const std::size_t at = line.find_first_not_of(' ');
    if (!inside && at != std::string::npos &&
        line.compare(at, kBegin.size(), kBegin) == 0) {
      examples.push_back({line.substr(at + kBegin.size()), {}});
      indent = at;
      inside = true;
    } else if (inside && line.find("// End of example") == indent) {
      inside = false;
    } else if (inside) {
      examples.back().second.push_back(
          line.empty() ? "//" : "//   " + line.substr(indent));
    }
  }
  return examples;
}

TEST(Examples, StandInTheirHeaders) {
  const auto examples = Examples();
  EXPECT_GE(examples.size(), 40u);
  for (const auto& [header, example] : examples) {
    const std::vector<std::string> comment = FirstComment(header);
    const auto found = std::search(comment.begin(), comment.end(),
                                   example.begin(), example.end());
    if (found == comment.end()) {
      std::string text;
      for (const std::string& line : example) text += line + "\n";
      ADD_FAILURE() << header << " does not have this example; change it "
                    << "there or in common/examples_test.cc:\n"
                    << text;
      continue;
    }
    const auto behind = found + static_cast<int>(example.size());
    EXPECT_FALSE(IsIndented(*(found - 1))) << header << ": " << *(found - 1);
    EXPECT_FALSE(behind != comment.end() && IsIndented(*behind))
        << header << ": " << *behind;
  }
}

TEST(Examples, OfEveryHeaderAreCompiled) {
  std::set<std::string> compiled;
  for (const auto& [header, example] : Examples()) compiled.insert(header);
  std::set<std::string> seen;
  for (const char* folder :
       {"autograd", "base", "data", "device", "drawing", "graph", "lesson",
        "nn", "ops", "parallel", "profiler", "safetensors", "tensor"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::string("common/") + folder)) {
      const std::string path = entry.path().string();
      if (entry.path().extension() != ".h" ||
          path.find("testing.h") != std::string::npos) {
        continue;
      }
      seen.insert(path);
      const std::vector<std::string> comment = FirstComment(path);
      if (std::none_of(comment.begin(), comment.end(), IsIndented)) continue;
      EXPECT_NE(compiled.count(path) + NotCompiled().count(path), 0u)
          << path << " has an example that is not compiled; add it to "
          << "common/examples_test.cc";
    }
  }
  EXPECT_GT(seen.size(), 60u);
  for (const std::string& header : NotCompiled()) {
    EXPECT_EQ(seen.count(header), 1u) << header << " is no more";
    EXPECT_EQ(compiled.count(header), 0u) << header << " is compiled";
  }
}

// Examples show values without using them, and are laid out as comments are.
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-result"
// clang-format off

const Device kCpu(DeviceType::kCpu, 0);

// What the examples use. Their files go to the test's own folder.
class ExamplesTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::current_path(testing::TempDir()); }
  void TearDown() override { std::filesystem::current_path(home_); }

  const Device device = kCpu;
  const Tensor a = Ones({3, 3}, kCpu), b = Ones({3, 3}, kCpu);
  const Tensor batch = Ones({4, 3, 3}, kCpu);
  Tensor x = Ones({3, 3}, kCpu), y = Ones({3, 3}, kCpu), z;
  CellResult result;
  Cell cell{Size::kSmall, &result};

 private:
  const std::filesystem::path home_ = std::filesystem::current_path();
};

TEST_F(ExamplesTest, Base) {
  {
    // Example of common/base/statistics.h
    Summary s = Summarize({1.02, 0.98, 1.71, 1.00, 0.99, 1.01, 1.00});
    s.median;        // 1.00
    s.low, s.high;   // 0.98, 1.71: the median lies between them
    s.coverage;      // with this probability, 0.984
    // End of example
    EXPECT_EQ(s.median, 1.00);
    EXPECT_EQ(s.low, 0.98);
    EXPECT_EQ(s.high, 1.71);
    EXPECT_NEAR(s.coverage, 0.984, 1e-3);
  }
  {
    const TemporaryDirectory directory;
    ::setenv("BUILD_WORKING_DIRECTORY", directory.path().c_str(), 1);
    const int argc = 0;
    char** const argv = nullptr;
    const auto main = [&] {
      // Example of common/base/console/command_line.h
      // Before ParseCommandLine:
      if (AsksForHelp(argc, argv)) {
        std::cout << FlagHelp("bazel run //:course", {{"", {"devices"}}});
        return 0;
      }
      absl::Status status = CheckFlagNames(argc, argv, {"devices"});
      std::optional<AtomicFile> json, svg;
      status = OpenFlagFiles({{"json", "run.json", &json}, {"svg", "", &svg}});
      if (json.has_value()) json->Write("{}");
      // End of example
      EXPECT_TRUE(status.ok());
      EXPECT_TRUE(json->Commit().ok());
      EXPECT_FALSE(svg.has_value());
      return 1;
    };
    EXPECT_EQ(main(), 1);
    ::unsetenv("BUILD_WORKING_DIRECTORY");
    EXPECT_EQ(ReadFile(directory.path() + "/run.json"), "{}");
  }
  const auto Work = [] {};
  {
    // Example of common/base/timer.h
    Timer timer;
    Work();
    std::cout << timer.Seconds();
    // End of example
  }
  {
    // Example of common/base/mutex.h
    class Account {
     public:
      void Add(int n) {
        MutexLock lock(mutex_);
        balance_ += n;
      }

     private:
      Mutex mutex_;
      int balance_ ABSL_GUARDED_BY(mutex_) = 0;
    };
    // End of example
    Account().Add(1);
  }
  {
    // Example of common/base/files/fnv1a.h
    Fnv1a hash;
    hash.Update("foo");
    hash.Update("bar");
    std::string text = hash.Hex();  // "85944171f73967e8"
    // End of example
    EXPECT_EQ(text, "85944171f73967e8");
  }
  {
    // Example of common/base/console/text.h
    std::cout << Wrap("A long sentence …", "  ");
    WrapWords("A long sentence …", "Note: ", "      ", 80);
    EditDistance("kitten", "sitting");  // 3
    // End of example
    EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
  }
  {
    const Summary summary = Exactly(1);
    // Example of common/base/console/format.h
    FormatDuration(0.0123);       // "12.3 ms"
    FormatSummary(summary, "s");  // "12.3 ms [11.9, 13.0]"
    // End of example
    EXPECT_EQ(FormatDuration(0.0123), "12.3 ms");
    EXPECT_EQ(FormatSummary(summary, "s"), "1.00 s");
  }
}

TEST_F(ExamplesTest, Data) {
  {
    // Example of common/data/dataset.h
    Dataset training = GenerateImages(12'000);
    Dataset test = GenerateImages(2'000, /*seed=*/0, /*first=*/12'000);
    training.name;  // "generated data, seed 0"
    absl::StatusOr<Dataset> fashion =
        LoadFashionMnist("/data/fashion", DatasetSplit::kTraining);
    // End of example
    EXPECT_EQ(training.name, "generated data, seed 0");
    EXPECT_EQ(test.size(), 2000);
  }
  const Dataset data = GenerateImages(600);
  {
    // Example of common/data/loader.h
    DataLoader loader(data, {/*batch_size=*/256}, device);
    while (std::optional<Batch> batch = loader.Next()) {  // one epoch
      z = Mean(batch->images);  // float32 (256, 1, 28, 28); the last has 88
    }
    // End of example
    EXPECT_EQ(loader.position().epoch, 1);
  }
  {
    // Example of common/data/prefetcher.h
    int n = 0;
    Prefetcher<int> squares([&] { ++n; return n * n; }, /*depth=*/2);
    squares.Next();  // 1; the thread makes 4 and 9 meanwhile
    // End of example
    EXPECT_EQ(squares.Next(), 4);
  }
}

TEST_F(ExamplesTest, Device) {
  {
    // Example of common/device/device.h
    Device device = Device::Parse("cuda:1");
    device.type();      // DeviceType::kCuda
    device.ToString();  // "cuda:1"
    // End of example
    EXPECT_EQ(device.ToString(), "cuda:1");
  }
  {
    // Example of common/device/device_table.h
    absl::Status status = InitializeDevices("cpu:0,cpu:1");  // once, in main
    for (const DeviceInfo& info : Devices()) std::cout << info.Describe();
    Stream& stream = CurrentStream(Device::Parse("cpu:1"));
    Synchronize(stream.device());
    // End of example
  }
  Stream& stream = DefaultStream(kCpu);
  {
    Stream* const a = &stream;
    Stream* const b = &NewStream(kCpu);
    const Event begin = a->Record();
    const Event end = a->Record();
    // Example of common/device/event.h
    Event half = a->Record();    // when everything enqueued so far is done
    b->Wait(half);               // b's next work starts after that point
    half.Synchronize();          // or: this thread waits
    double ms = ElapsedTime(begin, end);
    // End of example
  }
  {
    // Example of common/device/failure.h
    try {
      Synchronize(device);
    } catch (const AsyncError& error) {
      std::cerr << error.what() << "\n";
      std::cerr << error.failure().requested_at.ToString() << "\n";
    }
    // End of example
  }
  {
    const int n = 3;
    // Example of common/device/stream_stall.h
    StreamStall stall(stream);
    for (int i = 0; i < n; ++i) y = x + 1;  // only queued
    stall.Release();                        // now it runs
    // End of example
  }
  {
    const int source[2] = {1, 2};
    int target[2] = {0, 0};
    const void* src = source;
    void* dst = target;
    const std::size_t bytes = sizeof(source);
    bool done = false;
    // Example of common/device/stream.h
    stream.CopyAsync(dst, src, bytes, CopyKind::kHostToDevice);
    stream.HostCallback([&] { done = true; });
    stream.Synchronize();  // until then, nothing above need have happened
    // End of example
    EXPECT_TRUE(done);
    EXPECT_EQ(target[1], 2);
  }
  {
    // Example of common/device/listener.h
    class Peak : public DeviceListener {
     public:
      void OnMemory(const MemoryRecord& record) noexcept override {
        peak = std::max(peak, record.allocated);
      }
      std::int64_t peak = 0;
    };
    Peak peak;
    {
      ScopedDeviceListener listen(&peak, DeviceListener::kMemory);
      Tensor z = x * y + 2;
    }
    // End of example
    EXPECT_GT(peak.peak, 0);
  }
}

TEST_F(ExamplesTest, Tensor) {
  {
    // Example of common/tensor/scalar.h
    Scalar two = 2;       // an integer
    Scalar half = 0.5;
    two.To<float>();      // 2.f
    half.FitsIn(DType::kInt64);  // false
    // End of example
    EXPECT_FALSE(half.FitsIn(DType::kInt64));
  }
  {
    // Example of common/tensor/shape.h
    Shape shape = {2, 3};
    shape.rank();      // 2
    shape[1];          // 3
    shape.numel();     // 6
    shape.ToString();  // "(2, 3)"
    // End of example
    EXPECT_EQ(shape.ToString(), "(2, 3)");
  }
  {
    // Example of common/tensor/tensor.h
    Tensor x = Ones({2, 3}, device);  // common/ops
    x.shape();                        // (2, 3)
    Tensor same = x;                  // a second handle, the same memory
    // End of example
  }
}

TEST_F(ExamplesTest, Ops) {
  {
    // Example of common/ops/creation.h
    const GeneratorState before = GetGeneratorState(device);
    Tensor x = Rand({3}, device);
    SetGeneratorState(before, device);
    Tensor same = Rand({3}, device);  // the numbers of x
    // End of example
    EXPECT_TRUE(Equal(x, same));
  }
  {
    // Example of common/ops/elementwise.h
    Tensor z = x * y + 2;
    Tensor clipped = Where(z > 1, 1, z);
    x += Exp(y);
    // End of example
  }
  {
    // Example of common/ops/creation.h
    Tensor x = Ones({2, 3}, device);
    Tensor a = Randn({1000, 1000}, device);
    Tensor labels = FromVector<std::int64_t>({3, 1, 2}, {3}, device);
    // End of example
    // Example of common/ops/copy.h
    Tensor there = To(x, Device::Parse("cpu:1"));
    Tensor floats = To(labels, DType::kFloat32);
    CopyTo(y, Select(batch, 0, 3));  // into part of a tensor
    // End of example
  }
  {
    Tensor x = Ones({5, 4}, device);
    const Tensor y = Ones({3}, device);
    // Example of common/ops/indexing.h
    Tensor row = x[3];
    x[3] = row * 2;                  // writes to x
    x[{kAll, 0}] = 1;                // a column: x[:, 0] = 1
    x[{0, Range{1, 4}}] += y;        // x[0, 1:4] += y
    // End of example
  }
  {
    const std::vector<Tensor> images(2, Ones({28, 28}, device));
    const std::vector<Tensor> matrices(2, Ones({10, 10}, device));
    const Tensor indices = FromVector<std::int64_t>({2, 0}, {2}, device);
    // Example of common/ops/joining.h
    Tensor batch = Stack(images);            // (n, 28, 28)
    Tensor cube = DStack(matrices);          // (10, 10, n)
    Tensor rows = IndexSelect(x, 0, indices);
    // End of example
  }
  {
    // Example of common/ops/matmul.h
    Tensor c = MatMul(a, b);
    Tensor gram = MatMul(x, T(x));  // T makes a view: nothing is copied
    // End of example
  }
  {
    const Tensor x = Ones({5, 4, 3}, device);
    // Example of common/ops/reduction.h
    Tensor total = Sum(x);              // of all elements, shape ()
    Tensor means = Mean(x, {0, 2});     // over two dimensions
    Tensor rows = Max(x, -1, /*keepdim=*/true);
    // End of example
  }
  {
    // Example of common/ops/nn/functional.h
    Tensor x = Randn({8, 1, 28, 28});      // (batch, channels, height, width)
    Tensor weight = Randn({20, 1, 5, 5});  // (out, in channels, height, width)
    Tensor y = Conv2d(x, weight, Zeros({20}));      // (8, 20, 24, 24)
    Conv2dOptions options;
    options.stride = 2;
    options.padding = Size2d(2, 1);
    Tensor z = Conv2d(x, weight, {}, options);      // (8, 20, 14, 13)
    Tensor mean = Zeros({20}), variance = Ones({20});
    y = BatchNorm(y, Ones({20}), Zeros({20}), mean, variance,
                  /*training=*/true);
    y = MaxPool2d(y, /*kernel=*/3, /*stride=*/2, /*padding=*/1);
    y = AvgPool2d(y, 2);                            // (8, 20, 6, 6)
    Tensor labels = RandInt(0, 10, {8});
    Tensor losses = CrossEntropy(Randn({8, 10}), labels);  // (8)
    // End of example
  }
  {
    Tensor running_mean = Ones({3}, device);
    // Example of common/ops/no_grad.h
    {
      const NoGradGuard guard;
      running_mean *= 0.9;
    }
    // End of example
  }
  {
    const Tensor x = Ones({5, 4}, device);
    // Example of common/ops/views.h
    Tensor rows = Slice(x, 0, 2, 5);       // x[2:5]
    Tensor column = Select(x, 1, 0);       // x[:, 0]
    Tensor flat = Reshape(x, {-1});
    // End of example
  }
  {
    const Tensor x = Ones({1}, device), y = Ones({1}, device);
    const Tensor z = Ones({1, 2}, device) * 3;
    // Example of common/ops/read.h
    double loss = Item(x);
    std::int64_t label = Item<std::int64_t>(y);
    std::vector<float> values = ToVector<float>(x);
    std::cout << z;   // tensor([[3., 3.]], device='cpu:0')
    std::string text = ToString(z);
    // End of example
    EXPECT_EQ(text, "tensor([[3., 3.]], device='cpu:0')");
  }
  {
    // Example of common/ops/primitive/record.h
    class Counter : public OpListener {
     public:
      void OnOp(const OpRecord& record) override { ++ops; }
      int ops = 0;
    };
    Counter counter;
    {
      ScopedOpListener listen(&counter);  // this thread's operations
      Tensor z = x * y + 2;
    }
    counter.ops;  // 2
    // End of example
    EXPECT_EQ(counter.ops, 2);
  }
  {
    // Example of common/ops/primitive/replay.h
    class Calls : public OpListener {
     public:
      void OnOp(const OpRecord& record) override {
        calls.push_back(ToCall(record));
      }
      std::vector<OpCall> calls;
    };
    Calls made;
    {
      ScopedOpListener listen(&made);
      Tensor z = x * y;
    }
    Tensor same = Replay(made.calls[0], {&x, &y});
    // End of example
    EXPECT_TRUE(Equal(same, x * y));
  }
  {
    // Example of common/ops/primitive/fields.h
    double alpha = 0.5, beta = 1;
    std::vector<Attribute> text;
    Fields write("axpby", &text);
    write("alpha", alpha)("beta", beta);  // alpha 0.5, beta 1.0
    Fields read("axpby", text);
    read("alpha", beta)("beta", alpha);   // so they are exchanged
    // End of example
    EXPECT_EQ(text, (std::vector<Attribute>{{"alpha", "0.5"}, {"beta", "1.0"}}));
    EXPECT_EQ(alpha, 1);
    EXPECT_EQ(beta, 0.5);
  }
  {
    const SourceLocation at = SourceLocation::Current();
    // Example of common/ops/primitive/primitives.h
    Tensor y = Apply(SoftmaxPrimitive(/*log=*/false, -1), {&x}, at);
    // End of example
    EXPECT_TRUE(Equal(y, Softmax(x, -1)));
  }
  {
    const SourceLocation at = SourceLocation::Current();
    const auto reject = [&] {
      // Example of common/ops/primitive/reject.h
      Reject("[matmul] inner sizes differ: %s @ %s", a.shape(), b.shape());
      RejectAt(at, "[item] one element wanted; got %s", x);
      // End of example
    };
    EXPECT_THROW(reject(), std::invalid_argument);
  }
  {
    // Example of common/ops/primitive/replay.h
    std::unique_ptr<Primitive> add =
        MakePrimitive("add", {{"second", "2"}}).value();
    Tensor y = Apply(*add, {&x}, SourceLocation::Current());
    // End of example
    EXPECT_TRUE(Equal(y, x + 2));
  }
}

TEST_F(ExamplesTest, Programs) {
  const Tensor w = a;
  {
    // Example of common/graph/trace.h
    const auto mlp = [&](const std::vector<Tensor>& x) -> std::vector<Tensor> {
      return {Relu(MatMul(x[0], w) + b)};
    };
    ir::Graph graph = ir::Trace(mlp, {x}, {"mlp", {{"w", w}, {"b", b}}});
    // End of example
    EXPECT_EQ(graph.weights.size(), 2u);
  }
  const auto fn = [](const std::vector<Tensor>& x) -> std::vector<Tensor> {
    return {Relu(x[0] * 2 + 1)};
  };
  {
    // Example of common/safetensors/safetensors.h
    absl::Status saved =
        safetensors::SaveFile({{"weight", w}, {"bias", b}}, "net.safetensors");
    auto file = safetensors::LoadFile("net.safetensors");
    Tensor bias = file->tensors["bias"];
    // End of example
    EXPECT_TRUE(saved.ok()) << saved;
    EXPECT_TRUE(Equal(bias, b));
  }
  {
    ir::Graph graph = ir::Trace(fn, {x});
    // Example of common/graph/saved/saved.h
    absl::Status saved = ir::SaveProgram(graph, "my_mlp");
    absl::StatusOr<ir::Graph> loaded = ir::LoadProgram("my_mlp");
    std::vector<Tensor> y = ir::Run(*loaded, {x});
    // End of example
    EXPECT_TRUE(saved.ok()) << saved;
    EXPECT_TRUE(Equal(y[0], fn({x})[0]));
  }
  {
    // Example of common/graph/ir.h
    ir::Function f("f");
    const ValueSpec spec = {{2, 3}, DType::kFloat32, Device()};
    const ir::ValueId x = f.AddArgument(ir::TypeOf(spec));
    f.returns = {f.AddOp(UnaryPrimitive(kernels::UnaryOp::kRelu), {x})};
    ir::Graph graph;
    graph.functions.push_back(f);
    // End of example
    EXPECT_NO_THROW(ir::Verify(graph));
  }
  {
    // Example of common/graph/passes/passes.h
    ir::Graph graph = ir::Trace(fn, {x});
    for (const ir::PassReport& report : ir::Optimize(graph)) {
      std::cout << report.ToString() << "\n";
    }
    // fuse: 1 operations, 36 bytes at the peak, 0.002 ms
    // End of example
    EXPECT_EQ(ir::CountOperations(graph), 1);
    {
      // Example of common/graph/captured.h
      ir::Captured captured(graph);
      std::vector<Tensor> y = captured.Run({x});  // asynchronous, as operations
      // End of example
      EXPECT_TRUE(Equal(y[0], fn({x})[0]));
    }
    {
      // Example of common/graph/generated/cpp_code.h
      ir::Optimize(graph);
      const ir::GeneratedCpp code = ir::GenerateCpp(graph);
      std::cout << code.source;  // to be read, and what a compiler gets
      // End of example
    }
    {
      const std::string source = "extern \"C\" int f_0() { return 7; }";
      const std::string directory = testing::TempDir() + "/cpp";
      ASSERT_EQ(setenv("D2L_CACHE_DIRECTORY", directory.c_str(), 1), 0);
      const auto load = [&]() -> absl::Status {
        // Example of common/graph/generated/load_cpp.h
        absl::StatusOr<ir::CompiledCpp> code =
            ir::LoadCpp(source, ir::CppFlags(), {});
        if (!code.ok()) return code.status();  // a sentence: why there is none
        void* const function = code->Function("f_0");
        // End of example
        EXPECT_EQ(reinterpret_cast<int (*)()>(function)(), 7);
        return absl::OkStatus();
      };
      const absl::Status status = load();
      EXPECT_TRUE(status.ok()) << status;
    }
    {
      // Example of common/graph/passes/passes.h
      ir::MemoryPlan plan = ir::PlanMemory(graph.main());
      plan.arena_bytes;  // how large the arena is
      // End of example
      EXPECT_EQ(plan.arena_bytes, 64);
    }
    {
      // Example of common/graph/program_graph.h
      ir::Optimize(graph, [](const std::string& pass, const ir::Graph& g) {
        std::cout << DrawGraph(ir::ToProgramGraph(g.main()), pass).text;
      });
      // End of example
    }
  }
}

TEST_F(ExamplesTest, Gradients) {
  {
    // Example of common/autograd/tape.h
    Tensor w = Randn({3});
    Tensor x = Randn({8, 3});
    GradientTape tape({w});
    Tensor loss = Sum(Square(MatMul(x, w)));
    std::vector<Tensor> grads = tape.Backward(loss);  // of w
    w -= grads[0] * 0.1;
    // End of example
    EXPECT_EQ(grads[0].shape(), w.shape());
  }
  {
    // Example of common/autograd/checkpoint.h
    Tensor w = Randn({3, 3});
    Tensor x = Randn({8, 3});
    GradientTape tape({w});
    Tensor y = Checkpoint(
        [w](const Tensor& x, bool) { return Relu(MatMul(x, w)); }, x);
    std::vector<Tensor> grads = tape.Backward(Sum(y));  // of w
    // End of example
    GradientTape without({w});
    EXPECT_EQ(ToVector<float>(grads[0]),
              ToVector<float>(without.Backward(Sum(Relu(MatMul(x, w))))[0]));
  }
  {
    const MatMulPrimitive primitive;
    // Example of common/autograd/gradient_rules.h
    const GradientRule* rule = FindGradientRule(primitive);
    rule->reads(primitive, 0);  // of the gradient of input 0: ReadsInput(1)
    // End of example
    EXPECT_EQ(rule->reads(primitive, 0), ReadsInput(1));
  }
}

TEST_F(ExamplesTest, Networks) {
  {
    // Example of common/nn/module.h
    class Mlp : public nn::Module {
     public:
      Tensor Forward(const Tensor& x) override {
        return output_(Relu(hidden_(x)));
      }
      std::string Name() const override { return "Mlp"; }
      void Members(nn::MemberVisitor& visitor) override {
        visitor.Child("hidden", hidden_);
        visitor.Child("output", output_);
      }

     private:
      nn::Linear hidden_{20, 256};
      nn::Linear output_{256, 10};
    };
    Mlp net;
    Tensor y = net(Ones({2, 20}));
    std::cout << net;                // as PyTorch prints it
    nn::NamedParameters(net);        // "hidden.weight", "hidden.bias", …
    nn::InitXavierUniform(net);      // its first values were PyTorch's
    net.Eval();                      // for Dropout and BatchNorm2d, in it
    // End of example
    EXPECT_EQ(y.shape(), (Shape{2, 10}));
    EXPECT_EQ(nn::NamedParameters(net)[1].first, "hidden.bias");
    EXPECT_EQ(Item(Sum(nn::Parameters(net)[1])), 0);
  }
  {
    nn::Linear net(4, 3);
    const Tensor images = Ones({2, 4});
    const Tensor labels = FromVector<std::int64_t>({2, 0}, {2});
    {
      // Example of common/nn/layers.h
      Tensor logits = net(images);  // of shape (n, classes)
      Tensor loss = nn::CrossEntropyLoss(logits, labels);  // one number
      // End of example
    }
    // Example of common/nn/sgd.h
    nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.1, /*momentum=*/0.9});
    GradientTape tape(nn::Parameters(net));
    Tensor loss = nn::CrossEntropyLoss(net(images), labels);
    sgd.Step(tape.Backward(loss));
    // End of example
    EXPECT_LT(Item(nn::CrossEntropyLoss(net(images), labels)), Item(loss));
  }
  {
    // Example of common/nn/checkpoint.h
    nn::Sequential net(
        nn::Checkpoint(nn::Sequential(nn::Linear(20, 256), nn::ReLU(),
                                      nn::Linear(256, 256), nn::ReLU())),
        nn::Linear(256, 10));
    // End of example
    EXPECT_EQ(net(Ones({2, 20})).shape(), (Shape{2, 10}));
  }
  {
    // Example of common/nn/layers.h
    nn::Sequential net(nn::Linear(512, 256), nn::ReLU(), nn::Linear(256, 2));
    Tensor y = net(Randn({8, 512}));  // of shape (8, 2)
    std::cout << net;
    // Sequential(
    //   (0): Linear(in_features=512, out_features=256, bias=True)
    //   (1): ReLU()
    //   (2): Linear(in_features=256, out_features=2, bias=True)
    // )
    // End of example
    EXPECT_EQ(y.shape(), (Shape{8, 2}));
  }
  {
    // Example of common/nn/layers.h
    nn::Sequential net(nn::Conv2d(1, 20, /*kernel_size=*/3),
                       nn::BatchNorm2d(20), nn::ReLU(), nn::MaxPool2d(2),
                       nn::GlobalAvgPool2d(), nn::Flatten());
    Tensor y = net(Randn({8, 1, 28, 28}));  // of shape (8, 20)
    // End of example
    EXPECT_EQ(y.shape(), (Shape{8, 20}));
  }
  {
    // Example of common/nn/models.h
    nn::Sequential net = nn::LeNet();
    Tensor logits = net(Randn({8, 1, 28, 28}));  // of shape (8, 10)
    // End of example
    EXPECT_EQ(logits.shape(), (Shape{8, 10}));
  }
  {
    nn::Linear net(4, 3);
    // Example of common/nn/state_dict.h
    absl::Status saved = nn::SaveStateDict(net, "net.safetensors");
    auto keys = nn::LoadStateDict(net, "net.safetensors");
    if (!keys.ok()) std::cerr << keys.status().message() << "\n";
    // End of example
    EXPECT_TRUE(saved.ok() && keys.ok());
  }
  {
    // Example of common/nn/hybrid.h
    nn::Hybrid net = nn::Hybridize(
        nn::Sequential(nn::Linear(20, 256), nn::ReLU(), nn::Linear(256, 10)));
    Tensor x = Randn({2, 20});
    Tensor y = net(x);         // runs as usual, and is written down
    y = net(x);                // the compiled program
    y = net(Randn({3, 20}));   // another shape: another program
    std::cout << net.Report().ToString();
    std::cout << ir::ToText(net.graph());
    absl::Status saved = net.Save("my_mlp");
    // End of example
    EXPECT_EQ(net.Report().programs.size(), 2u);
    EXPECT_TRUE(saved.ok()) << saved;
  }
}

TEST_F(ExamplesTest, GraphAndDrawing) {
  {
    // Example of common/graph/program_graph.h
    Tracer tracer;
    {
      ScopedOpListener listen(&tracer);
      z = x * y + 2;
    }
    const ProgramGraph graph = tracer.Graph();
    graph.depth();  // 3: inputs, mul, add
    graph.ops()[0].name;  // "mul"
    DrawGraph(graph, "z = x * y + 2").text;  // common/drawing
    // End of example
    EXPECT_EQ(graph.depth(), 3);
    // Example of common/drawing/graph_drawing.h
    cell.Show(DrawGraph(graph, "z = x * y + 2"));
    std::cout << GraphToText(graph) << ToDot(graph, "z = x * y + 2");
    // End of example
    EXPECT_STREQ(graph.ops()[0].primitive->name(), "mul");
    // Example of common/drawing/graphviz.h
    const absl::StatusOr<std::string> svg = DotToSvg(ToDot(graph, "z = x"));
    if (!svg.ok()) std::cerr << svg.status().message() << "\n";
    // End of example
  }
  {
    // Example of common/drawing/drawing.h
    const TracedProgram run = TraceProgram([&] { z = x * y + 2; });
    cell.Show(DrawGraph(run.graph, "z = x * y + 2"));
    // End of example
  }
  {
    // Example of common/lesson/cell/trace_program.h
    const TracedProgram run = TraceProgram([&] { z = x * y + 2; });
    cell.Show(DrawGraph(run.graph, "z = x * y + 2"));
    cell.Show(Timeline(run.profile).Draw("timeline"));
    cell.Show(Timeline(ProfileProgram([&] { z = x * y; })).Draw("mul"));
    // End of example
  }
  {
    // Example of common/drawing/timeline.h
    Profiler profiler;
    {
      ProfileScope scope(profiler);
      z = MatMul(x, y) + 2;
    }
    const Timeline timeline(profiler.profile());
    std::cout << timeline.ToText();
    // End of example
    EXPECT_EQ(timeline.rows().size(), 2u);
    const auto course = [&] { z = MatMul(x, y); };
    const auto in_turn = course;
    // Example of common/drawing/timeline.h
    cell.Show(DrawTimelines("both orders",
                            {{"notebook", ProfileProgram(course)},
                             {"in turn", ProfileProgram(in_turn)}}));
    // End of example
  }
  {
    // Example of common/drawing/bars.h
    cell.Show(DrawBars("time", {{{"one by one", "58.0 ms", 58.0, 57.1, 59.2},
                                 {"both", "30.7 ms", 30.7, 30.5, 31.0}}}));
    // End of example
  }
  {
    // Example of common/drawing/sectors.h
    std::vector<std::int64_t> first;  // as kernels::cuda::Requests has them
    for (int lane = 0; lane < 32; ++lane) first.push_back(64 * lane);
    cell.Show(DrawSectors("every 16th word", first));
    // End of example
  }
  {
    const std::vector<double> host_seconds = {1, 2, 4};
    const std::vector<double> device_seconds = {2, 2, 2};
    // Example of common/drawing/plot.h
    Plot plot("n", "", "time", "s");
    plot.LogX().LogY();
    plot.AddLine("host", {64, 256, 1024}, host_seconds);
    plot.AddLine("device", {64, 256, 1024}, device_seconds);
    cell.Show(plot.Draw("host against device"));
    // End of example
  }
  {
    // Example of common/drawing/svg.h
    Svg svg(200, 80, "z = x * y");
    svg.Rect(10, 10, 60, 20, {PaletteColour(0), "#333333"}, "mul");
    svg.Text(40, 24, "mul", {12, "middle"});
    WriteAtomically("z.svg", svg.ToString());
    // End of example
  }
  {
    // Example of common/drawing/text_canvas.h
    TextCanvas canvas;
    canvas.Write(2, 0, "[mul]");
    canvas.Put(4, 1, '|');
    canvas.ToString();  // "  [mul]\n    |\n"
    // End of example
    EXPECT_EQ(canvas.ToString(), "  [mul]\n    |\n");
  }
}

TEST_F(ExamplesTest, Parallel) {
  const Device cpu0 = kCpu, cpu1 = Device(DeviceType::kCpu, 1);
  {
    // Example of common/parallel/collective/schedule.h
    const auto ring = AllReduceSchedule(AllReduceAlgorithm::kRing, 4);
    ring.ForEach([](const Move& move) {
      std::cout << move.to << " adds part " << move.chunk << " of "
                << move.from << "\n";
    });
    AddendsAfter(ring)->at(2);  // of rank 0, chunk 2: {2, 3, 0, 1}
    // End of example
    EXPECT_EQ(AddendsAfter(ring)->at(2), (Addends{2, 3, 0, 1}));
    // Example of common/parallel/collective/schedule.h
    const CollectivePlan plan = MakePlan(ring);
    for (const PlannedMove& planned : plan.moves) {
      // rank planned.move.to waits for plan.moves[w], for each w of
      // planned.waits, and then makes the move
    }
    // End of example
    EXPECT_EQ(plan.moves.size(), 4u + 4u * 6u + 4u);
  }
  {
    // Example of common/parallel/collective/collective.h
    std::vector<Tensor> gradients = {Full({3}, 1, cpu0), Full({3}, 2, cpu1)};
    AllReduce(gradients);  // both are 3
    Work work = AllReduceAsync(gradients, AllReduceAlgorithm::kRing);
    // … work that overlaps …
    work.Wait();  // what is enqueued from here on sees 6
    // End of example
    EXPECT_EQ(ToVector<float>(gradients[1]), (std::vector<float>{6, 6, 6}));
  }
  {
    // Example of common/parallel/data_parallel/split_batch.h
    const Device second = Device::Parse("cpu:1");
    Tensor images = Ones({5, 784});
    std::vector<Tensor> shards = SplitBatch(images, {Device(), second});
    // shards[0] is rows 0 to 2 on cpu:0, shards[1] rows 3 and 4 on cpu:1
    ShardSizes(9, {1, 1, 1, 1});  // 3, 2, 2, 2
    ShardSizes(256, {3, 1});      // 192, 64
    // End of example
    EXPECT_EQ(shards[1].size(0), 2);
    EXPECT_EQ(shards[1].device(), cpu1);
  }
  {
    // Example of common/parallel/data_parallel/data_parallel.h
    nn::Linear net(10, 1);
    std::cout << DataParallel(std::move(net));  // on all devices
    // DataParallel(
    //   (module): Linear(in_features=10, out_features=1, bias=True)
    // )
    DataParallel mlp(nn::Linear(20, 3), /*device_ids=*/{0, 1});
    Tensor x = Randn({5, 20});
    Tensor labels = RandInt(0, 3, {5});
    Tensor loss = mlp.Step(x, labels, {/*lr=*/0.1}).loss;  // trains
    Tensor y = mlp(x);                                     // only computes
    // End of example
    EXPECT_EQ(y.size(0), 5);
  }
  {
    // Example of common/parallel/data_parallel/kv_store.h
    KvStore store(cpu0);
    store.Init("w", Zeros({3}, cpu0));
    store.Push("w", {Full({3}, 1, cpu0), Full({3}, 2, cpu1)});
    std::vector<Tensor> weights = {Empty({3}, cpu0), Empty({3}, cpu1)};
    store.Pull("w", weights);  // both are 3
    // End of example
    EXPECT_EQ(ToVector<float>(weights[1]), (std::vector<float>{3, 3, 3}));
  }
  {
    // Example of common/device/topology.h
    const Topology pcie = Topology::PcieSwitch(4, 16e9);
    for (const int link : pcie.Route(0, 3)) {
      std::cout << pcie.links()[link].name << "\n";  // "gpu0 > switch", …
    }
    // End of example
    EXPECT_EQ(pcie.Route(0, 3).size(), 2u);
  }
  {
    // Example of common/parallel/simulator/simulator.h
    const Topology pcie = Topology::PcieSwitch(4, 16e9);
    const auto star = AllReduceSchedule(AllReduceAlgorithm::kStar, 4);
    Simulate(pcie, star, 160e6).seconds;  // 0.060
    const Topology tree = Topology::PcieTree(8, 4, 16e9);
    const Simulation run =
        Simulate(tree, AllReduceSchedule(AllReduceAlgorithm::kRing, 8), 160e6);
    cell.Show(DrawLinkLoads("A ring on a PCIe tree", tree, run));
    cell.Show(PlotTimeByDevices({2, 4, 8, 16}, 160e6, [](int devices) {
      return Topology::NvSwitch(devices, 54e9);
    }).Draw("allreduce of 160 MB"));
    // End of example
    EXPECT_DOUBLE_EQ(Simulate(pcie, star, 160e6).seconds, 0.060);
  }
}

TEST_F(ExamplesTest, Profiler) {
  {
    // Example of common/profiler/profiler.h
    Profiler profiler;
    {
      ProfileScope scope(profiler);
      for (int i = 0; i < 100; ++i) {
        RecordFunction range("my step");
        z = MatMul(x, T(x)) * 2;
      }
    }
    std::cout << profiler.KeyAverages().Table();
    WriteChromeTrace(profiler.profile(), "trace.json");
    // End of example
  }
  {
    // Example of common/profiler/profile.h
    Profiler profiler;
    {
      ProfileScope scope(profiler);
      y = MatMul(x, x);
    }
    const Profile profile = profiler.profile();
    profile.spans[0].name;            // "matmul"
    profile.spans[0].device_nanos();  // on the device
    // End of example
    EXPECT_EQ(profile.spans[0].name, "matmul");
    {
      // Example of common/profiler/export.h
      absl::Status written = WriteChromeTrace(profile, "trace.json");
      // End of example
      EXPECT_TRUE(written.ok()) << written;
    }
    {
      // Example of common/drawing/html_timeline.h
      absl::Status written = WriteHtmlTimeline(profile, "profile.html");
      // End of example
      EXPECT_TRUE(written.ok()) << written;
    }
    // Example of common/profiler/key_averages.h
    const KeyAverages averages(profile);
    std::cout << averages.Table();
    std::cout << averages.Table({SortBy::kSelfDeviceTime, /*row_limit=*/10});
    averages.Find("matmul")->calls;
    // End of example
  }
  {
    ProfilerOptions options;
    options.with_bounds = true;
    Profiler profiler(options);
    {
      ProfileScope scope(profiler);
      z = MatMul(x, y) + x;
    }
    // Example of common/drawing/roofline.h
    // A profile with ProfilerOptions::with_bounds.
    cell.Show(DrawRoofline(profiler.profile(), "roofline"));
    // End of example
  }
  {
    const Device device;
    // Example of common/profiler/peaks.h
    const Peaks& peaks = PeaksOf(device);
    peaks.flop_per_second;         // 2.1e11
    const Bound bound = BoundOf({2'000'000'000, 12'000'000}, peaks);
    bound.seconds;                 // 0.0095
    // End of example
    EXPECT_GT(bound.seconds, 0);
  }
  {
    Stream& other = NewStream(Device());
    const Tensor x = Ones({3});
    // Example of common/profiler/race_checker.h
    RaceChecker checker;
    const Tensor y = Square(x);            // on the current stream
    {
      const StreamGuard guard(other);
      const Tensor z = y + 1;              // does not wait for y
    }
    std::cout << checker.Report();
    // End of example
    EXPECT_EQ(checker.races().size(), 1u);
    Synchronize(Device());
  }
  {
    ProfilerOptions options;
    options.profile_memory = true;
    // Example of common/profiler/profile.h
    std::vector<Profile> parts;
    for (int i = 0; i < 3; ++i) {
      Profiler profiler(options);  // with a bound of its own
      profiler.Start();
      z = MatMul(x, y);
      profiler.Stop();
      parts.push_back(profiler.profile());
    }
    WriteChromeTrace(Merge(std::move(parts)), "trace.json");
    // End of example
  }
}

TEST_F(ExamplesTest, Lesson) {
  const int n = 4;
  // Example of common/lesson/cell/host_library.h
  std::vector<float> a = HostRandn(n * n);       // numpy.random.normal
  std::vector<float> b = HostMatMul(a, a, n);    // numpy.dot
  // End of example
  EXPECT_EQ(b.size(), 16u);
}

}  // namespace
}  // namespace d2l
