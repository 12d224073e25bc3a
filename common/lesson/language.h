// The language that a program speaks, and its sentences.
//
//   const absl::Status status = SetLanguage("zh");
//   std::cout << Say("Error:") << "\n";  // 错误：
//
// SetLanguage is called once, before anything is said.

#ifndef D2L_COMMON_LESSON_LANGUAGE_H_
#define D2L_COMMON_LESSON_LANGUAGE_H_

#include <string>

#include "absl/status/status.h"
#include "common/base/console/language.h"  // IWYU pragma: export

namespace d2l {

// "en" or "zh"; "" is what LC_ALL, LC_MESSAGES or LANG say, the first that is
// set. Reads the tables (sections.h) in all embedded files (source.h) of the
// language: lesson.zh.md and sentences.zh.md.
absl::Status SetLanguage(const std::string& language);

// As a command line asks for it with --lang=, before its flags are parsed. What
// is no language is passed over.
void SetLanguageOf(int argc, char** argv);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_LANGUAGE_H_
