#include "common/exercise/kernel_run.h"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/drawing/sectors.h"
#include "common/exercise/gpu_run.h"
#include "common/exercise/kernel.h"

namespace d2l {
namespace {

using kernels::cuda::kBanks;
using kernels::cuda::kWordBytes;
using kernels::cuda::Requests;
using kernels::cuda::SourceLine;

bool not_done = false;

// "map.cu:12"
std::string FileAndLine(const SourceLine& at) {
  const std::string place = at.ToString();
  return place.substr(place.rfind('/') + 1);
}

// "map.cu:12" and the text of that line, if its file exists.
std::string Quoted(const SourceLine& at) {
  const char* const workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  std::ifstream file(
      absl::StrCat(workspace == nullptr ? "." : workspace, "/", at.file));
  std::string text;
  for (int line = 0; line < at.line && std::getline(file, text); ++line) {
  }
  return absl::StrCat(FileAndLine(at), "   ", absl::StripAsciiWhitespace(text));
}

std::string Line(const std::string& label, const std::string& text) {
  return absl::StrCat("  ", Padded(label, 8),
                      absl::StripTrailingAsciiWhitespace(text), "\n");
}

std::string TwoLines(const Finding& finding) {
  const auto verb = [](bool writes) {
    return writes ? Say("written") : Say("read");
  };
  return Line(verb(finding.before.writes), Quoted(finding.before)) +
         Line(verb(finding.at.writes), Quoted(finding.at));
}

std::string Kind(const Requests& r) {
  return r.writes ? Say("stores") : Say("loads");
}

double PerRequest(std::int64_t count, const Requests& r) {
  return static_cast<double>(count) / static_cast<double>(r.requests);
}

// The banks of a warp's first request, the most used first.
std::string DrawBanks(const Requests& r) {
  struct Bank {
    int number;
    std::vector<std::size_t> lanes;
  };
  std::vector<Bank> banks;
  for (int bank = 0; bank < kBanks; ++bank) banks.push_back({bank, {}});
  for (std::size_t lane = 0; lane < r.first.size(); ++lane) {
    if (r.first[lane] < 0) continue;
    banks[r.first[lane] / kWordBytes % kBanks].lanes.push_back(lane);
  }
  std::stable_sort(banks.begin(), banks.end(),
                   [](const Bank& a, const Bank& b) {
                     return a.lanes.size() > b.lanes.size();
                   });
  std::string text =
      Line("", Say("the threads that use each bank, in the first request"));
  for (std::size_t i = 0; i < 4; ++i) {
    std::string lanes;
    const std::size_t shown = std::min<std::size_t>(banks[i].lanes.size(), 8);
    for (std::size_t j = 0; j < shown; ++j) {
      absl::StrAppendFormat(&lanes, "%3d", banks[i].lanes[j]);
    }
    if (shown < banks[i].lanes.size()) lanes += " ...";
    text += Line("", Say("bank %3d |%s", banks[i].number, lanes));
  }
  return text;
}

// A finding in words, the expected behaviour, and the usual hint.
struct Explained {
  std::string got, expected, look, lines;
};

Explained Explain(const Finding& f) {
  const std::string memory = f.shared ? Say("shared memory") : Say("memory");
  switch (f.kind) {
    case FindingKind::kRace:
      return {
          Say("a race: thread %d of block %d and thread %d of block %d use "
              "the same word of %s, one writes it, and nothing orders the "
              "two",
              f.before.thread, f.before.block, f.at.thread, f.at.block, memory),
          f.shared ? Say("a barrier between the two lines")
                   : Say("one thread for each element that is written"),
          f.shared ? "__syncthreads() orders the threads of a block: what "
                     "stands before it is done by all of them, before one "
                     "of them does what stands behind it."
                   : "Nothing orders two blocks. Which element is this "
                     "thread's, and no other's?",
          TwoLines(f)};
    case FindingKind::kBarrier:
      return {
          Say("a barrier that not all threads of block %d reach", f.at.block),
          Say("__syncthreads() where every thread of the block passes"),
          "On a GPU the block may hang here. Take the barrier out of the "
          "branch, and let no thread return before it.",
          Line(Say("waits"), Quoted(f.at))};
    case FindingKind::kTwoBarriers:
      return {
          Say("threads of block %d wait at two different barriers", f.at.block),
          Say("__syncthreads() where every thread of the block passes"),
          "A barrier waits for the whole block, at one place of the kernel. "
          "Take it out of the branches, and put it behind them.",
          Line(Say("waits"), Quoted(f.before)) +
              Line(Say("waits"), Quoted(f.at))};
    case FindingKind::kStrandedLane:
      return {Say("a lane of block %d waits for others of its warp that do not "
                  "come",
                  f.at.block),
              Say("a shuffle that all lanes of its mask reach"),
              "A shuffle needs all 32 lanes, also those that have no element "
              "of their own.",
              Line(Say("waits"), Quoted(f.at))};
    case FindingKind::kOutsideMask:
      return {Say("thread %d of block %d is not in the mask that it gives",
                  f.at.thread, f.at.block),
              Say("a mask with the bit of each lane that comes"),
              "The mask names the lanes that take part, a bit for each: "
              "0xffffffff is the whole warp.",
              Line("", Quoted(f.at))};
    case FindingKind::kDifferentMasks:
      return {Say("lanes of block %d wait for each other with different masks "
                  "or words",
                  f.at.block),
              Say("one mask, the same for all lanes that it names"),
              "Each lane that a mask names has to call the same function with "
              "the same mask.",
              Line(Say("waits"), Quoted(f.before)) +
                  Line(Say("waits"), Quoted(f.at))};
    case FindingKind::kUninitialised:
      return {Say("thread %d of block %d reads a word of shared memory that "
                  "nobody wrote",
                  f.at.thread, f.at.block),
              Say("every word written before it is read"),
              "Shared memory is not cleared at the start. Which thread "
              "writes this word?",
              Line(Say("read"), Quoted(f.at))};
    case FindingKind::kOutOfBounds:
      return {Say("thread %d of block %d goes beyond its array", f.at.thread,
                  f.at.block),
              Say("indices of the array only"),
              "The grid has more threads than the array has elements: threads "
              "without an element must not touch it.",
              Line("", Quoted(f.at))};
    case FindingKind::kMisaligned:
      return {Say("thread %d of block %d uses %s that is not aligned",
                  f.at.thread, f.at.block, memory),
              Say("addresses that are a multiple of the element's size"),
              "A float lies at a multiple of 4 bytes, a float4 of 16.",
              Line("", Quoted(f.at))};
    case FindingKind::kOrder:
      return {Say("other values when the threads run in another order"),
              Say("the same values in every order"),
              "Two threads write the same element, or add floats in the order "
              "in which they come.",
              ""};
  }
  return {};
}

}  // namespace

void KernelIsNotDone() { not_done = true; }

int printf(const char* format, ...) {
  if (kernels::cuda::IsRepeated()) return 0;
  std::va_list arguments;
  va_start(arguments, format);
  const int printed = std::vprintf(format, arguments);
  va_end(arguments);
  return printed;
}

void KernelRun::LaunchGrid(const void* kernel,
                           const kernels::cuda::Grid& grid) {
  not_done = false;
  kernels::cuda::CheckedRun(kernel, grid, kernels::cuda::FindCheckedArray);
  report_ = kernels::cuda::TakeCheckReport();
  if (not_done) throw NotDone();
}

void KernelRun::KeepForGpu(const std::string& file, dim3 blocks, dim3 threads,
                           std::vector<GpuRun::Argument> arguments) {
  const auto found = GpuKernels().find(file);
  if (found == GpuKernels().end()) return;
  run_on_gpu_ = found->second.run;
  gpu_ = {found->second.kernel,
          {blocks.x, blocks.y, blocks.z},
          {threads.x, threads.y, threads.z},
          {},
          std::move(arguments)};
  for (const auto& [memory, guarded] :
       kernels::cuda::internal::checked_arrays) {
    char* const begin = static_cast<char*>(const_cast<void*>(memory.begin));
    gpu_.arrays.push_back({begin, {begin, begin + memory.bytes}});
  }
}

std::string KernelRun::RunOnGpu() {
  if (run_on_gpu_ == nullptr) return "";
  std::string name;
  try {
    name = run_on_gpu_(gpu_);
  } catch (const std::runtime_error& error) {
    Wrong(error.what(), Say("the values that a model of a GPU has computed"),
          "The check of kernels found nothing. What does a GPU not have that "
          "the kernel asks for?");
  }
  if (name.empty()) return "";
  for (const GpuRun::Array& array : gpu_.arrays) {
    std::copy(array.bytes.begin(), array.bytes.end(), array.begin);
  }
  const std::string note = Say("It ran on %s, too.", name);
  if (judging_.notes().find(note) == std::string::npos) judging_.Note(note);
  return name;
}

void KernelRun::WrongBy(const Finding& finding, bool right,
                        const Advice& advice) const {
  Explained explained = Explain(finding);
  if (right) {
    explained.lines += Wrap(
        Say("The values are right by chance: on another GPU, or with other "
            "neighbours in memory, they need not be."),
        "  ");
  }
  const std::string look = advice == nullptr ? "" : advice(finding);
  judging_.Wrong({input_, explained.got, explained.expected,
                  look.empty() ? explained.look : look, explained.lines});
}

void KernelRun::ExpectRight(const std::vector<float>& got,
                            const std::vector<float>& expected,
                            double tolerance, const std::string& look,
                            const Advice& advice) const {
  const bool right = AllClose(got, expected, tolerance);
  // Findings in the order of causes: an index beyond an array; a barrier,
  // without which there are races; a race, in which a word is read before it is
  // written.
  constexpr FindingKind kOrder[] = {
      FindingKind::kOutOfBounds,   FindingKind::kMisaligned,
      FindingKind::kBarrier,       FindingKind::kTwoBarriers,
      FindingKind::kOutsideMask,   FindingKind::kDifferentMasks,
      FindingKind::kStrandedLane,  FindingKind::kRace,
      FindingKind::kUninitialised, FindingKind::kOrder};
  for (const FindingKind kind : kOrder) {
    for (const Finding& finding : report_.findings) {
      if (finding.kind == kind) WrongBy(finding, right, advice);
    }
  }
  judging_.ExpectClose(input_, got, expected, tolerance, look);
}

void KernelRun::ExpectBusyLanes(const std::string& look) const {
  for (const Requests& r : report_.requests) {
    const double lanes = PerRequest(r.lanes, r);
    if (r.shared || lanes >= 16) continue;
    judging_.Wrong(
        {input_,
         Say("the right values, with %.1f of the 32 threads of a warp", lanes),
         "32", look, Line(Kind(r), Quoted(r.at))});
  }
}

void KernelRun::ExpectCoalesced(
    const std::function<std::string(bool writes)>& look) const {
  const auto times = [](const Requests& r) {
    return static_cast<double>(r.sectors) /
           static_cast<double>(std::max<std::int64_t>(1, r.ideal_sectors));
  };
  std::string lines;
  const Requests* worst = nullptr;
  for (const Requests& r : report_.requests) {
    if (r.shared) continue;
    if (worst == nullptr || times(r) > times(*worst)) worst = &r;
    lines += Line(Kind(r), Say("%s   %4.1f sectors a request   (ideal %.1f)",
                               FileAndLine(r.at), PerRequest(r.sectors, r),
                               PerRequest(r.ideal_sectors, r)));
  }
  if (worst == nullptr || times(*worst) <= 1.25) return;
  const std::string expected =
      absl::StrFormat("%.1f", PerRequest(worst->ideal_sectors, *worst));
  const double sectors = PerRequest(worst->sectors, *worst);
  absl::StrAppend(&lines, "\n", Line(Kind(*worst), Quoted(worst->at)));
  const std::string drawing = DrawSectors("", worst->first).text;
  for (const absl::string_view line :
       absl::StrSplit(drawing, '\n', absl::SkipEmpty())) {
    lines += Line("", std::string(line));
  }
  judging_.Wrong(
      {input_,
       worst->writes
           ? Say("the right values; each store of a warp touches %.1f sectors "
                 "of 32 bytes",
                 sectors)
           : Say("the right values; each load of a warp touches %.1f sectors "
                 "of 32 bytes",
                 sectors),
       expected, look(worst->writes), lines});
}

void KernelRun::ExpectNoConflicts(
    const std::function<std::string(double repeats)>& look,
    double allowed) const {
  const Requests* worst = nullptr;
  for (const Requests& r : report_.requests) {
    if (!r.shared || r.conflicts == 0) continue;
    if (worst == nullptr ||
        PerRequest(r.conflicts, r) > PerRequest(worst->conflicts, *worst)) {
      worst = &r;
    }
  }
  const double repeats =
      worst == nullptr ? 0 : PerRequest(worst->conflicts, *worst);
  if (repeats <= allowed) return;
  judging_.Wrong(
      {input_,
       Say("the right values; %.1f conflicts of banks for each request of "
           "shared memory",
           repeats),
       "0", look(repeats),
       Line(Kind(*worst), Quoted(worst->at)) + DrawBanks(*worst)});
}

void KernelRun::ExpectShortThreads(std::int64_t accesses,
                                   const std::string& look) const {
  if (report_.longest_thread <= accesses) return;
  judging_.Wrong({input_,
                  Say("the right values, with %d accesses to memory by one "
                      "thread, one after the other",
                      report_.longest_thread),
                  Say("%d at most", accesses), look});
}

std::int64_t KernelRun::GlobalAccesses(bool writes) const {
  std::int64_t accesses = 0;
  for (const Requests& r : report_.requests) {
    if (!r.shared && r.writes == writes) accesses += r.lanes;
  }
  return accesses;
}

void KernelRun::NoteFigures(const KernelFigures& solution) const {
  const auto sectors = [this](bool writes) {
    Requests all;
    for (const Requests& r : report_.requests) {
      if (!r.shared && r.writes == writes) all.Add(r);
    }
    return all.requests == 0 ? 0 : PerRequest(all.sectors, all);
  };
  const auto note = [this](const std::string& what, double got, double best) {
    if (got == 0 && best == 0) return;
    judging_.Note(absl::StrFormat("%s %8.4g   %s %8.4g", Padded(what, 32), got,
                                  Say("solution"), best));
  };
  note(Say("sectors a load"), sectors(false), solution.sectors_a_load);
  note(Say("sectors a store"), sectors(true), solution.sectors_a_store);
  note(Say("atomic operations"), static_cast<double>(report_.atomics),
       solution.atomics);
  note(Say("accesses of the longest thread"),
       static_cast<double>(report_.longest_thread), solution.accesses);
}

void KernelRun::Wrong(const std::string& got, const std::string& expected,
                      const std::string& look) const {
  judging_.Wrong({input_, got, expected, look});
}

}  // namespace d2l
