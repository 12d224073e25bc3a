#include "common/profiler/what_if.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

using Kind = PlayedRequest::Kind;

struct Chain {
  double front_end = 0;
  std::map<std::string, std::pair<int, double>> work;  // count, seconds
};

Chain ChainOf(const PlayedProgram& program, const Played& played) {
  Chain chain;
  for (const PlayedNode& node : PathOf(played)) {
    const PlayedRequest& request = program.requests[node.request];
    if (!node.work || request.work == 0) {
      chain.front_end += node.seconds;
      continue;
    }
    auto& [count, seconds] = chain.work[request.name];
    ++count;
    seconds += node.seconds;
  }
  return chain;
}

std::string Longest(const Chain& chain) {
  const auto longest = std::max_element(
      chain.work.begin(), chain.work.end(), [](const auto& a, const auto& b) {
        return a.second.second < b.second.second;
      });
  if (longest == chain.work.end() || longest->second.second < chain.front_end) {
    return Say("the front end takes %s", FormatDuration(chain.front_end));
  }
  return Say("a chain of %d %s takes %s", longest->second.first, longest->first,
             FormatDuration(longest->second.second));
}

double RoomSeconds(const Played& played) {
  double seconds = 0;
  for (const PlayedTimes& times : played.times) seconds += times.room;
  return seconds;
}

// By the figures that the course's notebooks print.
PlayedMachine CoursesMachine() {
  PlayedMachine machine;
  machine.ask = 1.8384 / 40'000;          // 000: products of 100 x 100, on both
  machine.flop_per_second = 2e10 / 2e-3;  // 004: ten of 1000 x 1000
  machine.bytes_per_second = 500e9;       // the book's GPU, 13.4.5
  machine.link_bytes_per_second = 16e9;   // and PCIe
  machine.queue = 1024;
  machine.kernel = 2e-6;
  return machine;
}

// By NVIDIA's data sheet.
PlayedMachine TwoH100() {
  PlayedMachine machine;
  machine.flop_per_second = 67e12;
  machine.bytes_per_second = 3.35e12;
  machine.link_bytes_per_second = 64e9;
  // No data sheet has these.
  machine.ask = 4e-6;
  machine.kernel = 2e-6;
  machine.queue = 512;
  machine.wake_up = {{WakeUp::kBehind, 1e-6},     {WakeUp::kSoon, 5e-6},
                     {WakeUp::kLate, 5e-6},       {WakeUp::kEvent, 5e-6},
                     {WakeUp::kReturnSoon, 5e-6}, {WakeUp::kReturnLate, 5e-6}};
  return machine;
}

}  // namespace

PlayedProgram WithFreeRequests(PlayedProgram program) {
  for (PlayedRequest& request : program.requests) request.ask = 0;
  return program;
}

PlayedProgram WithoutWaits(PlayedProgram program, SourceLocation at) {
  std::set<int> asked;  // threads that enqueue work behind this
  for (std::size_t i = program.requests.size(); i-- > 0;) {
    PlayedRequest& request = program.requests[i];
    const bool behind = asked.count(request.thread) > 0;
    if (request.work > 0) asked.insert(request.thread);
    if (behind && request.at == at) request.awaits.clear();
  }
  return program;
}

PlayedProgram WithWaits(PlayedProgram program) {
  for (std::size_t i = 0; i < program.requests.size(); ++i) {
    PlayedRequest& request = program.requests[i];
    if (request.stream < 0 || request.work == 0) continue;
    request.awaits = {static_cast<int>(i)};
    request.return_from_wait = {WakeUp::kBehind, 0};  // no kind of return
  }
  return program;
}

