// A cell's own source, unchanged, from its lesson.cc or a file beside it.
//
//   absl::StatusOr<SourceExcerpt> source =
//       CellSource("chapters/async_computation/lesson.cc", "004/In4");
//   std::cout << source->text;
//
// The build embeds the file in the binary (lesson.bzl), so the printed code is
// the compiled code, wherever the binary runs.
//
// A cell begins after the line "// %% 004/In4" and ends before the next line
// that begins with "// %%"; blank lines at either end are removed, and so is
// the indentation that all its lines share. It may have several such blocks,
// for example helpers, and share a block: "// %% 004/In2, 004/In4".
//
// "// %% 004/In4" is the taught code of the cell, "// %% 004/In4, measured" the
// code that measures it. The blocks of each are in one file: lesson.cc, another
// beside it, or one in a folder below.
//
// RegisterSource is for static initialisers; the rest is thread-safe.

#ifndef D2L_COMMON_LESSON_TEXT_SOURCE_H_
#define D2L_COMMON_LESSON_TEXT_SOURCE_H_

#include <string>

#include "absl/status/statusor.h"

namespace d2l {

enum class CodePart { kTaught, kMeasured };

struct SourceExcerpt {
  std::string text;  // whole lines; a blank one between two blocks
  int line = 0;      // of the first one in the file, from 1
  // Set by CellSource, and never deleted; ExtractCell does not know the file.
  const char* file = "";
};

// NotFound if `file_text` has no such block.
absl::StatusOr<SourceExcerpt> ExtractCell(const std::string& file_text,
                                          const std::string& id,
                                          CodePart part = CodePart::kTaught);

// Keeps the pointers. Returns true.
bool RegisterSource(const char* file, const char* text);

// The text of an embedded file; null if it is not embedded.
const char* EmbeddedFile(const std::string& file);

// Searches the embedded files of that directory and below. Returns NotFound
// also if `file` is not embedded.
absl::StatusOr<SourceExcerpt> CellSource(const std::string& file,
                                         const std::string& id,
                                         CodePart part = CodePart::kTaught);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_TEXT_SOURCE_H_
