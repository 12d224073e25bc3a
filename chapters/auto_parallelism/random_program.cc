#include "chapters/auto_parallelism/random_program.h"

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "chapters/auto_parallelism/two_devices.h"

namespace d2l {
namespace {

constexpr int kKinds = 5;

bool SameBits(const Tensor& a, const Tensor& b) {
  const std::vector<float> x = ToVector<float>(a);
  const std::vector<float> y = ToVector<float>(b);
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

}  // namespace

std::vector<Step> RandomProgram(std::mt19937_64& random, int steps,
                                const std::vector<Stream*>& streams) {
  const auto below = [&random](std::size_t n) {
    return static_cast<int>(random() % n);
  };
  std::vector<Step> program;
  std::vector<Device> homes = {First()};  // of the values
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

std::vector<Stream*> TwoStreamsEach() {
  std::vector<Stream*> streams;
  for (const DeviceInfo& info : Devices()) {
    for (int i = 0; i < 2; ++i) streams.push_back(&NewStream(info.device));
  }
  return streams;
}

void Tally::Count(const std::vector<Step>& program,
                  const std::vector<Stream*>& streams) {
  // Where each value was last written.
  std::vector<const Stream*> writers = {&DefaultStream(First())};
  for (const Step& step : program) {
    const Stream* const stream = streams[step.stream];
    for (const int input : {step.a, step.b}) {
      ++inputs_;
      from_another_stream_ += writers[input] != stream;
      from_another_device_ += writers[input]->device() != stream->device();
    }
    if (step.in_place) {
      writers[step.a] = stream;
    } else {
      writers.push_back(stream);
    }
  }
}

void Tally::Compare(const std::vector<Value>& got,
                    const std::vector<Value>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ++values_;
    wrong_ += i >= got.size() || !SameBits(got[i].tensor, expected[i].tensor);
  }
}

Judgement Tally::AllEqual(const std::string& evidence) const {
  return Counted(wrong_ == 0, evidence, Say("%d of %d", wrong_, values_));
}

std::string Tally::Crossings() const {
  return Say(
      "%d of %d inputs came from another stream, %d of these from another "
      "device",
      from_another_stream_, inputs_, from_another_device_);
}

}  // namespace d2l
