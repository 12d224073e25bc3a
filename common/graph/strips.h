// Strips: runs a fused region over short pieces of its elements, all of its
// operations on one piece before the next, so that what is between them stays
// in the first-level cache.
//
//   auto strips = std::make_shared<const ir::Strips>(body);
//   strips->Run({x, bias, out});  // addresses: the arguments, then the results
//
// The loops are those of the CPU's element-wise kernels, chosen as they choose
// them, so results are theirs bit for bit. A strip has 512 elements (2 KB of
// float32; a shorter one costs more calls of loops, of 3 ns each, and a longer
// one more of the cache). Large results are written with non-temporal stores,
// and parts run on the device's cores, as in a kernel.
//
// Of a region for which there is compiled C++ (generated/cpp_code.h), that is
// called for each strip instead of the loops.
//
// A result may be the memory of an argument of its shape that the region has
// read by then, element for element.
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

// Computes a strip of n elements, at most Strips::kElements. memory: where the
// strip begins in each argument and result; of a row, a copy of what the strip
// needs of it.
using RegionFn = void (*)(void* const* memory,
                          const kernels::cpu::LoopFn* loops, std::int64_t n);

class Strips {
 public:
  static constexpr std::int64_t kElements = 512;

  // body: of a fused region of a valid graph.
  explicit Strips(const Function& body);
  Strips(const Function& body, RegionFn region,
         std::vector<kernels::cpu::LoopFn> loops);

  void Run(absl::Span<void* const> memory) const;

 private:
  // What a loop reads or writes.
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
  // memory[index], of which a strip is copied to a slot again and again.
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
  // Instead of the steps, if it is not null.
  RegionFn region_ = nullptr;
  std::vector<kernels::cpu::LoopFn> loops_;
  std::vector<Ref> memory_;
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_STRIPS_H_
