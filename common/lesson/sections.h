// The Markdown of lessons and exercises, in sections.
//
//   absl::StatusOr<Markdown> lesson = ParseSections("lesson.md", R"md(
//   # Asynchronous computation
//
//   D2L 13.2
//
//   ## 004/In4: The true cost
//
//   - Book: d2l 13.2.1
//
//   The same ten products, and
//   then we wait.
//
//   ```text
//   Done: 0.0020 sec
//   ```
//
//   **Predict:** which time grows?
//
//   - asking
//   - the work
//   )md");
//   const Section& cell = lesson->sections[0];
//   cell.id;                     // "004/In4"
//   cell.title;                  // "The true cost"
//   cell.Listed("Book");         // "d2l 13.2.1"
//   cell.Text("");               // "The same ten products, and then we wait."
//   cell.code.at("text");        // "Done: 0.0020 sec"
//   cell.Text("Predict");        // "which time grows?"
//   cell.parts.at("Predict").items;  // {"asking", "the work"}
//
// Only these constructs are known. The lines of a paragraph are joined by
// spaces, or by nothing between two wide characters; paragraphs by an empty
// line. Text is taken as it stands: "*" is a star.
//
// A pure function. What it cannot read is an error with file and line.

#ifndef D2L_COMMON_LESSON_SECTIONS_H_
#define D2L_COMMON_LESSON_SECTIONS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace d2l {

struct Section {
  struct Part {
    std::string text;
    std::vector<std::string> items;  // of its list
  };

  // The value of "- NAME: value" in the first list; "" if there is none.
  std::string Listed(absl::string_view name) const;
  // The text of a part; "" if there is none.
  std::string Text(const std::string& label) const;

  std::string id;  // up to ": "; all of the heading if there is none
  std::string title;
  int line = 0;  // of the heading
  // By the label in bold that a part begins with: "Predict", "Hint 1"; "" for
  // what comes first.
  std::map<std::string, Part> parts;
  std::map<std::string, std::string> code;  // by the language of the fence
};

struct Markdown {
  std::string title;
  std::string head;  // the lines below the title
  std::vector<Section> sections;
};

// file: for messages.
absl::StatusOr<Markdown> ParseSections(const std::string& file,
                                       absl::string_view text);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_SECTIONS_H_
