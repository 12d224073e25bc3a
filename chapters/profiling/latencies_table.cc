#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/profiling/latencies.h"
#include "common/base/statistics.h"
#include "common/base/text.h"

namespace d2l {
namespace {

Summary Seconds(const LatencyRow& row) {
  std::vector<double> seconds;
  for (const double nanos : row.nanos) seconds.push_back(1e-9 * nanos);
  return Summarize(std::move(seconds));
}

// "1.50 ns", "16 ns", "10 us": the book's figures are round.
std::string BookFigure(double nanos) {
  if (nanos >= 1e6) return absl::StrFormat("%g ms", nanos / 1e6);
  if (nanos >= 1e3) return absl::StrFormat("%g us", nanos / 1e3);
  return absl::StrFormat("%g ns", nanos);
}

std::string Line(const std::string& what, const std::string& book,
                 const std::string& yours, const std::string& ratio) {
  std::string line =
      absl::StrFormat("%-29s%10s   %-27s%10s", what, book, yours, ratio);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string LatencyTable(const std::vector<LatencyRow>& rows) {
  std::string table = Line("", "the book", "yours", "ratio");
  // The reasons, with the rows above one another that share it.
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const LatencyRow& row : rows) {
    const std::string book = row.book_nanos ? BookFigure(*row.book_nanos) : "-";
    if (!row.nanos.empty()) {
      const Summary yours = Seconds(row);
      const std::string ratio =
          row.book_nanos ? FormatFactor(1e9 * yours.median / *row.book_nanos)
                         : "";
      table += Line(row.what, book, FormatSummary(yours, "s"), ratio);
      continue;
    }
    table += Line(row.what, book, "n/a", "");
    if (reasons.empty() || reasons.back().first != row.why_not) {
      reasons.push_back({row.why_not, {}});
    }
    reasons.back().second.push_back(row.what);
  }
  absl::StrAppend(&table,
                  "Yours: the median [and its 95 % interval]; ratio: yours / "
                  "the book's.\n");
  for (const auto& [why_not, whats] : reasons) {
    table +=
        Wrap(absl::StrCat("n/a: ", absl::StrJoin(whats, "; "), ": ", why_not),
             "", kTextWidth);
  }
  return table;
}

std::string LatencyNotes(const std::vector<LatencyRow>& rows) {
  std::string notes;
  for (const LatencyRow& row : rows) {
    std::string note;
    if (!row.book_text.empty()) {
      absl::StrAppend(&note, " The book: ", row.book_text, ".");
    }
    if (!row.how.empty()) absl::StrAppend(&note, " Yours: ", row.how);
    if (note.empty()) continue;
    notes += Wrap(absl::StrCat(row.what, ".", note), "- ", kTextWidth);
  }
  return notes;
}

}  // namespace d2l