// Other work goes to a stream that stands for its old stream, behind all
// operations that were enqueued there before it.
PlayedProgram OnDevices(PlayedProgram program, int devices) {
  const int streams = static_cast<int>(program.device_of.size());
  std::set<int> with_others;  // streams
  for (const PlayedRequest& request : program.requests) {
    if (request.kind != Kind::kOperation && request.work > 0) {
      with_others.insert(request.stream);
    }
  }
  std::vector<std::vector<int>> operations(streams);  // since other work
  std::vector<double> free(devices, 0);
  std::vector<double> ends(program.requests.size(), 0);
  for (std::size_t i = 0; i < program.requests.size(); ++i) {
    PlayedRequest& request = program.requests[i];
    const int stream = request.stream;
    if (stream < 0) continue;
    if (request.kind != Kind::kOperation) {
      request.stream = devices + stream;
      request.after.insert(request.after.end(), operations[stream].begin(),
                           operations[stream].end());
      operations[stream].clear();
      continue;
    }
    operations[stream].push_back(static_cast<int>(i));
    std::vector<int> after = request.inputs;
    for (const int event : request.after) {
      if (with_others.count(program.requests[event].stream - devices) > 0) {
        after.push_back(event);
      }
    }
    request.after = std::move(after);
    double ready = 0;
    int device = 0;  // the one of its last input, unless another is free first
    for (const int input : request.inputs) {
      if (ends[input] >= ready) {
        ready = ends[input], device = program.requests[input].stream;
      }
    }
    for (int d = 0; d < devices; ++d) {
      if (std::max(free[d], ready) < std::max(free[device], ready)) device = d;
    }
    request.stream = device;
    ends[i] = free[device] = std::max(free[device], ready) + request.work;
  }
  program.device_of.resize(devices + streams);
  for (int s = 0; s < devices + streams; ++s) program.device_of[s] = s;
  return program;
}

PlayedProgram Faster(PlayedProgram program, double times,
                     const std::string& name) {
  for (PlayedRequest& request : program.requests) {
    if (request.name == name) request.work /= times;
  }
  return program;
}

PlayedProgram OnMachine(PlayedProgram program, const PlayedMachine& machine,
                        const Peaks& here) {
  for (PlayedRequest& request : program.requests) {
    // No wake-up is recorded as these kinds, so the machine's times count.
    request.return_from_wait = {WakeUp::kBehind, 0};
    if (request.stream < 0 || request.work == 0) continue;
    request.wake_up = {WakeUp::kReturnLate, 0};
    request.ask = machine.ask;
    const OpCost& cost = request.cost;
    const auto bytes = static_cast<double>(cost.bytes);
    const double bound = BoundOf(cost, here).seconds;
    if (request.kind == Kind::kCopy) {
      request.work = machine.kernel + bytes / machine.link_bytes_per_second;
    } else if (bound > 0) {
      // As far from the bound there as here.
      request.work =
          machine.kernel +
          request.work / bound *
              std::max(static_cast<double>(cost.flop) / machine.flop_per_second,
                       bytes / machine.bytes_per_second);
    }
  }
  return program;
}

