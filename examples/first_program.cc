// Trains a network to square numbers, and profiles it.

#include <iostream>

#include "common/d2l.h"

using namespace d2l;

int main() {
  const Device device = TryGpu();  // cpu:0 where there is no GPU
  const Tensor x = Randn({1000, 1}, device);
  const Tensor y = Square(x);

  nn::Sequential net(nn::Linear(1, 64, device), nn::ReLU(),
                     nn::Linear(64, 1, device));
  nn::SGD sgd(nn::Parameters(net), {/*lr=*/0.1});
  Profiler profiler;
  profiler.Start();
  for (int step = 0; step <= 100; ++step) {
    RecordFunction range("step");
    GradientTape tape(nn::Parameters(net));
    const Tensor loss = Mean(Square(net(x) - y));
    sgd.Step(tape.Backward(loss));
    if (step % 20 == 0) {
      std::cout << "step " << step << ": loss " << Item(loss) << "\n";
    }
  }
  profiler.Stop();

  std::cout << profiler.KeyAverages().Table({SortBy::kSelfDeviceTime, 5});
  const Profile& profile = profiler.profile();
  absl::Status written = WriteHtmlTimeline(profile, UserPath("profile.html"));
  written.Update(WriteChromeTrace(profile, UserPath("trace.json")));
  if (!written.ok()) std::cerr << written.message() << "\n";
  return written.ok() ? 0 : 1;
}
