// For kernels that include CUDA's header: kernel.h has CUDA's words already.
// nvcc, which does not search this folder, takes its own.
