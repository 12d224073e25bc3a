#include "common/profiler/text_table.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"

namespace d2l {
namespace {

constexpr std::size_t kLineColumns = 80;

// A row of the table, without spaces at its end.
std::string Line(const std::vector<std::string>& cells,
                 const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t columns = TextColumns(cells[i]);
    absl::StrAppend(&line, i == 0 ? "" : "  ",
                    std::string(widths[i] - columns, ' '), cells[i]);
  }
  return absl::StrCat(absl::StripTrailingAsciiWhitespace(line), "\n");
}

}  // namespace

std::string WrapText(absl::string_view text) {
  return WrapWords(PrintableText(text), "", "  ", kLineColumns);
}

void TextTable::AddColumn(std::string header, std::size_t columns) {
  widths_.push_back(std::max(columns, TextColumns(header)));
  rows_[0].push_back(std::move(header));
}

void TextTable::AddRow(std::vector<std::string> cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    widths_[i] = std::max(widths_[i], TextColumns(cells[i]));
  }
  rows_.push_back(std::move(cells));
}

void TextTable::SetRowsLeftOut(std::size_t more, int row_limit) {
  if (more == 0) return;
  last_line_ = more == 1
                   ? Say("(%d row more; row_limit is %d)\n", more, row_limit)
                   : Say("(%d rows more; row_limit is %d)\n", more, row_limit);
}

std::string TextTable::ToString() const {
  std::vector<std::string> dashes;
  for (const std::size_t width : widths_) dashes.emplace_back(width, '-');
  const std::string rule = Line(dashes, widths_);
  std::string text = absl::StrCat(rule, Line(rows_[0], widths_), rule);
  for (std::size_t i = 1; i < rows_.size(); ++i) {
    absl::StrAppend(&text, Line(rows_[i], widths_));
  }
  return text + last_line_ + rule;
}

}  // namespace d2l
