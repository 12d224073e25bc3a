#include "common/lesson/cell/cell.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/statistics.h"
#include "common/base/timer.h"
#include "common/base/undisturbed_timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/memory.h"
#include "common/drawing/drawing.h"
#include "common/drawing/graphviz.h"
#include "common/lesson/cell/figure_drawings.h"
#include "common/lesson/cell/judge.h"
#include "common/lesson/cell/other_load.h"
#include "common/profiler/profiler.h"

namespace d2l {
namespace {

// Nine is the fewest whose interval leaves out an outlier (statistics.h).
constexpr int kMinRepeats = 9;
constexpr int kMaxRepeats = 99;
// The smallest number with an interval; memory has next to no noise.
constexpr int kMemoryRuns = 6;
constexpr double kEnoughSeconds = 0.2;
// The shortest time that shows the load of other programs.
constexpr double kShortestWatch = 0.15;
// The resolution of the clock.
constexpr double kTick = 1e-9;

// The repeats that other programs disturbed least, summed over everything that
// was timed in them: a third of all, but at least nine.
std::vector<std::size_t> LeastDisturbed(
    const std::vector<const std::vector<Elapsed>*>& timed) {
  std::vector<double> doubt(timed[0]->size());
  for (const std::vector<Elapsed>* repeats : timed) {
    for (std::size_t i = 0; i < doubt.size(); ++i) {
      const std::optional<Bounds>& b = (*repeats)[i].undisturbed;
      if (b && b->most > 0) doubt[i] += (b->most - b->least) / b->most;
    }
  }
  std::vector<std::size_t> order(doubt.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(
      order.begin(), order.end(),
      [&](std::size_t a, std::size_t b) { return doubt[a] < doubt[b]; });
  const std::size_t fewest = std::min<std::size_t>(kMinRepeats, order.size());
  order.resize(std::max(order.size() / 3, fewest));
  return order;
}

void WaitFor(const Alternative& alternative) {
  if (alternative.wait != nullptr) {
    alternative.wait();
  } else {
    for (const Device device : alternative.devices) Synchronize(device);
  }
}

// The letters, digits and dots of the text, for a file's name.
std::string FilePart(const std::string& text) {
  std::string part;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.') {
      part += c;
    } else if (!part.empty() && part.back() != '-') {
      part += '-';
    }
  }
  while (!part.empty() && part.back() == '-') part.pop_back();
  return part.empty() ? "drawing" : part.substr(0, 60);
}

// As Cell::Show prints it.
std::string HeadedText(const Drawing& drawing) {
  return absl::StrCat("\n", drawing.name.shown, "\n\n", drawing.text);
}

// "" if all elements are close enough, else a text about those that are not.
template <typename T>
std::string Difference(const std::vector<T>& got,
                       const std::vector<T>& expected, double tolerance) {
  if (got.size() != expected.size()) {
    return Say("%d elements, expected %d", got.size(), expected.size());
  }
  std::size_t differing = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double e = expected[i];
    const double difference = std::abs(got[i] - e);
    // Infinities of one sign are equal, though their difference is NaN; NaN is
    // close to nothing, and no finite number is close to infinity.
    if (got[i] == expected[i] ||
        (std::isfinite(difference) &&
         difference <= tolerance * std::max(1.0, std::abs(e)))) {
      continue;
    }
    if (differing == 0) first = i;
    ++differing;
  }
  if (differing == 0) return "";
  return Say(
      "%d of %d elements differ; the first is [%d]: got %.9g, expected %.9g, "
      "tolerance %g",
      differing, got.size(), first, got[first], expected[first], tolerance);
}

}  // namespace

const char* SizeName(Size size) {
  constexpr const char* kNames[] = {"small", "course", "large"};
  return kNames[static_cast<int>(size)];
}

int CoresNeeded() {
  int needed = 1;
  for (const DeviceInfo& info : Devices()) {
    if (info.kind == DeviceKind::kVirtual) needed += info.cores;
  }
  return needed;
}

Phrase MeasuredOn(Device device) {
  return MeasuredOn(std::vector<Device>{device});
}

