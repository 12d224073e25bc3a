// RunProfile: the profile of a run, which is recorded cell by cell.
//
//   RunProfile recorded(/*cells=*/2);
//   recorded.Record("004/In4", at, [&] { … });
//   recorded.Record("004/In5", at, [&] { … });
//   WriteChromeTrace(recorded.Finish(), "trace.json");
//
// The number of recorded calls is limited to kMaxCalls. A cell may use its
// share of the calls that are left, so that every cell appears; further calls
// are only counted, and a note names the cell.
//
// Not thread-safe; the cells may use threads.

#ifndef D2L_COMMON_LESSON_RUN_RUN_PROFILE_H_
#define D2L_COMMON_LESSON_RUN_RUN_PROFILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/profiler/profile.h"

namespace d2l {

class RunProfile {
 public:
  // They take 25 MB while they are recorded.
  static constexpr std::int64_t kMaxCalls = 200'000;

  // `cells` is the number of cells to come.
  explicit RunProfile(int cells, std::int64_t max_calls = kMaxCalls)
      : cells_left_(cells), calls_left_(max_calls) {}

  // Calls `cell`, in a range of this name. Waits for the devices.
  void Record(const std::string& name, SourceLocation at,
              const std::function<void()>& cell);

  // Returns the whole profile and leaves this empty.
  Profile Finish();

 private:
  int cells_left_;
  std::int64_t calls_left_;
  std::vector<Profile> parts_;
};

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_RUN_PROFILE_H_
