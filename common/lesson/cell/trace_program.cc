#include "common/lesson/cell/trace_program.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/graph/program_graph.h"
#include "common/ops/primitive/record.h"
#include "common/profiler/profile.h"
#include "common/profiler/profiler.h"

namespace d2l {

Profile ProfileProgram(const std::function<void()>& program) {
  Profiler profiler;
  {
    const ProfileScope scope(profiler);
    program();
  }
  return profiler.profile();
}

TracedProgram TraceProgram(const std::function<void()>& program) {
  Tracer tracer;
  const Profile profile = ProfileProgram([&] {
    const ScopedOpListener listen(&tracer);
    program();
  });
  std::map<std::pair<std::string, std::uint64_t>, const ProfiledSpan*> spans;
  for (const ProfiledSpan& span : profile.spans) {
    if (span.device_time != DeviceTime::kMeasured) continue;
    spans[{profile.streams[span.stream].name, span.number}] = &span;
  }
  for (GraphOp& op : tracer.ops()) {
    if (op.stream < 0) continue;
    const auto span = spans.find({tracer.streams()[op.stream], op.number});
    if (span == spans.end()) continue;
    op.begin = span->second->device_begin;
    op.end = span->second->device_end;
  }
  return {tracer.Graph(), profile};
}

}  // namespace d2l