WhatIf::WhatIf(RecordedProgram of, const Peaks& here)
    : recorded(std::move(of)) {
  const PlayedProgram& program = recorded.program;
  const PlayedMachine& machine = recorded.machine;
  const Played played = Play(program, machine);
  const Chain chain = ChainOf(program, played);
  seconds = played.seconds;
  const auto add_played = [&](std::string what, const PlayedProgram& changed,
                              const Played& other, std::string because = "") {
    if (because.empty()) because = Longest(ChainOf(changed, other));
    changes.push_back({std::move(what), other.seconds, std::move(because)});
  };
  const auto add = [&](std::string what, const PlayedProgram& changed,
                       const PlayedMachine& on, std::string because = "") {
    add_played(std::move(what), changed, Play(changed, on), std::move(because));
  };
  const auto has = [&](Kind kind, bool wait = false) {
    return std::any_of(program.requests.begin(), program.requests.end(),
                       [&](const auto& one) {
                         return one.kind == kind && (one.stream < 0) == wait;
                       });
  };

  const PlayedProgram free = WithFreeRequests(program);
  const Played freely = Play(free, machine);
  add_played(Say("enqueueing free"), free, freely,
             freely.seconds > 0.98 * seconds
                 ? Say("it is hidden behind the work")
                 : Say("the front end takes %s of the longest chain",
                       FormatDuration(chain.front_end)));
  const PlayedProgram waits = WithWaits(program);
  const Played waiting = Play(waits, machine);
  add_played(Say("a wait for each operation"), waits, waiting,
             waiting.seconds > seconds
                 ? Say("enqueueing and work do not overlap")
                 : "");
  const int devices = static_cast<int>(recorded.devices.size());
  if (devices > 1) {
    add(Say("one device"), OnDevices(program, 1), machine);
  }
  if (has(Kind::kOperation)) {
    add(Say("%d devices", devices + 1), OnDevices(program, devices + 1),
        machine);
  }
  for (const std::int64_t queue : {std::int64_t{16}, machine.queue * 16}) {
    PlayedMachine with = machine;
    with.queue = queue;
    if (queue == machine.queue) continue;
    const Played other = Play(program, with);
    const double room = RoomSeconds(queue < machine.queue ? other : played);
    if (room == 0) continue;
    add_played(
        Say("a queue of %d", queue), program, other,
        queue > machine.queue || other.seconds > seconds
            ? Say("the front end waits %s for room", FormatDuration(room))
            : "");
  }
  if (has(Kind::kCopy, /*wait=*/true)) {
    PlayedProgram pinned = program;
    for (PlayedRequest& request : pinned.requests) {
      if (request.kind == Kind::kCopy) request.awaits.clear();
    }
    add(Say("pinned memory"), pinned, machine, Say("copies return at once"));
  }
  const auto add_faster = [&](const std::string& what,
                              const std::string& name) {
    const auto of = chain.work.find(name);
    add(what, Faster(program, 2, name), machine,
        of == chain.work.end() ? Say("the longest chain has none")
                               : Say("they are %s of the longest chain",
                                     FormatDuration(of->second.second)));
  };
  if (has(Kind::kCopy)) add_faster(Say("copies twice as fast"), "copy");
  if (has(Kind::kCallback)) {
    add_faster(Say("callbacks twice as fast"), "host_callback");
  }
  // The operations that take longest, and the waits that cost most.
  constexpr std::size_t kMost = 2;
  std::map<std::string, double> names;
  for (const PlayedRequest& request : program.requests) {
    if (request.kind == Kind::kOperation) names[request.name] += request.work;
  }
  for (std::size_t i = 0; i < kMost && !names.empty(); ++i) {
    const auto most = std::max_element(
        names.begin(), names.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    add_faster(Say("%s twice as fast", most->first), most->first);
    names.erase(most);
  }
  const auto longer = [](const Change& a, const Change& b) {
    return a.seconds > b.seconds;
  };
  std::vector<Change> without;
  std::set<std::string> lines;
  for (const PlayedRequest& wait : program.requests) {
    if (wait.awaits.empty()) continue;
    const std::string at = wait.at.ToString();
    if (!lines.insert(at).second) continue;
    const Played other = Play(WithoutWaits(program, wait.at), machine);
    if (other.seconds >= seconds) continue;
    std::vector<double> sooner(program.streams.size(), 0);  // by stream
    for (std::size_t i = 0; i < program.requests.size(); ++i) {
      const PlayedRequest& request = program.requests[i];
      if (request.stream < 0 || request.work == 0) continue;
      sooner[request.stream] = played.times[i].end - other.times[i].end;
    }
    const auto most = std::max_element(sooner.begin(), sooner.end());
    // "lesson.cc:12"; npos + 1 is 0.
    without.push_back(
        {Say("no wait in %s", at.substr(at.rfind('/') + 1)), other.seconds,
         Say("%s idles %s behind it", program.streams[most - sooner.begin()],
             FormatDuration(*most))});
  }
  std::stable_sort(without.begin(), without.end(), longer);
  changes.insert(changes.end(), without.end() - std::min(kMost, without.size()),
                 without.end());
  if (here.measured()) {
    const PlayedMachine course = CoursesMachine(), h100 = TwoH100();
    add(Say("the course's, SIMULATED"), OnMachine(program, course, here),
        course);
    add(Say("two H100, SIMULATED"), OnMachine(program, h100, here), h100);
  }
  std::stable_sort(changes.begin(), changes.end(), longer);
}

std::string WhatIf::ToText() const {
  const PlayedProgram& program = recorded.program;
  const auto operations =
      std::count_if(program.requests.begin(), program.requests.end(),
                    [](const PlayedRequest& r) { return r.work > 0; });
  std::string on;
  for (const Device device : recorded.devices) {
    on = on.empty() ? device.ToString()
                    : Say("%s and %s", on, device.ToString());
  }
  std::string text =
      Say("recorded: %d operations, %s, on %s; played again: %s", operations,
          FormatDuration(recorded.seconds), on, FormatDuration(seconds)) +
      "\n";
  const std::string what = Say("what would change");
  const std::string take = Say("it would take");
  std::size_t columns = TextColumns(what);
  for (const Change& change : changes) {
    columns = std::max(columns, TextColumns(change.what));
  }
  const int width = std::max(static_cast<int>(TextColumns(take)), 7) + 2;
  const auto add = [&](const std::string& first, const std::string& second,
                       const std::string& third) {
    absl::StrAppend(&text, Padded({"", first}, static_cast<int>(columns)),
                    Padded({"", second}, -width), "    ", third, "\n");
  };
  add(what, take, Say("because"));
  for (const Change& change : changes) {
    add(change.what, FormatDuration(change.seconds), change.because);
  }
  return text;
}

}  // namespace d2l
