// A program whose threads compute until its end; see exit_test.cc. The argument
// says how it ends.

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "common/device/device_table.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

std::atomic<int> computed{0};

void ComputeForEver(Device device, bool reads) {
  Tensor x = Ones({10}, device);
  for (;;) {
    x = x + 1;
    if (reads && Item<double>(Sum(x)) < 0) std::abort();
    ++computed;
  }
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const auto& devices = d2l::Devices();
  for (int i = 0; i < 4; ++i) {
    const d2l::Device device = devices[i % devices.size()].device;
    std::thread([device, i] { d2l::ComputeForEver(device, i >= 2); }).detach();
  }
  while (d2l::computed < 1000) std::this_thread::yield();
  if (how == "exit") std::exit(18);
  return how == "return" ? 7 : 2;
}
