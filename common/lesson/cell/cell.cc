#include "common/lesson/cell/cell.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
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
#include "common/drawing/drawing.h"
#include "common/drawing/graphviz.h"
#include "common/lesson/cell/figure_drawings.h"
#include "common/lesson/cell/judge.h"

namespace d2l {
namespace {

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
  Claimed claimed{text, judgement, because};
  std::string& reason = claimed.judgement.reason;
  // What may be is no reason for a time that is not known.
  if (!because.empty() && !judgement.disturbed) {
    reason = reason.empty() ? because : Lead(reason) + because;
  }
  result_->claims.push_back(std::move(claimed));
}

void Cell::NotAsked(int claims, const std::string& why) {
  result_->not_asked += claims;
  std::cout << Wrap(why, "  ");
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
