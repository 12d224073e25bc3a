// The functions of libcudart that the project calls, on models of GPUs; linked
// into programs instead of it.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/ptx/fat_binary.h"
#include "tests/ptx/kernel.h"
#include "tests/ptx/report.h"
#include "tests/ptx/runtime.h"

namespace d2l::ptx {
namespace {

constexpr int kGpus = 2;
constexpr int kCapability = 75;  // third_party/cuda.bzl compiles for it
constexpr std::size_t kMemoryBytes = std::size_t{1} << 30;
constexpr std::size_t kSharedBytes = 48 << 10;
constexpr unsigned kMostThreads = 1024;

int Multiprocessors() {
  const char* const asked = std::getenv("D2L_PTX_MULTIPROCESSORS");
  return asked == nullptr ? 4 : std::atoi(asked);
}

// Whether the GPUs can use each other's memory.
bool HavePeers() {
  const char* const asked = std::getenv("D2L_PTX_PEERS");
  return asked == nullptr || std::atoi(asked) != 0;
}

FakeCuda::Options GpuOptions() {
  FakeCuda::Options options;
  options.gpus = kGpus;
  options.memory_bytes = kMemoryBytes;
  return options;
}

struct Streams {
  std::mutex mutex;  // guards all below
  std::map<CudaStreamHandle, int> gpus;
  std::set<CudaStreamHandle> captured;
  std::array<CudaStreamHandle, kGpus> defaults{};
};
Streams& TheStreams() {
  static Streams& streams = *new Streams;
  return streams;
}

thread_local int current_gpu = -1;  // CUDA's default, 0, is not set yet
thread_local int last_error = 0;

// Remembers the call's error, and reports what the models found wrong with it.
cudaError_t Done(int error) {
  static std::mutex& mutex = *new std::mutex;
  static std::size_t reported = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const std::vector<std::string> found = Gpus().violations();
    for (; reported < found.size(); ++reported) {
      Report("CUDA is called wrongly: " + found[reported]);
    }
  }
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return static_cast<cudaError_t>(error);
}
cudaError_t Misuse(int error, const std::string& what) {
  Report("CUDA is called wrongly: " + what);
  return Done(error);
}

int Await(CudaStreamHandle stream) {
  CudaEventHandle event = nullptr;
  if (const int error = Gpus().CreateEvent(/*timed=*/false, &event)) {
    return error;
  }
  const int error = Gpus().RecordEvent(event, stream);
  return error != 0 ? error : Gpus().SynchronizeEvent(event);
}

// ---- Kernels.

// Of a .cu file.
struct FatBinary {
  const void* data = nullptr;
  std::once_flag once;
  std::unique_ptr<Module> module;
};
struct Registered {
  FatBinary* binary = nullptr;
  std::string name;
};
struct Registry {
  std::mutex mutex;                           // guards all below
  std::map<const void*, Registered> kernels;  // by the host's function
};
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

// Null if the function is no kernel.
Registered* Find(const void* function) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  const auto it = registry.kernels.find(function);
  return it == registry.kernels.end() ? nullptr : &it->second;
}

// Ends the program if the interpreter lacks something.
const Kernel* KernelOf(const Registered& registered) {
  try {
    FatBinary& binary = *registered.binary;
    std::call_once(binary.once, [&] {
      binary.module = std::make_unique<Module>(PtxOf(binary.data));
    });
    return binary.module->KernelNamed(registered.name);
  } catch (const Unsupported& lack) {
    std::fprintf(stderr, "PTX: the interpreter lacks %s\n", lack.what());
    std::_Exit(kExitCodeOfFindings);
  }
}

