// The CPU kernels: each family chooses its loop when the operation is
// enqueued, so that the worker calls one function on raw pointers.

#include <algorithm>
#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/kernels/cpu/elementwise.h"
#include "common/kernels/cpu/matmul.h"
#include "common/kernels/cpu/random.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels {
namespace {

CpuStream& AsCpu(Stream& stream) { return static_cast<CpuStream&>(stream); }

class CpuKernelsImpl final : public Kernels {
 public:
  std::uint64_t Fill(Stream& stream, const OpLabel& label, DType dtype,
                     void* out, std::int64_t numel, double value) override {
    return VisitDType(dtype, [&](auto zero) {
      using T = decltype(zero);
      return AsCpu(stream).Enqueue(label, [out = static_cast<T*>(out), numel,
                                           value = static_cast<T>(value)] {
        std::fill_n(out, numel, value);
      });
    });
  }

  std::uint64_t RandomNormal(Stream& stream, const OpLabel& label, DType dtype,
                             void* out, std::int64_t numel,
                             RandomState state) override {
    if (dtype == DType::kFloat64) {
      return AsCpu(stream).Enqueue(
          label, [out = static_cast<double*>(out), numel, state] {
            cpu::NormalFill(out, 0, numel, state.seed, state.offset);
          });
    }
    return AsCpu(stream).Enqueue(
        label, [out = static_cast<float*>(out), numel, state] {
          cpu::NormalFill(out, 0, numel, state.seed, state.offset);
        });
  }

  std::uint64_t Unary(Stream& stream, const OpLabel& label,
                      const UnaryArgs& args) override {
    return cpu::EnqueueUnary(AsCpu(stream), label, args);
  }

  std::uint64_t Binary(Stream& stream, const OpLabel& label,
                       const BinaryArgs& args) override {
    return cpu::EnqueueBinary(AsCpu(stream), label, args);
  }

  std::uint64_t MatMul(Stream& stream, const OpLabel& label,
                       const MatMulArgs& args) override {
    return AsCpu(stream).Enqueue(label, [args] { cpu::MatMul(args); });
  }
};

}  // namespace

Kernels& CpuKernels() {
  static CpuKernelsImpl& kernels = *new CpuKernelsImpl;
  return kernels;
}

}  // namespace d2l::kernels
