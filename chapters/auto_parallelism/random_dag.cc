// The cell of random programs: their operations run on several streams, and
// each waits for the values that it needs.

#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "chapters/auto_parallelism/two_devices.h"
#include "common/d2l.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/cell/trace_program.h"

namespace d2l::auto_parallelism {
namespace {

constexpr int kKinds = 5;

// One operation: its kind, inputs and stream. It makes the next value, or
// overwrites one in place. Value 0 is the program's input, on First().
struct Step {
  int kind = 0;  // see Compute
  int a = 0, b = 0;
  int stream = 0;         // in the list of streams
  bool in_place = false;  // overwrites a, whose home is the stream's device
};

std::vector<Step> RandomProgram(std::mt19937_64& random, int steps,
                                const std::vector<Stream*>& streams) {
  const auto below = [&random](std::size_t n) {
    return static_cast<int>(random() % n);
  };
  std::vector<Step> program;
  std::vector<Device> homes = {First()};  // the values' devices
  for (int i = 0; i < steps; ++i) {
    Step step;
    step.kind = below(kKinds);
    step.a = below(homes.size());
    step.b = below(homes.size());
    step.stream = below(streams.size());
    const Device device = streams[step.stream]->device();
    step.in_place = homes[step.a] == device && below(3) == 0;
    if (!step.in_place) homes.push_back(device);
    program.push_back(step);
  }
  return program;
}

// Makes a square matrix of numbers from -1 to 1 from two such matrices.
Tensor Compute(int kind, const Tensor& a, const Tensor& b) {
  switch (kind % kKinds) {
    case 0:
      return MatMul(a, b) * (1.0 / static_cast<double>(a.size(1)));
    case 1:
      return a * b;
    case 2:
      return Tanh(a + b);
    case 3:
      return Maximum(a, b);
    default:
      return (a - b) * 0.5;
  }
}

// A value while a program runs.
struct Value {
  Tensor tensor;
  Event written = {};            // after the last step that wrote it
  std::vector<Event> uses = {};  // after all steps that read or wrote it
};

bool SameBits(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = ToVector<float>(a);
  const std::vector<float> y = ToVector<float>(b);
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

// Counts of several programs.
class Tally {
 public:
  // Counts where the inputs of a program's steps come from.
  void Count(const std::vector<Step>& program,
             const std::vector<Stream*>& streams) {
    // The stream that last wrote each value.
    std::vector<const Stream*> writers = {&DefaultStream(First())};
    for (const Step& step : program) {
      const Stream* const stream = streams[step.stream];
      for (const int input : {step.a, step.b}) {
        ++inputs_;
        from_another_stream_ += writers[input] != stream;
        from_another_device_ += writers[input]->device() != stream->device();
      }
      if (!step.in_place) writers.emplace_back();
      (step.in_place ? writers[step.a] : writers.back()) = stream;
    }
  }
  // Waits for all values, and counts those with other bits than expected.
  void Compare(const std::vector<Value>& got,
               const std::vector<Value>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ++values_;
      wrong_ += !SameBits(got[i].tensor, expected[i].tensor);
    }
  }

  // HOLDS if no values differed.
  Judgement AllEqual(const std::string& evidence) const {
    return Counted(wrong_ == 0, evidence, Say("%d of %d", wrong_, values_));
  }
  // What was counted, in words.
  std::string Crossings() const {
    return Say(
        "%d of %d inputs came from another stream, %d of these from another "
        "device",
        from_another_stream_, inputs_, from_another_device_);
  }

 private:
  int inputs_ = 0;
  int from_another_stream_ = 0;
  int from_another_device_ = 0;  // of these
  int values_ = 0;
  int wrong_ = 0;
};

// Two new streams on each device of the table.
std::vector<Stream*> TwoStreamsEach() {
  std::vector<Stream*> streams;
  for (const DeviceInfo& info : Devices()) {
    for (int i = 0; i < 2; ++i) streams.push_back(&NewStream(info.device));
  }
  return streams;
}

// %% d2l/random-dag
std::vector<Value> RunOnStreams(const std::vector<Step>& program,
                                const Tensor& x,
                                const std::vector<Stream*>& streams) {
  std::vector<Value> values = {{Clone(x), CurrentStream(x.device()).Record()}};
  for (const Step& step : program) {
    Stream& stream = *streams[step.stream % streams.size()];
    const StreamGuard guard(stream);
    const auto input = [&](int i) {
      stream.Wait(values[i].written);
      return To(values[i].tensor, stream.device());
    };
    const Tensor a = input(step.a), b = input(step.b);
    if (step.in_place) {  // behind all who still read what it overwrites
      for (const Event& use : values[step.a].uses) stream.Wait(use);
      CopyTo(Compute(step.kind, a, b), a);
    } else {
      values.push_back({Compute(step.kind, a, b)});
    }
    const Event done = stream.Record();
    (step.in_place ? values[step.a] : values.back()).written = done;
    for (const int i : {step.a, step.b}) values[i].uses.push_back(done);
  }
  return values;
}
// %%

// %% d2l/random-dag, measured
// RandomProgram and Tally stand at the top.
void RandomDag(Cell& cell) {
  const std::vector<Stream*> streams = TwoStreamsEach();
  const std::vector<Stream*> one = {&DefaultStream(First())};
  const Tensor x = Tanh(Randn({24, 24}, First()));
  std::mt19937_64 random(13);
  Tally on_streams, blocking;
  for (int i = 0; i < cell.BySize(50, 500, 500); ++i) {
    const std::vector<Step> program = RandomProgram(random, 30, streams);
    const std::vector<Value> expected = RunOnStreams(program, x, one);
    on_streams.Count(program, streams);
    on_streams.Compare(RunOnStreams(program, x, streams), expected);
    const LaunchBlockingGuard guard(true);
    blocking.Compare(RunOnStreams(program, x, one), expected);
  }
  const std::vector<Step> drawn = RandomProgram(random, 8, streams);
  const TracedProgram run =
      TraceProgram([&] { RunOnStreams(drawn, x, streams); });
  cell.ShowIfVerbose(DrawGraph(run.graph, "one more, of 8 operations"));
  const Judgement equal = on_streams.AllEqual(on_streams.Crossings());
  cell.Check(equal.verdict == Verdict::kHolds, equal.evidence);
  cell.Claim("No value differs from that of one stream: {}.", equal,
             Say("An operation did not wait for a value that it reads or "
                 "overwrites."));
  cell.Claim("With launch blocking no value differs: {}.",
             blocking.AllEqual(Say("both on one stream")));
}
// %%
D2L_CELL("d2l/random-dag", RandomDag);

}  // namespace
}  // namespace d2l::auto_parallelism
