// The kinds of vector that a test or a benchmark goes through.
//
//   for (const std::int64_t target : Targets()) {
//     SCOPED_TRACE(hwy::TargetName(target));
//     const ScopedTarget scope(target);
//     FillRandom(…);  // with these vectors
//   }
//
// For one thread at a time: the choice holds for the whole process.

#ifndef D2L_COMMON_KERNELS_CPU_TARGETS_H_
#define D2L_COMMON_KERNELS_CPU_TARGETS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/kernels/cpu/vector_targets.h"
#include "hwy/highway.h"

namespace d2l::kernels::cpu {

// The targets that were compiled and that this machine has, the best first; the
// last one runs on every machine.
inline std::vector<std::int64_t> Targets() {
  std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  if (targets.back() != HWY_STATIC_TARGET) targets.push_back(HWY_STATIC_TARGET);
  return targets;
}

// Makes every call go to one target while it lives.
class ScopedTarget {
 public:
  explicit ScopedTarget(std::int64_t target) { Choose(target); }
  ~ScopedTarget() { Choose(0); }
  ScopedTarget(const ScopedTarget&) = delete;
  ScopedTarget& operator=(const ScopedTarget&) = delete;

 private:
  static void Choose(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    // Forgets the earlier choice; nothing else changes.
    hwy::GetChosenTarget().DeInit();
  }
};

// Whether a multiplication and the addition that follows round once.
inline bool Fuses(std::int64_t target) {
  const std::string name = hwy::TargetName(target);
  for (const char* other :
       {"SSE2", "SSSE3", "SSE4", "EMU128", "WASM", "WASM_EMU256"}) {
    if (name == other) return false;
  }
  return true;
}

}  // namespace d2l::kernels::cpu

#endif  // D2L_COMMON_KERNELS_CPU_TARGETS_H_