Phrase MeasuredOn(const std::vector<Device>& devices) {
  if (devices.empty()) return "host";
  std::vector<Phrase> names;
  std::vector<Phrase> kinds;
  for (const Device device : devices) {
    const Phrase kind = DeviceKindName(GetDeviceInfo(device).kind);
    const std::string name = device.ToString();
    names.push_back({name, name});
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
      kinds.push_back(kind);
    }
  }
  const auto both = [](const Phrase& a, const Phrase& b) {
    return Worded("%s and %s", a, b);
  };
  const auto all = [&](const std::vector<Phrase>& them) {
    return std::accumulate(them.begin() + 1, them.end(), them[0], both);
  };
  return Worded("%s, %s", all(names), all(kinds));
}

std::string Claimed::Meaning() const {
  std::string meaning =
      absl::StrReplaceAll(text.shown, {{"{}", judgement.number}});
  if (judgement.no_difference && judgement.verdict == Verdict::kFails) {
    meaning = Lead(meaning);
    absl::StrAppend(&meaning,
                    absl::StrContains(text.shown, "{}")
                        ? Say("No difference.")
                        : Say("No difference (%s).", judgement.number));
  }
  return meaning;
}

const Timing& Timings::operator[](const Phrase& label) const {
  std::vector<std::string> labels;
  for (const Timing& timing : *this) {
    if (timing.completion.label == label) return timing;
    labels.push_back(absl::StrCat("\"", timing.completion.label.english, "\""));
  }
  throw std::out_of_range(
      absl::StrFormat("there is no \"%s\" among the timings; there are %s",
                      label.english, absl::StrJoin(labels, ", ")));
}

std::string Each(const Figure& time, int count) {
  return FormatDuration(time.value.median / count);
}

Judgement Faster(const Timing& a, const Timing& b, double by) {
  return Less(a.completion, b.completion, by);
}

Timing Cell::Time(const Phrase& label, Device device,
                  const std::function<void()>& work,
                  const std::function<void()>& wait) {
  return TimeInterleaved({{label, {device}, work, wait}})[0];
}

Timings Cell::TimeInterleaved(const std::vector<Alternative>& alternatives) {
  const auto idle = [&] {
    for (const Alternative& alternative : alternatives) {
      for (const Device device : alternative.devices) Synchronize(device);
    }
  };
  // The first run includes initialisation: memory, threads, libraries.
  for (const Alternative& alternative : alternatives) {
    const RecordFunction range(alternative.label.english + ", warm-up");
    alternative.work();
    WaitFor(alternative);
  }
  struct Samples {
    std::vector<Elapsed> enqueue;
    std::vector<Elapsed> completion;
    std::vector<Elapsed> waiting;
  };
  std::vector<Samples> all(alternatives.size());
  Repeat(kEnoughSeconds * static_cast<double>(alternatives.size()), [&] {
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      Samples& samples = all[i];
      idle();
      // The range distinguishes the alternatives in a profile.
      const RecordFunction range(absl::StrCat(
          alternatives[i].label.english, " #", samples.enqueue.size() + 1));
      const UndisturbedTimer timer;
      alternatives[i].work();
      const double enqueue = timer.Seconds();
      WaitFor(alternatives[i]);
      const Elapsed completion = timer.Read();
      samples.enqueue.push_back(Part(enqueue, completion));
      samples.completion.push_back(completion);
      samples.waiting.push_back(Part(completion.seconds - enqueue, completion));
    }
  });
  idle();
  std::vector<const std::vector<Elapsed>*> completions;
  for (const Samples& samples : all) completions.push_back(&samples.completion);
  const std::vector<std::size_t> kept = LeastDisturbed(completions);
  Timings timings;
  // A single alternative is no group: it is drawn beside others of its kind.
  if (alternatives.size() > 1) ++last_group_;
  const auto report = [&](Figure figure) {
    if (alternatives.size() > 1) figure.group = last_group_;
    return Report(std::move(figure));
  };
  for (std::size_t i = 0; i < alternatives.size(); ++i) {
    const Phrase& label = alternatives[i].label;
    const Phrase on = MeasuredOn(alternatives[i].devices);
    timings.push_back(
        {report(Seconds(label, "enqueue", on, all[i].enqueue, kept)),
         report(Seconds(label, "completion", on, all[i].completion, kept)),
         Seconds(label, "wait", on, all[i].waiting, kept)});
  }
  return timings;
}