// Why a GPU refuses a launch; 0 if it does not.
int Refusal(const Kernel& kernel, dim3 grid, dim3 block, std::size_t shared) {
  const auto refuse = [&](int error, const std::string& why) {
    char sizes[160];
    std::snprintf(sizes, sizeof(sizes),
                  " (grid %u, %u, %u; block %u, %u, %u; %zu bytes of dynamic "
                  "shared memory)",
                  grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
    Report("CUDA is called wrongly: a launch of " + NameOf(kernel) +
           " is refused: " + why + sizes);
    return error;
  };
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0) {
    return refuse(cudaErrorInvalidConfiguration, "the grid is empty");
  }
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) {
    return refuse(cudaErrorInvalidConfiguration, "the grid is too large");
  }
  if (threads > kMostThreads || block.z > 64) {
    return refuse(cudaErrorInvalidConfiguration, "the block is too large");
  }
  const int bound = kernel.text.max_threads;
  if (bound != 0 && threads > static_cast<std::uint64_t>(bound)) {
    return refuse(
        cudaErrorLaunchOutOfResources,
        "__launch_bounds__ allows " + std::to_string(bound) + " threads");
  }
  if (kernel.shared_bytes + shared > kSharedBytes) {
    return refuse(cudaErrorInvalidValue, "too much shared memory");
  }
  return 0;
}

// For a kernel of the GPU.
MemoryRange FindMemory(int gpu, std::uint64_t address) {
  const auto* const data = reinterpret_cast<const void*>(address);
  if (!Gpus().MayUse(gpu, data)) return {};
  const auto [begin, bytes] = Gpus().BlockOf(data);
  const auto start = reinterpret_cast<std::uint64_t>(begin);
  return {start, start + bytes};
}

// "" if the bytes are inside of the allocation that holds their first, or if
// there is none.
std::string Beyond(const void* data, std::size_t bytes) {
  const auto [begin, size] = Gpus().BlockOf(data);
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(data) -
                                               static_cast<const char*>(begin));
  if (begin == nullptr || offset + bytes <= size) return "";
  return " of " + std::to_string(bytes) + " bytes at byte " +
         std::to_string(offset) + " of an allocation of " +
         std::to_string(size);
}

struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

// ---- cuStreamWaitValue32.

CUresult WaitValue(CUstream stream, CUdeviceptr address, cuuint32_t value,
                   unsigned flags) {
  if (flags != CU_STREAM_WAIT_VALUE_GEQ) return CUDA_ERROR_INVALID_VALUE;
  return static_cast<CUresult>(Done(Gpus().WaitForWord(
      StreamOf(stream), reinterpret_cast<const std::uint32_t*>(address),
      value)));
}

cudaError_t FindDriverFunction(const char* name, void** function,
                               cudaDriverEntryPointQueryResult* found) {
  const bool is_known = std::strcmp(name, "cuStreamWaitValue32") == 0;
  *function = is_known ? reinterpret_cast<void*>(&WaitValue) : nullptr;
  *found = is_known ? cudaDriverEntryPointSuccess
                    : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

struct ErrorNames {
  const char* name;
  const char* text;
};
ErrorNames NamesOf(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return {"cudaSuccess", "no error"};
    case cudaErrorInvalidValue:
      return {"cudaErrorInvalidValue", "invalid argument"};
    case cudaErrorMemoryAllocation:
      return {"cudaErrorMemoryAllocation", "out of memory"};
    case cudaErrorInvalidConfiguration:
      return {"cudaErrorInvalidConfiguration",
              "invalid configuration argument"};
    case cudaErrorInvalidDeviceFunction:
      return {"cudaErrorInvalidDeviceFunction", "invalid device function"};
    case cudaErrorInvalidResourceHandle:
      return {"cudaErrorInvalidResourceHandle", "invalid resource handle"};
    case cudaErrorIllegalAddress:
      return {"cudaErrorIllegalAddress",
              "an illegal memory access was encountered"};
    case cudaErrorMisalignedAddress:
      return {"cudaErrorMisalignedAddress", "misaligned address"};
    case cudaErrorLaunchOutOfResources:
      return {"cudaErrorLaunchOutOfResources",
              "too many resources requested for launch"};
    case cudaErrorLaunchTimeout:
      return {"cudaErrorLaunchTimeout",
              "the launch timed out and was terminated"};
    case cudaErrorAssert:
      return {"cudaErrorAssert", "device-side assert triggered"};
    case cudaErrorLaunchFailure:
      return {"cudaErrorLaunchFailure", "unspecified launch failure"};
    default:
      return {"cudaErrorUnknown", "an error that tests/ptx has no text for"};
  }
}

}  // namespace

FakeCuda& Gpus() {
  static FakeCuda& gpus = *new FakeCuda(GpuOptions());
  return gpus;
}

