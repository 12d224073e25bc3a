// The devices as nvidia-smi shows GPUs: memory, load, processes.
//
//   std::cout << InventoryTable(MachineGpus(), TableDevices(0.05));
//
// For the thread that runs a cell.

#ifndef D2L_CHAPTERS_MULTI_GPU_INVENTORY_H_
#define D2L_CHAPTERS_MULTI_GPU_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/multi_gpu/nvml.h"

namespace d2l::multi_gpu {

// A line of the table.
struct DeviceState {
  std::string device;  // "cpu:0", "GPU 3"
  GpuState state;
};

// The devices of this process. The load of a device is the part of the given
// seconds, at some hundred moments, in which its default stream had work. The
// memory is what this process has taken.
std::vector<DeviceState> TableDevices(double seconds);

// All GPUs of the machine, by NVML, if there is a real one in the device table;
// with their other users. *note: a sentence if that fails.
std::vector<DeviceState> MachineGpus(std::string* note);

// 80 columns.
std::string InventoryTable(const std::vector<DeviceState>& devices);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_INVENTORY_H_
