// Where a device's generator of random numbers stands (torch.get_rng_state).
//
//   const GeneratorState before = GetGeneratorState(device);
//   Tensor x = Rand({3}, device);
//   SetGeneratorState(before, device);
//   Tensor same = Rand({3}, device);  // the numbers of x
//
// Both throw std::invalid_argument if the device is not in the table. Not while
// another thread draws numbers there.
//
// What is to differ between devices, as dropout does, is drawn by a device's
// index too. Where each of several processes has only some of the devices,
// SetFirstDeviceIndex says how many come before this process's: device i draws
// what device first + i of one process would.

#ifndef D2L_COMMON_OPS_PRIMITIVE_GENERATOR_H_
#define D2L_COMMON_OPS_PRIMITIVE_GENERATOR_H_

#include <cstdint>

#include "common/device/device.h"

namespace d2l {

struct GeneratorState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  // grows with the numbers drawn
};

GeneratorState GetGeneratorState(Device device);
void SetGeneratorState(const GeneratorState& state, Device device);

void SetFirstDeviceIndex(int first);

}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_GENERATOR_H_