int CurrentGpu() {
  if (current_gpu < 0 && Gpus().SetDevice(0) == 0) current_gpu = 0;
  return current_gpu;
}

CudaStreamHandle StreamOf(CudaStreamHandle stream) {
  const int gpu = CurrentGpu();
  if (stream != nullptr || gpu < 0) return stream;
  Streams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  CudaStreamHandle& own = streams.defaults[static_cast<std::size_t>(gpu)];
  if (own == nullptr && Gpus().CreateStream(&own) == 0) streams.gpus[own] = gpu;
  return own;
}

int GpuOf(CudaStreamHandle stream) {
  Streams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  const auto it = streams.gpus.find(stream);
  return it == streams.gpus.end() ? -1 : it->second;
}

bool IsCaptured(CudaStreamHandle stream) {
  Streams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  return streams.captured.count(stream) != 0;
}

char* DataAt(const void* data, std::size_t bytes) {
  const bool is_inside = Gpus().IsReachable(data, bytes);
  return is_inside ? const_cast<char*>(static_cast<const char*>(data))
                   : nullptr;
}

int Enqueue(CudaStreamHandle stream, std::function<void()> work) {
  const int gpu = GpuOf(stream);
  if (gpu < 0) {
    return Misuse(cudaErrorInvalidResourceHandle,
                  "work for a stream that does not exist");
  }
  Gpus().LaunchKernel(stream, [gpu, work = std::move(work)] {
    try {
      work();
    } catch (const Fault& fault) {
      Gpus().Crash(gpu, fault.error);
    } catch (const Unsupported& lack) {
      Report(std::string("the interpreter lacks ") + lack.what());
      Gpus().Crash(gpu, cudaErrorLaunchFailure);
    }
  });
  // Who launches counts, too.
  --d2l::internal::kernels_launched;
  return Done(Gpus().TakeLaunchError());
}

}  // namespace d2l::ptx

using namespace d2l::ptx;  // NOLINT(google-build-using-namespace)

extern "C" {

// ---- What nvcc's code calls.

void** __cudaRegisterFatBinary(void* wrapper) {
  struct Wrapper {
    int magic;
    int version;
    const void* data;
  };
  auto* const made = new FatBinary;  // as long as the process
  made->data = static_cast<const Wrapper*>(wrapper)->data;
  return reinterpret_cast<void**>(made);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
char __cudaInitModule(void**) { return 0; }
void __cudaRegisterFunction(void** binary, const char* host, char*,
                            const char* name, int, void*, void*, void*, void*,
                            int*) {
  Registry& registry = TheRegistry();
  const std::lock_guard<std::mutex> lock(registry.mutex);
  Registered& made = registry.kernels[host];
  made.binary = reinterpret_cast<FatBinary*>(binary);
  made.name = name;
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, std::size_t, int,
                       int) {}
cudaError_t __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                        std::size_t shared,
                                        cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return cudaSuccess;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                       std::size_t* shared, void* stream) {
  const Configuration taken = configurations.back();
  configurations.pop_back();
  *grid = taken.grid;
  *block = taken.block;
  *shared = taken.shared;
  *static_cast<cudaStream_t*>(stream) = taken.stream;
  return cudaSuccess;
}
// CUDA 13 asks for a handle, once for each kernel, and launches that.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  if (Find(function) == nullptr) return Done(cudaErrorInvalidDeviceFunction);
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void** args, std::size_t shared,
                               cudaStream_t stream) {
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block,
                          args, shared, stream);
}