Figure Cell::TimeHost(const Phrase& label, const std::function<void()>& work) {
  work();
  std::vector<Elapsed> completion;
  Repeat(kEnoughSeconds, [&] {
    const UndisturbedTimer timer;
    work();
    completion.push_back(timer.Read());
  });
  return Report(Seconds(label, "completion", "host", completion,
                        LeastDisturbed({&completion})));
}

Figure Cell::PeakMemory(const Phrase& label, Device device,
                        DeviceMemory& memory,
                        const std::function<void()>& work) {
  std::vector<double> peaks;
  for (int run = 0; run < kMemoryRuns; ++run) {
    Synchronize(device);
    memory.EmptyCache();
    memory.ResetPeak();
    const std::int64_t before = memory.Stats().allocated;
    work();
    peaks.push_back(static_cast<double>(memory.Stats().peak - before));
  }
  return Report(Sampled(label, MeasuredOn(device), "B", std::move(peaks)));
}

void Cell::Repeat(double enough, const std::function<void()>& once) const {
  const Timer timer;
  for (int all = 1; all <= 2; ++all) {
    for (int i = 0; i < kMaxRepeats; ++i) {
      if (i >= kMinRepeats && timer.Seconds() >= all * enough) break;
      once();
    }
    if (!Disturbed()) break;
  }
}

Figure Cell::Seconds(const Phrase& label, const std::string& column,
                     const Phrase& measured_on,
                     const std::vector<Elapsed>& repeats,
                     const std::vector<std::size_t>& kept) const {
  std::vector<double> samples;
  for (const Elapsed& repeat : repeats) {
    samples.push_back(std::max(repeat.seconds, kTick));
  }
  // A GPU may have worked while a thread waited for a core.
  const bool has_gpu = std::any_of(
      Devices().begin(), Devices().end(),
      [](const DeviceInfo& info) { return info.kind != DeviceKind::kVirtual; });
  const double allowance = LoadAllowance();
  std::vector<Bounds> undisturbed;
  for (const std::size_t i : kept) {
    const std::optional<Bounds>& bounds = repeats[i].undisturbed;
    if (!bounds) break;
    const double most = has_gpu ? repeats[i].seconds : bounds->most;
    undisturbed.push_back({std::max(bounds->least / allowance, kTick),
                           std::max(most * allowance, kTick)});
  }
  Figure figure = Sampled(label, measured_on, "s", std::move(samples));
  figure.column = column;
  figure.exposed = undisturbed.size() < kept.size();
  if (!figure.exposed && Disturbed()) {
    figure.undisturbed = std::move(undisturbed);
  }
  return figure;
}

bool Cell::Disturbed() const {
  // Makes the watch long enough: the kernel counts hundredths of a second.
  std::this_thread::sleep_for(
      std::chrono::duration<double>(kShortestWatch - since_.Seconds()));
  const std::optional<OtherLoad> load = watch_.Seen();
  return load && load->Disturbs(CoresNeeded());
}

Figure Cell::ReportTimes(const Phrase& label, const Phrase& measured_on,
                         const std::vector<Elapsed>& repeats) {
  return Report(
      Seconds(label, "", measured_on, repeats, LeastDisturbed({&repeats})));
}

Figure Cell::Report(Figure figure) {
  figure.place = place_;
  result_->figures.push_back(figure);
  return figure;
}

