// The CPU kernels: each family chooses its loop when the operation is
// enqueued, so that the worker calls one function on raw pointers.

#include <cstdint>

#include "common/device/cpu/cpu_stream.h"
#include "common/kernels/cpu/concat_gather.h"
#include "common/kernels/cpu/elementwise.h"
#include "common/kernels/cpu/enqueue_random.h"
#include "common/kernels/cpu/matmul.h"
#include "common/kernels/cpu/reduce.h"
#include "common/kernels/kernels.h"

namespace d2l::kernels {
namespace {

CpuStream& AsCpu(Stream& stream) { return static_cast<CpuStream&>(stream); }

class CpuKernelsImpl final : public Kernels {
 public:
  std::uint64_t Fill(Stream& stream, const OpLabel& label,
                     const FillArgs& args) override {
    return cpu::EnqueueFill(AsCpu(stream), label, args);
  }
  std::uint64_t Arange(Stream& stream, const OpLabel& label,
                       const ArangeArgs& args) override {
    return cpu::EnqueueArange(AsCpu(stream), label, args);
  }
  std::uint64_t Random(Stream& stream, const OpLabel& label,
                       const RandomArgs& args) override {
    return cpu::EnqueueRandom(AsCpu(stream), label, args);
  }
  std::uint64_t Copy(Stream& stream, const OpLabel& label,
                     const CopyArgs& args) override {
    return cpu::EnqueueCopy(AsCpu(stream), label, args);
  }
  std::uint64_t Unary(Stream& stream, const OpLabel& label,
                      const UnaryArgs& args) override {
    return cpu::EnqueueUnary(AsCpu(stream), label, args);
  }
  std::uint64_t Binary(Stream& stream, const OpLabel& label,
                       const BinaryArgs& args) override {
    return cpu::EnqueueBinary(AsCpu(stream), label, args);
  }
  std::uint64_t Where(Stream& stream, const OpLabel& label,
                      const WhereArgs& args) override {
    return cpu::EnqueueWhere(AsCpu(stream), label, args);
  }
  std::uint64_t Reduce(Stream& stream, const OpLabel& label,
                       const ReduceArgs& args) override {
    return cpu::EnqueueReduce(AsCpu(stream), label, args);
  }
  std::uint64_t Softmax(Stream& stream, const OpLabel& label,
                        const SoftmaxArgs& args) override {
    return cpu::EnqueueSoftmax(AsCpu(stream), label, args);
  }
  std::uint64_t MatMul(Stream& stream, const OpLabel& label,
                       const MatMulArgs& args) override {
    return cpu::EnqueueMatMul(AsCpu(stream), label, args);
  }
  std::uint64_t Cat(Stream& stream, const OpLabel& label,
                    const CatArgs& args) override {
    return cpu::EnqueueCat(AsCpu(stream), label, args);
  }
  std::uint64_t Index(Stream& stream, const OpLabel& label,
                      const IndexArgs& args) override {
    return cpu::EnqueueIndex(AsCpu(stream), label, args);
  }
};

}  // namespace

Kernels& CpuKernels() {
  static CpuKernelsImpl& kernels = *new CpuKernelsImpl;
  return kernels;
}

}  // namespace d2l::kernels