// ---- Kernels.

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block,
                             void** args, std::size_t shared,
                             cudaStream_t stream) {
  const Registered* const registered = Find(function);
  if (registered == nullptr) return Done(cudaErrorInvalidDeviceFunction);
  const Kernel* const kernel = KernelOf(*registered);
  if (kernel == nullptr) return Done(cudaErrorInvalidDeviceFunction);
  if (const int error = Refusal(*kernel, grid, block, shared)) {
    return Done(error);
  }
  Launch launch;
  launch.kernel = kernel;
  launch.grid = {grid.x, grid.y, grid.z};
  launch.block = {block.x, block.y, block.z};
  launch.dynamic_shared = shared;
  launch.find_memory = [gpu = GpuOf(StreamOf(stream))](std::uint64_t address) {
    return FindMemory(gpu, address);
  };
  launch.params.resize(kernel->param_bytes);
  for (std::size_t i = 0; i < kernel->params.size(); ++i) {
    const auto& [at, bytes] = kernel->params[i];
    std::memcpy(launch.params.data() + at, args[i], bytes);
  }
  return static_cast<cudaError_t>(Enqueue(
      StreamOf(stream), [launch = std::move(launch)] { RunGrid(launch); }));
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes,
                                  const void* function) {
  const Registered* const registered = Find(function);
  if (registered == nullptr) return Done(cudaErrorInvalidDeviceFunction);
  const Kernel& kernel = *KernelOf(*registered);
  *attributes = cudaFuncAttributes();
  attributes->sharedSizeBytes = kernel.shared_bytes;
  attributes->localSizeBytes = kernel.local_bytes;
  attributes->maxThreadsPerBlock = kernel.text.max_threads != 0
                                       ? kernel.text.max_threads
                                       : static_cast<int>(kMostThreads);
  attributes->ptxVersion = attributes->binaryVersion = kCapability;
  return cudaSuccess;
}

// ---- Errors and devices.

cudaError_t cudaGetLastError() {
  CurrentGpu();
  const int of_context = Gpus().TakeLaunchError();
  const int error = std::exchange(last_error, 0);
  return static_cast<cudaError_t>(error != 0 ? error : of_context);
}
const char* cudaGetErrorName(cudaError_t error) { return NamesOf(error).name; }
const char* cudaGetErrorString(cudaError_t error) {
  return NamesOf(error).text;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int gpu) {
  if (gpu < 0 || gpu >= kGpus) return Done(cudaErrorInvalidDevice);
  const int error = Gpus().SetDevice(gpu);
  current_gpu = error == 0 ? gpu : -1;
  return Done(error);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int gpu) {
  if (gpu < 0 || gpu >= kGpus) return Done(cudaErrorInvalidDevice);
  *properties = cudaDeviceProp();
  std::snprintf(properties->name, sizeof(properties->name),
                "a model of a GPU that runs PTX on the CPU");
  properties->totalGlobalMem = kMemoryBytes;
  properties->sharedMemPerBlock = kSharedBytes;
  properties->multiProcessorCount = Multiprocessors();
  properties->major = kCapability / 10;
  properties->minor = kCapability % 10;
  properties->warpSize = kLanes;
  properties->maxThreadsPerBlock = static_cast<int>(kMostThreads);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int gpu, int peer) {
  *can = gpu != peer && HavePeers() ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (!HavePeers()) return Done(cudaErrorPeerAccessUnsupported);
  const int gpu = CurrentGpu();
  if (Gpus().peers().count({gpu, peer}) != 0) {
    return Done(cudaErrorPeerAccessAlreadyEnabled);
  }
  return Done(Gpus().EnablePeerAccess(gpu, peer));
}
#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned, unsigned long long,
    cudaDriverEntryPointQueryResult* found) {
  return FindDriverFunction(name, function, found);
}
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function,
                                    unsigned long long,
                                    cudaDriverEntryPointQueryResult* found) {
  return FindDriverFunction(name, function, found);
}
#endif

// ---- Streams.

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  const int gpu = CurrentGpu();
  if (const int error = Gpus().CreateStream(stream)) return Done(error);
  Streams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.gpus[*stream] = gpu;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (GpuOf(stream) < 0) {
    return Misuse(cudaErrorInvalidResourceHandle,
                  "cudaStreamDestroy of no stream");
  }
  const int error = Gpus().DestroyStream(stream);
  Streams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  streams.gpus.erase(stream);
  return Done(error);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Done(Await(StreamOf(stream)));
}
cudaError_t cudaDeviceSynchronize() {
  const int gpu = CurrentGpu();
  std::vector<cudaStream_t> of_gpu;
  {
    Streams& streams = TheStreams();
    const std::lock_guard<std::mutex> lock(streams.mutex);
    for (const auto& [stream, its_gpu] : streams.gpus) {
      if (its_gpu == gpu) of_gpu.push_back(stream);
    }
  }
  for (const cudaStream_t stream : of_gpu) {
    if (const int error = Await(stream)) return Done(error);
  }
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                               void* data) {
  return Done(Gpus().LaunchHostFunction(StreamOf(stream), function, data));
}

