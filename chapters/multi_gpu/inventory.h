// The devices as nvidia-smi shows GPUs: memory, load, processes.
//
//   std::cout << InventoryTable(MachineGpus(&note), TableDevices(0.05));
//
// The thread that runs a cell calls these.

#ifndef D2L_CHAPTERS_MULTI_GPU_INVENTORY_H_
#define D2L_CHAPTERS_MULTI_GPU_INVENTORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace d2l::multi_gpu {

struct DeviceProcess {
  std::int64_t pid = 0;
  std::int64_t memory_bytes = -1;  // -1: the driver does not tell
};

// A line of the table.
struct DeviceState {
  std::string device;  // "cpu:0", "GPU 3"
  std::string name;
  std::int64_t used_bytes = -1;  // -1: the driver does not tell
  std::int64_t total_bytes = -1;
  int utilization = -1;  // percent of the last moments; -1: not known
  std::vector<DeviceProcess> processes;
};

// The devices of this process. The load of a device is the part of a hundred
// moments, in the given seconds, at which its default stream had work. The
// memory is that of this process.
std::vector<DeviceState> TableDevices(double seconds);

// All GPUs of the machine, with their other users, from nvidia-smi, which comes
// with the driver. Its numbers are its own: CUDA_VISIBLE_DEVICES does not hide
// or renumber them. If it fails, the error is Internal, with its message.
absl::StatusOr<std::vector<DeviceState>> NvidiaSmiGpus();

// NvidiaSmiGpus if there is a real GPU in the device table, else none. *note is
// set to a sentence if nvidia-smi fails.
std::vector<DeviceState> MachineGpus(std::string* note);

// The table, in 80 columns.
std::string InventoryTable(const std::vector<DeviceState>& devices);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_INVENTORY_H_
