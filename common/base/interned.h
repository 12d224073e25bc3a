// Intern: text that lives as long as the process, for names and files read at
// run time.
//
//   OpLabel label(Intern(name_in_file), SourceLocation(Intern(file), line));
//
// An OpLabel and a SourceLocation hold plain pointers to string literals. Equal
// texts share one copy, which is never freed; so intern names and files, not
// data. Costs a lock and a hash table lookup. Thread-safe.

#ifndef D2L_COMMON_BASE_INTERNED_H_
#define D2L_COMMON_BASE_INTERNED_H_

#include <string_view>

namespace d2l {

// A null-terminated copy of `text`, the same one for equal texts. The text
// holds no null characters.
const char* Intern(std::string_view text);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_INTERNED_H_
