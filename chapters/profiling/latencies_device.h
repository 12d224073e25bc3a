// Latencies of a device: what a request costs, and what a copy costs.
//
//   Measurement enqueue = MeasureEnqueue(TryGpu(), Budget());
//
// The device is in the device table (or std::invalid_argument is thrown) and
// is idle before and after. Failures of the device are thrown as by the
// operations.

#ifndef D2L_CHAPTERS_PROFILING_LATENCIES_DEVICE_H_
#define D2L_CHAPTERS_PROFILING_LATENCIES_DEVICE_H_

#include "chapters/profiling/latencies_sampling.h"
#include "common/device/device.h"

namespace d2l {

// One-element x + y, until the call has returned.
Measurement MeasureEnqueue(Device device, const Budget& budget);
// The same, until the device has done it.
Measurement MeasureCompletion(Device device, const Budget& budget);

struct CopyLatencies {
  Measurement to_device;
  Measurement from_device;
};

// 1 MiB between pinned host memory and the device, until it is done.
CopyLatencies MeasureCopies(Device device, const Budget& budget);

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_LATENCIES_DEVICE_H_
