// Shadow remembers the last uses of each byte of memory, to find races.
//
//   Shadow shadow;
//   shadow.Mark(address, 4, use, order, [](const Use& before) { … });
//
// Not thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_SHADOW_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_SHADOW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/kernels/cuda/fake/check.h"
#include "common/kernels/cuda/fake/order.h"

namespace d2l::kernels::cuda::internal {

class Shadow {
 public:
  void Clear() { pages_.clear(); }

  // Calls race(before) for each use of these bytes that this one races with.
  // Returns false if one of the bytes was never written.
  template <typename OnRace>
  bool Mark(std::uintptr_t begin, std::size_t bytes, const Use& use,
            Order& order, const OnRace& race) {
    bool written = true;
    for (std::uintptr_t a = begin; a < begin + bytes;) {
      std::vector<Cell>& cells = pages_[a / kPage];
      const bool whole = a % 4 == 0 && begin + bytes - a >= 4;
      if (cells.empty()) cells.resize(kPage / 4);
      if (!whole && cells.size() < kPage) {
        const std::vector<Cell> words = std::exchange(cells, {});
        for (std::size_t i = 0; i < kPage; ++i) cells.push_back(words[i / 4]);
      }
      Cell& cell = cells[a % kPage * cells.size() / kPage];
      for (const Use& before : cell) {
        if (Conflict(before, use) && !order.Ordered(before, use)) race(before);
      }
      auto& [write, first, second] = cell;
      written = written && write.site != 0;
      // A read replaces one that comes before it. One of the two slots keeps a
      // read by another thread, or by the first block.
      if (use.writes) {
        write = use;
      } else if (first.site == 0 ||
                 (first.block == use.block && order.Ordered(first, use))) {
        first = use;
      } else {
        second = use;
      }
      a += kPage / cells.size();
    }
    return written;
  }

 private:
  static bool Conflict(const Use& a, const Use& b) {
    return a.site != 0 && (a.writes || b.writes) && !(a.atomic && b.atomic);
  }

  // The last write, and two reads: enough to find a read by another thread, and
  // one by another block.
  using Cell = std::array<Use, 3>;
  // Cells by address / kPage: one per word until a word is used in parts, then
  // one per byte.
  static constexpr std::size_t kPage = 256;
  absl::flat_hash_map<std::uintptr_t, std::vector<Cell>> pages_;
};

}  // namespace d2l::kernels::cuda::internal

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_SHADOW_H_
