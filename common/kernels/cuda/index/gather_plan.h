// The source of each element when rows are concatenated or gathered, for
// kernels that move units of 1 to 16 bytes and do not know their type.
//
// Pure functions and plain values; thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_INDEX_GATHER_PLAN_H_
#define D2L_COMMON_KERNELS_CUDA_INDEX_GATHER_PLAN_H_

#include <cstdint>

#include "common/kernels/cuda/index/divider.h"
#include "common/kernels/host_device.h"

namespace d2l::kernels::cuda {

// Collects sizes and addresses; the widest unit divides all of them.
class WidestUnit {
 public:
  void Add(std::int64_t bytes) { all_ |= static_cast<std::uint64_t>(bytes); }
  void Add(const void* address) {
    all_ |= reinterpret_cast<std::uintptr_t>(address);
  }
  // 1, 2, 4, 8 or 16.
  int bytes() const {
    int unit = 16;
    while (all_ % static_cast<std::uint64_t>(unit) != 0) unit /= 2;
    return unit;
  }

 private:
  std::uint64_t all_ = 0;
};

// A piece of a Cat: `outer` rows of row_units units, which go to unit `begin`
// of each row of the output.
struct CatPart {
  const void* data;
  std::int64_t units;  // outer * row_units
  std::int64_t begin;
  Splitter row;  // by row_units

  // The place of unit e in an output with rows of `out_row` units.
  D2L_HOST_DEVICE std::int64_t Target(std::int64_t e,
                                      std::int64_t out_row) const {
    std::int64_t within;
    const std::int64_t r = row.Split(e, &within);
    return r * out_row + begin + within;
  }
};

// Index, of an input (outer, size, inner) in units.
struct IndexMap {
  // Where unit e of the output comes from.
  struct UnitSource {
    std::int64_t position;  // of the index to read
    std::int64_t block;     // of the input
    std::int64_t within;    // within a row
  };

  bool gather;
  std::int64_t size;
  std::int64_t inner;
  std::int64_t units;  // of the output: outer * count * inner
  Splitter by_inner;
  Splitter by_count;

  D2L_HOST_DEVICE UnitSource At(std::int64_t e) const {
    UnitSource source;
    std::int64_t i;
    source.block = by_count.Split(by_inner.Split(e, &source.within), &i);
    source.position = gather ? e : i;
    return source;
  }
  D2L_HOST_DEVICE std::int64_t Source(const UnitSource& source,
                                      std::int64_t index) const {
    return (source.block * size + index) * inner + source.within;
  }
};

inline IndexMap MakeIndexMap(bool gather, std::int64_t outer, std::int64_t size,
                             std::int64_t count, std::int64_t inner) {
  const std::int64_t rows = outer * count;
  const std::int64_t units = rows * inner;
  return {gather,
          size,
          inner,
          units,
          Splitter(inner, units),
          Splitter(count, rows)};
}

}  // namespace d2l::kernels::cuda

#endif  // D2L_COMMON_KERNELS_CUDA_INDEX_GATHER_PLAN_H_
