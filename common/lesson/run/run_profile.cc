#include "common/lesson/run/run_profile.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/console/language.h"
#include "common/profiler/profiler.h"

namespace d2l {

void RunProfile::Record(const std::string& name, SourceLocation at,
                        const std::function<void()>& cell) {
  ProfilerOptions options;
  options.profile_memory = true;
  options.max_records =
      std::max<std::int64_t>(1, calls_left_ / std::max(1, cells_left_));
  Profiler profiler(options);
  {
    const ProfileScope scope(profiler, at);
    const RecordFunction range(name, at);
    cell();
  }
  Profile part = profiler.profile(at);
  --cells_left_;
  calls_left_ -= static_cast<std::int64_t>(part.spans.size());
  for (std::string& note : part.notes) note = absl::StrCat(name, ": ", note);
  parts_.push_back(std::move(part));
}

Profile RunProfile::Finish() {
  Profile profile = Merge(std::move(parts_));
  parts_.clear();
  if (profile.cut > 0) {
    profile.notes.push_back(
        Say("To record more calls of a cell, run fewer cells: --cell=ID."));
  }
  return profile;
}

}  // namespace d2l