// ---- Graphs. FakeCuda's are ready to be launched.

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const int error = Gpus().BeginCapture(StreamOf(stream));
  Streams& streams = TheStreams();
  const std::lock_guard<std::mutex> lock(streams.mutex);
  if (error == 0) streams.captured.insert(stream);
  return Done(error);
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  {
    Streams& streams = TheStreams();
    const std::lock_guard<std::mutex> lock(streams.mutex);
    streams.captured.erase(stream);
  }
  cudaGraphExec_t made = nullptr;
  const int error = Gpus().EndCapture(stream, &made);
  *graph = reinterpret_cast<cudaGraph_t>(made);
  return Done(error);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* ready,
                                          cudaGraph_t graph,
                                          unsigned long long) {
  *ready = reinterpret_cast<cudaGraphExec_t>(graph);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return Done(Gpus().LaunchGraph(graph, StreamOf(stream)));
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  CurrentGpu();
  return Done(Gpus().DestroyGraph(graph));
}

// ---- Events.

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  CurrentGpu();
  const bool timed = (flags & cudaEventDisableTiming) == 0;
  return Done(Gpus().CreateEvent(timed, event));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return Done(Gpus().RecordEvent(event, StreamOf(stream)));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  CurrentGpu();
  return Done(Gpus().QueryEvent(event));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  CurrentGpu();
  return Done(Gpus().SynchronizeEvent(event));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                unsigned) {
  return Done(Gpus().WaitEvent(StreamOf(stream), event));
}
cudaError_t cudaEventElapsedTime(float* millis, cudaEvent_t begin,
                                 cudaEvent_t end) {
  CurrentGpu();
  return Done(Gpus().ElapsedMillis(begin, end, millis));
}

// ---- Memory.

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  CurrentGpu();
  if (const int error = Gpus().Allocate(bytes, data)) return Done(error);
  // What nobody has written is NaN, and not zero.
  return cudaMemset(*data, 0xff, bytes);
}
cudaError_t cudaFree(void* data) {
  CurrentGpu();
  return data == nullptr ? cudaSuccess : Done(Gpus().Free(data));
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  CurrentGpu();
  return Done(Gpus().AllocatePinned(bytes, data));
}
cudaError_t cudaFreeHost(void* data) {
  CurrentGpu();
  return data == nullptr ? cudaSuccess : Done(Gpus().FreePinned(data));
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  CurrentGpu();
  return Done(Gpus().MemoryInfo(free, total));
}
cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  if (DataAt(data, bytes) == nullptr) {
    const std::string beyond = Beyond(data, bytes);
    return Misuse(cudaErrorInvalidValue,
                  "cudaMemset" +
                      (beyond.empty() ? " of no allocation of a GPU" : beyond));
  }
  const cudaStream_t stream = StreamOf(nullptr);
  const int error = Enqueue(stream, [=] { std::memset(data, value, bytes); });
  return Done(error != 0 ? error : Await(stream));
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  for (const void* const side : {static_cast<const void*>(dst), src}) {
    const bool names_gpu =
        kind == cudaMemcpyDeviceToDevice ||
        kind == (side == dst ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
    if (names_gpu && DataAt(side, 0) == nullptr) {
      return Misuse(cudaErrorInvalidValue,
                    std::string("a copy ") + (side == dst ? "to" : "from") +
                        " a GPU, with an address that is in no allocation");
    }
    const std::string beyond = Beyond(side, bytes);
    if (!beyond.empty()) {
      return Misuse(cudaErrorInvalidValue, "a copy" + beyond);
    }
  }
  return Done(Gpus().CopyAsync(dst, src, bytes, StreamOf(stream)));
}
cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t bytes,
                       cudaMemcpyKind kind) {
  const cudaError_t error = cudaMemcpyAsync(dst, src, bytes, kind, nullptr);
  return error != cudaSuccess ? error : cudaStreamSynchronize(nullptr);
}

}  // extern "C"
