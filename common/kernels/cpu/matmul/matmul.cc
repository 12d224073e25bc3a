#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "common/device/cpu/cpu_stream.h"
#include "common/device/cpu/parallel_for.h"
#include "common/kernels/cpu/matmul/gemm.h"
#include "common/kernels/enqueue.h"

namespace d2l::kernels::cpu {
namespace {

// The number of units of `work` multiplications worth a core; at least 1.
std::int64_t Grain(std::int64_t work) {
  return std::max<std::int64_t>(1,
                                kGemmGrain / std::max<std::int64_t>(1, work));
}

// m * n * k, or the largest product that does not overflow.
std::int64_t Work(std::int64_t m, std::int64_t n, std::int64_t k) {
  const double work =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return static_cast<std::int64_t>(std::min(work, 0x1p62));
}

// The usual product: not in a batch, and with sides that fit 32 bits. Its task
// is as small as a task should be (task_queue.h).
template <typename T, bool kTransposeA, bool kTransposeB>
struct OneProduct {
  const T* a;
  const T* b;
  T* c;
  std::int32_t m, n, k, lda, ldb, ldc;

  void operator()() const {
    Gemm<T>({kTransposeA, kTransposeB, m, n, k, a, lda, b, ldb, c, ldc});
  }
};

template <typename T, bool kTransposeA, bool kTransposeB>
struct Products {
  const T* a;
  const T* b;
  T* c;
  std::int64_t m, n, k, lda, ldb, ldc;
  std::int64_t batch, a_stride, b_stride, c_stride;

  void operator()() const {
    const std::int64_t work = Work(m, n, k);
    if (work >= kGemmGrain) {
      for (std::int64_t i = 0; i < batch; ++i) Gemm(At(i));
      return;
    }
    ParallelFor(batch, Grain(work), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) Gemm(At(i));
    });
  }

  GemmArgs<T> At(std::int64_t i) const {
    return {kTransposeA, kTransposeB,      m,   n,
            k,           a + i * a_stride, lda, b + i * b_stride,
            ldb,         c + i * c_stride, ldc};
  }
};

// A product of few rows with a transposed b, as a linear layer stores it, or
// with one column. Both sides then lie in memory along k.
template <typename T>
struct SkinnyGemm {
  // Columns in a cache line of c, which no two cores share.
  static constexpr std::int64_t kLine = 64 / sizeof(T);

  GemvArgs<T> args;

  void operator()() const {
    const std::int64_t each = Work(args.rows, 1, args.k);
    ParallelFor(args.columns, kLine * Grain(kLine * each),
                [this](std::int64_t begin, std::int64_t end) {
                  Gemv(args, begin, end);
                });
  }
};

// Copying b pays for at least this many rows.
constexpr std::int64_t kManyRows = 8;

// Whether the product is such a product of few rows.
template <typename T>
bool AsSkinnyGemm(const MatMulArgs& args, SkinnyGemm<T>& skinny) {
  const T* a = static_cast<const T*>(args.a);
  const T* b = static_cast<const T*>(args.b);
  T* c = static_cast<T*>(args.c);
  // For a shorter k, a tile of a general product is as fast.
  if (args.batch != 1 || args.k < kGemvParts<T>) return false;
  const bool a_along_k = !args.transpose_a || (args.m == 1 && args.lda == 1);
  const bool b_along_k = args.transpose_b || (args.n == 1 && args.ldb == 1);
  if (!a_along_k || !b_along_k) return false;
  if (args.m < kManyRows && args.m <= args.n) {
    skinny.args = {args.m, args.n,   args.k, a,        args.lda,
                   b,      args.ldb, c,      args.ldc, 1};
    return true;
  }
  if (args.n < kManyRows) {
    skinny.args = {args.n, args.m,   args.k, b, args.ldb,
                   a,      args.lda, c,      1, args.ldc};
    return true;
  }
  return false;
}

bool FitInt32(std::initializer_list<std::int64_t> sizes) {
  return std::max(sizes) <= std::numeric_limits<std::int32_t>::max();
}

template <typename T, bool kTransposeA, bool kTransposeB>
std::uint64_t EnqueueOf(CpuStream& stream, const OpLabel& label,
                        const MatMulArgs& args) {
  const T* a = static_cast<const T*>(args.a);
  const T* b = static_cast<const T*>(args.b);
  T* c = static_cast<T*>(args.c);
  if (SkinnyGemm<T> skinny; AsSkinnyGemm(args, skinny))
    return stream.Enqueue(label, skinny);
  std::int64_t m = args.m;
  std::int64_t batch = args.batch;
  // A batch with one b for all, as in a layer of a network, is a single product
  // with more rows.
  if (batch > 1 && !kTransposeA && args.b_stride == 0 &&
      args.a_stride == m * args.lda && args.c_stride == m * args.ldc) {
    m *= batch;
    batch = 1;
  }
  if (batch == 1 &&
      FitInt32({m, args.n, args.k, args.lda, args.ldb, args.ldc})) {
    using Task = OneProduct<T, kTransposeA, kTransposeB>;
    static_assert(sizeof(Task) == 48);
    const auto narrow = [](std::int64_t n) {
      return static_cast<std::int32_t>(n);
    };
    return stream.Enqueue(
        label, Task{a, b, c, narrow(m), narrow(args.n), narrow(args.k),
                    narrow(args.lda), narrow(args.ldb), narrow(args.ldc)});
  }
  return stream.Enqueue(
      label, Products<T, kTransposeA, kTransposeB>{
                 a, b, c, m, args.n, args.k, args.lda, args.ldb, args.ldc,
                 batch, args.a_stride, args.b_stride, args.c_stride});
}

template <typename T>
std::uint64_t EnqueueOf(CpuStream& stream, const OpLabel& label,
                        const MatMulArgs& args) {
  if (args.transpose_a) {
    return args.transpose_b ? EnqueueOf<T, true, true>(stream, label, args)
                            : EnqueueOf<T, true, false>(stream, label, args);
  }
  return args.transpose_b ? EnqueueOf<T, false, true>(stream, label, args)
                          : EnqueueOf<T, false, false>(stream, label, args);
}

}  // namespace

std::uint64_t Enqueue(CpuStream& stream, const OpLabel& label,
                      const MatMulArgs& args) {
  return args.dtype == DType::kFloat64 ? EnqueueOf<double>(stream, label, args)
                                       : EnqueueOf<float>(stream, label, args);
}

}  // namespace d2l::kernels::cpu
