// A program whose threads compute until its end; see exit_test.cc. The argument
// says how it ends.

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>

#include "common/device/device_table.h"
#include "common/ops/ops.h"

namespace d2l {
namespace {

std::atomic<int> computed{0};

// Half of the threads compute on all devices in turn.
void ComputeForEver(std::size_t first, bool moves, bool reads) {
  const auto& devices = Devices();
  Tensor x = Ones({10}, devices[first].device);
  for (std::size_t i = first;; i += moves ? 1 : 0) {
    x = To(x, devices[i % devices.size()].device) + 1;
    if (reads && Item<double>(Sum(x)) < 0) std::abort();
    ++computed;
  }
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const std::size_t devices = d2l::Devices().size();
  for (std::size_t i = 0; i < 8; ++i) {
    std::thread([first = i % devices, i] {
      d2l::ComputeForEver(first, /*moves=*/i % 4 >= 2, /*reads=*/i >= 4);
    }).detach();
  }
  while (d2l::computed < 1000) std::this_thread::yield();
  if (how == "exit") std::exit(18);
  return how == "return" ? 7 : 2;
}
