// For tests: a library with NVML's functions, and two GPUs. Of the second, a
// part of one, the load is not known.

#include <cstdio>

extern "C" {

struct Memory {
  unsigned long long total, free, used;
};
struct Utilization {
  unsigned int gpu, memory;
};
struct Process {
  unsigned int pid;
  unsigned long long memory;
  unsigned int gpu_instance, compute_instance;
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  static int gpus[2];
  *device = &gpus[index];
  gpus[index] = static_cast<int>(index);
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned int size) {
  std::snprintf(name, size, "Tesla K%d", 80 + *static_cast<int*>(device));
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {11441ULL << 20, 3746ULL << 20, 7695ULL << 20};
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  if (*static_cast<int*>(device) == 1) return 3;  // not supported
  *utilization = {61, 30};
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned int* count,
                                            Process* processes) {
  *count = *static_cast<int*>(device) == 0 ? 2 : 0;
  if (*count == 0) return 0;
  processes[0] = {44683, 3289ULL << 20, 0, 0};
  processes[1] = {1, ~0ULL, 0, 0};  // memory not available
  return 0;
}

}  // extern "C"
