// The models of GPUs behind cudart.cc and blas.cc.
//
//   FakeCuda& gpus = Gpus();
//   int gpu = GpuOf(stream);              // -1: no stream
//   char* data = DataAt(pointer, bytes);  // null: not all in an allocation
//
// Streams, events, graphs and memory are FakeCuda's, as with
// --config=emulate_cuda; kernels are the interpreter's. Thread-safe.

#ifndef D2L_TESTS_PTX_RUNTIME_H_
#define D2L_TESTS_PTX_RUNTIME_H_

#include <cstddef>
#include <functional>
#include <string>

#include "common/device/cuda/cuda_api.h"
#include "common/device/cuda/fake/fake_cuda.h"

namespace d2l::ptx {

FakeCuda& Gpus();

// The thread's device; 0 unless it has set one, as in CUDA.
int CurrentGpu();
// The stream for a null handle is the current device's own.
CudaStreamHandle StreamOf(CudaStreamHandle stream);
int GpuOf(CudaStreamHandle stream);
bool IsCaptured(CudaStreamHandle stream);

char* DataAt(const void* data, std::size_t bytes);

// Runs it as work of the stream; a Fault loses the context. Returns a
// cudaError_t.
int Enqueue(CudaStreamHandle stream, std::function<void()> work);

}  // namespace d2l::ptx

#endif  // D2L_TESTS_PTX_RUNTIME_H_
