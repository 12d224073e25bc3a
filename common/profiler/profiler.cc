#include "common/profiler/profiler.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/ticks.h"
#include "common/profiler/collector.h"

namespace d2l {

using internal::Collector;

void RecordFunction::Begin(ProfiledKind kind, const std::string& name,
                           SourceLocation at) {
  record_ = Collector::Get().BeginRange(kind, name, at, &chunk_);
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
  const Schedule& schedule = options_.schedule;
  if (schedule.wait < 0 || schedule.warmup < 0 || schedule.active < 0 ||
      schedule.repeat < 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[profiler] a schedule of wait %d, warmup %d, active %d, repeat %d; "
        "none of them may be negative",
        schedule.wait, schedule.warmup, schedule.active, schedule.repeat));
  }
  if (schedule.active == 0 &&
      (schedule.wait > 0 || schedule.warmup > 0 || schedule.repeat > 0)) {
    throw std::invalid_argument(
        "[profiler] a schedule without active steps would record nothing; "
        "active must be at least 1");
  }
}

Profiler::~Profiler() {
  step_range_.reset();
  if (recording_on_) StopRecording();
}

void Profiler::Start(SourceLocation at) {
  if (running_) {
    throw std::logic_error(absl::StrFormat(
        "[profiler] started at %s, but it runs already, since %s; call Stop "
        "first, or use another Profiler",
        at.ToString(), started_at_.ToString()));
  }
  running_ = true;
  started_at_ = at;
  step_ = 0;
  recording_ = nullptr;
  profile_.reset();
  if (scheduled()) {
    BeginStep(at);
  } else {
    StartRecording();
  }
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
  if (scheduled()) {
    EndStep(/*last=*/true);
  } else {
    StopRecording();
  }
  running_ = false;
  stopped_at_ = at;
}

void Profiler::Step(SourceLocation at) {
  if (!running_) {
    throw std::logic_error(absl::StrCat(
        "[profiler] Step at ", at.ToString(),
        ", but the profiler does not run; call Start before the first step"));
  }
  if (!scheduled()) return;
  EndStep(/*last=*/false);
  ++step_;
  BeginStep(at);
}

std::int64_t Profiler::Cycle() const {
  const Schedule& schedule = options_.schedule;
  return std::int64_t{schedule.wait} + schedule.warmup + schedule.active;
}

Profiler::Phase Profiler::PhaseOf(std::int64_t step) const {
  const Schedule& schedule = options_.schedule;
  if (schedule.repeat > 0 && step / Cycle() >= schedule.repeat) {
    return Phase::kWait;
  }
  const std::int64_t in_cycle = step % Cycle();
  if (in_cycle < schedule.wait) return Phase::kWait;
  if (in_cycle < std::int64_t{schedule.wait} + schedule.warmup) {
    return Phase::kWarmUp;
  }
  return Phase::kActive;
}

void Profiler::BeginStep(SourceLocation at) {
  const Phase phase = PhaseOf(step_);
  const Phase before = step_ == 0 ? Phase::kWait : PhaseOf(step_ - 1);
  if (phase != Phase::kWait) {
    // Once to warm up, and anew for what is kept.
    if (!recording_on_) {
      StartRecording();
    } else if (phase == Phase::kActive && before == Phase::kWarmUp) {
      StopRecording();
      StartRecording();
    }
  }
  step_range_.reset(new RecordFunction(
      ProfiledKind::kStep, absl::StrCat("ProfilerStep#", step_), at));
}

void Profiler::EndStep(bool last) {
  step_range_.reset();
  if (!recording_on_) return;
  const bool active = PhaseOf(step_) == Phase::kActive;
  const bool end_of_cycle = (step_ + 1) % Cycle() == 0;
  if (!last && !(active && end_of_cycle)) return;
  StopRecording();
  if (!active) {
    recording_ = nullptr;  // warming up was all there was
    return;
  }
  profile_ = recording_->ToProfile();
  recording_ = nullptr;
  if (options_.on_ready) options_.on_ready(*profile_);
}

void Profiler::StartRecording() {
  profile_.reset();
  recording_ =
      Collector::Get().Start({options_.max_records, options_.profile_memory});
  recording_on_ = true;
}

void Profiler::StopRecording() {
  recording_on_ = false;
  Collector::Get().Stop(*recording_);
}

const Profile& Profiler::profile(SourceLocation at) {
  if (running_ && (recording_on_ || !profile_.has_value())) {
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

d2l::KeyAverages Profiler::KeyAverages(bool group_by_input_shape,
                                       SourceLocation at) {
  return d2l::KeyAverages(profile(at), group_by_input_shape);
}

}  // namespace d2l
