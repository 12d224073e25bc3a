// Strips: runs a fused region over short parts of its elements, all operations
// on one part before the next, so that values between operations stay in the
// first-level cache.
//
//   auto strips = std::make_shared<const ir::Strips>(body);
//   strips->Run({x, bias, out});  // addresses: the arguments, then the results
//
// The loops are those of the CPU's element-wise kernels, chosen in the same
// way, so results are bit for bit the same. A strip has 512 elements (2 KB of
// float32; a shorter strip costs more calls of loops, of 3 ns each, and a
// longer one more of the cache). Large results are written with non-temporal
// stores, and the device's cores share the work, as in a kernel.
//
// If there is compiled C++ for a region (generated/cpp_code.h), it is called
// for each strip instead of the loops.
//
// A result may be the memory of an argument of its shape, element for element,
// if the region has read the argument by then.
//
// Thread-safety: Run is const. For CPU devices; runs on a stream's worker.

#ifndef D2L_COMMON_GRAPH_STRIPS_H_
#define D2L_COMMON_GRAPH_STRIPS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/graph/ir.h"
#include "common/kernels/cpu/elementwise_loops.h"

namespace d2l::ir {

// Computes a strip of n elements, at most Strips::kElements. `memory` is where
// the strip begins in each argument and result; for a row, it is a copy of the
// part that the strip needs.
using RegionFn = void (*)(void* const* memory,
                          const kernels::cpu::LoopFn* loops, std::int64_t n);

class Strips {
 public:
  static constexpr std::int64_t kElements = 512;

  // `body` is that of a fused region of a valid graph.
  explicit Strips(const Function& body);
  Strips(const Function& body, RegionFn region,
         std::vector<kernels::cpu::LoopFn> loops);

  void Run(absl::Span<void* const> memory) const;

 private:
  // A place that a loop reads or writes.
  struct Ref {
    enum Kind : std::uint8_t {
      kNone,
      kEach,    // element by element in memory[index]
      kOne,     // the number at memory[index]
      kNumber,  // numbers_[index]
      kSlot,    // scratch memory
    };
    Kind kind = kNone;
    int index = 0;
    int size = 0;  // of an element
  };
  struct Step {
    kernels::cpu::LoopFn loop;
    Ref out;
    Ref in[3];
  };
  // memory[index], which is copied, repeated, to a slot for each strip.
  struct Row {
    int index;
    int slot;
    int size;  // of an element
    std::int64_t period;
  };
  struct Number {
    alignas(8) unsigned char bytes[8];
  };
  class Builder;

  void RunPart(absl::Span<void* const> memory, bool stream, std::int64_t begin,
               std::int64_t end) const;

  std::int64_t numel_ = 0;
  int arguments_ = 0;
  int slots_ = 0;
  std::vector<int> result_sizes_;  // of an element
  std::vector<Row> rows_;
  std::vector<Number> numbers_;
  std::vector<Step> steps_;
  // Called instead of the steps, if it is not null.
  RegionFn region_ = nullptr;
  std::vector<kernels::cpu::LoopFn> loops_;
  std::vector<Ref> memory_;
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_STRIPS_H_
