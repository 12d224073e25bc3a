// Tables in plain text, in the form of PyTorch's profiler: columns two spaces
// apart, cells at the right, a row of dashes above and below the headers and
// below the rows.
//
//   TextTable table;
//   table.AddColumn("Name", 12);
//   table.AddColumn("# of Calls", 12);
//   table.AddRow({"matmul", "3"});
//   std::cout << table.ToString();
//
// A column is as wide as asked, or as its widest cell. Width is that of a
// terminal (common/base/console/text.h), so Chinese names line up as well. Not
// thread-safe.

#ifndef D2L_COMMON_PROFILER_TEXT_TABLE_H_
#define D2L_COMMON_PROFILER_TEXT_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace d2l {

// The text, made printable, in lines of at most 80 columns, those after the
// first indented, each ended by a newline. A word that is too long gets a line
// of its own.
std::string WrapText(absl::string_view text);

class TextTable {
 public:
  // Add all columns before the first row.
  void AddColumn(std::string header, std::size_t columns);
  // As many cells as there are columns, of printable text.
  void AddRow(std::vector<std::string> cells);
  // Says below the rows that a limit left out so many more; none: nothing.
  void SetRowsLeftOut(std::size_t more, int row_limit);

  // Lines without spaces at their ends.
  std::string ToString() const;

 private:
  std::vector<std::size_t> widths_;
  std::vector<std::vector<std::string>> rows_ = {{}};  // the headers first
  std::string last_line_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PROFILER_TEXT_TABLE_H_
