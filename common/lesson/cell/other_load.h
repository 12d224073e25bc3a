// OtherLoad: the use by other programs of the cores that this one may use.
//
//   const LoadWatch watch;
//   RunTheCell();
//   if (const std::optional<OtherLoad> load = watch.Seen()) {
//     if (load->Disturbs(3)) std::cout << load->Text();
//   }
//
// "Other programs used 1.4 of 2 cores."
//
// Not thread-safe.

#ifndef D2L_COMMON_LESSON_CELL_OTHER_LOAD_H_
#define D2L_COMMON_LESSON_CELL_OTHER_LOAD_H_

#include <optional>
#include <string>

#include "common/base/machine.h"

namespace d2l {

struct OtherLoad {
  double cores = 0;
  int of = 0;  // cores that this program may use

  // Whether they use more than 0.3 cores, and leave fewer than `needed`.
  bool Disturbs(int needed) const;
  std::string Text() const;
};

// The factor by which other programs may change a time even if its threads get
// their cores: 1.05, since programs share caches and memory, which affects both
// sides of a ratio; 1.3 if a core has two hyper-threads.
double LoadAllowance();

class LoadWatch {
 public:
  LoadWatch();

  // The load since the watch was made, without this program's threads and its
  // ended children. Nothing if /proc/stat does not say; no load if the time was
  // too short for its ticks.
  std::optional<OtherLoad> Seen() const;

 private:
  CpuTimes before_;
  double own_before_;  // seconds
};

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_CELL_OTHER_LOAD_H_
