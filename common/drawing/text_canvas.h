// TextCanvas: characters at columns and rows.
//
//   TextCanvas canvas;
//   canvas.Write(2, 0, "[mul]");
//   canvas.Put(4, 1, '|');
//   canvas.ToString();  // "  [mul]\n    |\n"
//
// The canvas grows to the right and downwards as it is written to; writes to
// the left of it or above it are ignored. Characters other than printable ASCII
// become
// '?', so that a column is a byte. Not thread-safe.

#ifndef D2L_COMMON_DRAWING_TEXT_CANVAS_H_
#define D2L_COMMON_DRAWING_TEXT_CANVAS_H_

#include <cstddef>
#include <string>
#include <vector>

namespace d2l {

class TextCanvas {
 public:
  void Put(int x, int y, char c) {
    if (x < 0 || y < 0) return;
    const std::size_t column = static_cast<std::size_t>(x);
    const std::size_t row = static_cast<std::size_t>(y);
    if (rows_.size() <= row) rows_.resize(row + 1);
    if (rows_[row].size() <= column) rows_[row].resize(column + 1, ' ');
    rows_[row][column] = c >= ' ' && c <= '~' ? c : '?';
  }
  void Write(int x, int y, const std::string& text) {
    for (const char c : text) Put(x++, y, c);
  }

  // Lines, without spaces at their ends.
  std::string ToString() const {
    std::string text;
    for (const std::string& row : rows_) {
      text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
    }
    return text;
  }

 private:
  std::vector<std::string> rows_;
};

}  // namespace d2l

#endif  // D2L_COMMON_DRAWING_TEXT_CANVAS_H_
