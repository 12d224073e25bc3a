#include "common/lesson/run/printed.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/device/backend.h"
#include "common/device/device_table.h"
#include "common/lesson/cell/cell.h"
#include "common/lesson/run/report.h"
#include "common/lesson/text/lesson.h"
#include "common/lesson/text/source.h"

namespace d2l {
namespace {

std::size_t Columns() { return static_cast<std::size_t>(TextWidth()); }

// A heading and, below it, unchanged text.
void PrintBlock(const std::string& heading, const std::string& text) {
  const std::size_t used = TextColumns(heading) + 5;
  std::cout << "--- " << heading << " "
            << std::string(Columns() - std::min(Columns(), used), '-') << "\n"
            << absl::StripAsciiWhitespace(text) << "\n";
}

// `left` and, at the end of the line or on the next one, `right`.
std::string Apart(const std::string& left, const std::string& right) {
  const std::size_t used = TextColumns(left) + TextColumns(right);
  const bool fits = used + 2 <= Columns();
  const std::size_t spaces = fits ? Columns() - used
                             : TextColumns(right) < Columns()
                                 ? Columns() - TextColumns(right)
                                 : 0;
  return absl::StrCat(left, fits ? "" : "\n", std::string(spaces, ' '), right,
                      "\n");
}

void PrintCode(const NumberedCell& cell, const Detail& detail) {
  const CellText& text = cell.cell->text;
  if (detail.code && !text.python.empty()) {
    PrintBlock("Python", text.python);
  }
  const absl::StatusOr<SourceExcerpt> source =
      CellSource(cell.lesson->file, text.id);
  if (source.ok()) {
    PrintBlock(
        Say("Here (C++), %s:%d", std::string(source->file), source->line),
        source->text);
  } else {
    PrintBlock(Say("Here (C++)"), std::string(source.status().message()));
  }
  const absl::StatusOr<SourceExcerpt> measured =
      CellSource(cell.lesson->file, text.id, CodePart::kMeasured);
  if (detail.code && measured.ok()) {
    const std::string where = Say("How it is measured, %s:%d",
                                  std::string(measured->file), measured->line);
    if (detail.verbose) {
      PrintBlock(where, measured->text);
    } else {
      std::cout << "\n" << Wrap(where + Say(" (printed with --verbose)"));
    }
  }
  std::cout << "\n";
}

}  // namespace

std::string Rule() { return std::string(Columns(), '=') + "\n"; }

void PrintLessonHead(const Lesson& lesson, Size size,
                     const std::vector<std::string>& notes,
                     const Detail& detail) {
  if (!detail.text) return;
  std::cout << Rule() << lesson.title << "\n"
            << Wrap(lesson.section) << "\n"
            << Say("Devices, at size %s:", std::string(SizeName(size))) << "\n";
  for (const DeviceInfo& info : Devices()) {
    std::cout << Wrap(info.Describe(), "  ");
  }
  const std::string note =
      DevicesNote(lesson.devices, Devices(), CudaBackend().Inventory());
  if (!note.empty()) std::cout << Wrap(note, Lead("Note:"));
  for (const std::string& circumstance : notes) {
    std::cout << Wrap(circumstance, Lead("Note:"));
  }
}

void PrintCellHead(const NumberedCell& cell, const Detail& detail) {
  const CellText& text = cell.cell->text;
  std::string place = text.section;
  if (!text.exercises.empty()) {
    absl::StrAppend(&place, ", ", Say("exercise %s", text.exercises));
  }
  absl::StrAppend(&place, place.empty() ? "[" : " [", text.id, "]");
  if (detail.text) {
    std::cout << "\n"
              << Rule()
              << Apart(absl::StrCat(cell.number, "  ", text.title), place)
              << "\n"
              << Wrap(text.context) << "\n";
  }
  if (detail.picture && !text.picture.empty()) {
    std::cout << text.picture << "\n\n";
  }
  if (detail.code || detail.program) PrintCode(cell, detail);
  if (detail.predict && !text.predict.empty()) {
    std::cout << WrapWords(text.predict, Lead("Predict:"), "", Columns());
  }
}

void PrintCellResult(const CellResult& result, const Detail& detail,
                     const std::string& next) {
  const CellText& text = result.text;
  for (const Shown& drawing : result.drawings) {
    if (!drawing.file.empty()) {
      std::cout << Say("Written: %s", drawing.file) << "\n";
    }
  }
  const std::string course = OneLine(text.course_printed);
  if (!course.empty()) {
    std::cout << WrapWords(course, PrintedBy(text), "", Columns());
  }
  const std::string claims = ClaimsText(result, detail.verbose);
  if (!claims.empty()) std::cout << "\n" << claims;
  const std::string prediction = PredictionText(result);
  if (!prediction.empty()) {
    std::cout << (claims.empty() ? "\n" : "") << prediction;
  }
  const std::string figures = FiguresText(result);
  if (detail.verbose && !figures.empty()) std::cout << "\n" << figures;
  if (!detail.text) return;
  std::string learn;
  if (!text.learn.empty()) {
    learn = WrapWords(text.learn, Lead("You learn:"), "", Columns());
    learn.pop_back();  // the end of the line
  }
  // The other things to see, if the user chose only some cells.
  std::vector<std::string> more;
  if (detail.chosen && !detail.code && !detail.program) {
    more.push_back(Say("Code: --code"));
  }
  if (detail.chosen && !detail.verbose) {
    more.push_back(Say("Figures: --verbose"));
  }
  if (detail.chosen && !next.empty()) {
    more.push_back(Say("Next: --cell=%s", next));
  }
  if (!learn.empty() || !more.empty()) std::cout << "\n";
  const std::size_t last = learn.rfind('\n') + 1;  // npos + 1 is 0
  std::cout << learn.substr(0, last);
  if (!more.empty()) {
    std::cout << Apart(learn.substr(last), absl::StrJoin(more, "   "));
  } else if (!learn.empty()) {
    std::cout << learn.substr(last) << "\n";
  }
  std::cout << std::flush;
}

}  // namespace d2l
