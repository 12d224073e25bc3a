#include "common/profiler/profiler.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/ticks.h"
#include "common/profiler/collector.h"

namespace d2l {

using internal::Collector;

void RecordFunction::Begin(const std::string& name, SourceLocation at) {
  record_ = Collector::Get().BeginRange(name, at, &chunk_);
}

void RecordFunction::End() {
  record_->host_end.store(NowTicks(), std::memory_order_release);
}

Profiler::Profiler(ProfilerOptions options) : options_(std::move(options)) {
  if (options_.max_records < 1) {
    throw std::invalid_argument(
        absl::StrFormat("[profiler] max_records is %d; it must be at least 1",
                        options_.max_records));
  }
}

Profiler::~Profiler() {
  if (running_) Collector::Get().Stop(*recording_);
}

void Profiler::Start(SourceLocation at) {
  if (running_) {
    throw std::logic_error(absl::StrFormat(
        "[profiler] started at %s, but it runs already, since %s; call Stop "
        "first, or use another Profiler",
        at.ToString(), started_at_.ToString()));
  }
  profile_.reset();
  recording_ =
      Collector::Get().Start({options_.max_records, options_.profile_memory});
  running_ = true;
  started_at_ = at;
}

void Profiler::Stop(SourceLocation at) {
  if (!running_) {
    throw std::logic_error(absl::StrCat(
        "[profiler] stopped at ", at.ToString(), ", but ",
        stopped_at_.known()
            ? absl::StrCat("it was stopped before, at ", stopped_at_.ToString())
            : std::string("it was never started"),
        "; each Stop needs a Start"));
  }
  Collector::Get().Stop(*recording_);
  running_ = false;
  stopped_at_ = at;
}

const Profile& Profiler::profile(SourceLocation at) {
  if (running_) {
    throw std::logic_error(absl::StrFormat(
        "[profiler] the result was asked for at %s, but the profiler still "
        "runs, since %s; call Stop first",
        at.ToString(), started_at_.ToString()));
  }
  if (!profile_.has_value()) {
    profile_ = recording_ == nullptr ? Profile() : recording_->ToProfile();
    recording_ = nullptr;
  }
  return *profile_;
}

d2l::KeyAverages Profiler::KeyAverages(SourceLocation at) {
  return d2l::KeyAverages(profile(at));
}

}  // namespace d2l