void Cell::PrintTimes(const Timings& timings) {
  std::size_t width = 0;
  for (const Timing& timing : timings) {
    width = std::max(width, TextColumns(timing.completion.label.shown));
  }
  for (const Timing& timing : timings) {
    const Summary& asked = timing.enqueue.value;
    const Summary& done = timing.completion.value;
    std::cout << "  "
              << Padded(timing.completion.label, static_cast<int>(width))
              << absl::StrFormat("  %8s", FormatMedian(done, "s"));
    if (2 * asked.median < done.median) {
      std::cout << "   " << Say("enqueued in %s", FormatMedian(asked, "s"));
    }
    std::cout << "\n";
  }
}

void Cell::Show(const Drawing& drawing) {
  const std::string text = HeadedText(drawing);
  std::cout << text;
  Keep(drawing, text);
}

void Cell::ShowIfVerbose(const Drawing& drawing) {
  if (verbose_) return Show(drawing);
  Keep(drawing, "");
}

void Cell::ShowFigures() {
  std::vector<AskedFor> asked_for;
  for (const Claimed& claim : result_->claims) {
    const std::vector<AskedFor>& of_claim = claim.judgement.asked_for;
    asked_for.insert(asked_for.end(), of_claim.begin(), of_claim.end());
  }
  for (const Drawing& drawing : DrawFigures(result_->figures, asked_for)) {
    ShowIfVerbose(drawing);
  }
}

void Cell::Keep(const Drawing& drawing, const std::string& text) {
  Shown shown{drawing.name, "", text};
  if (!svg_.directory.empty()) {
    absl::StatusOr<std::string> svg = drawing.svg;
    if (!drawing.dot.empty()) svg = DotToSvg(drawing.dot);
    if (!svg.ok()) {
      std::cout << Wrap(absl::StrCat(
          Say("\"%s\" is written as a .dot file, not as a drawing.",
              drawing.name.shown),
          " ", std::string(svg.status().message())));
      shown.text = HeadedText(drawing);
    }
    const char* suffix = svg.ok() ? ".svg" : ".dot";
    const std::string name =
        absl::StrCat(FilePart(svg_.lesson), "_", FilePart(result_->text.id),
                     "_", FilePart(drawing.name.english));
    std::filesystem::path directory = svg_.directory;
    // "./name" is shown as "name".
    while (directory.has_relative_path() &&
           (!directory.has_filename() || directory.filename() == ".")) {
      directory = directory.parent_path();
    }
    shown.file = (directory / (name + suffix)).string();
    const auto is_taken = [&](const Shown& other) {
      return other.file == shown.file;
    };
    // A cell may show two drawings with the same name.
    for (int n = 2; std::any_of(result_->drawings.begin(),
                                result_->drawings.end(), is_taken);
         ++n) {
      shown.file = (directory / absl::StrCat(name, "-", n, suffix)).string();
    }
    const absl::Status written =
        WriteAtomically(shown.file, svg.ok() ? *svg : drawing.dot);
    if (!written.ok()) {
      throw std::runtime_error(
          absl::StrCat("--svg: ", std::string(written.message())));
    }
  }
  result_->drawings.push_back(std::move(shown));
}

void Cell::Claim(const Phrase& text, const Judgement& judgement,
                 const std::string& because) {
  Claimed claimed{text, judgement};
  std::string& reason = claimed.judgement.reason;
  if (!because.empty()) {
    reason = reason.empty() ? because : Lead(reason) + because;
  }
  result_->claims.push_back(std::move(claimed));
}

void Cell::CheckClose(const std::string& what, const std::vector<float>& got,
                      const std::vector<float>& expected, double tolerance) {
  const std::string difference = Difference(got, expected, tolerance);
  Check(difference.empty(), absl::StrCat(what, ": ", difference));
}

void Cell::CheckClose(const std::string& what, const std::vector<double>& got,
                      const std::vector<double>& expected, double tolerance) {
  const std::string difference = Difference(got, expected, tolerance);
  Check(difference.empty(), absl::StrCat(what, ": ", difference));
}

void Cell::Check(bool right, const std::string& what) {
  if (right) return;
  ++result_->wrong_results;
  std::cout << Say("WRONG RESULT in %s: %s", result_->text.id, what) << "\n"
            << std::flush;
}

}  // namespace d2l
