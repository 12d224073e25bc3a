// Where in the source a call was made.
//
//   void Launch(int n, SourceLocation at = SourceLocation::Current());
//   Launch(3);  // `at` names this line, not the one inside Launch.
//
// The C++17 stand-in for C++20's std::source_location. A queued operation fails
// after the call that requested it has returned, so the operation carries the
// call's location.
//
// A SourceLocation is a value of two words. The file name lives as long as the
// process: it is a string literal or interned.
//
//   OpLabel label(Intern(name_in_file), SourceLocation(Intern(file), line));

#ifndef D2L_COMMON_BASE_SOURCE_LOCATION_H_
#define D2L_COMMON_BASE_SOURCE_LOCATION_H_

#include <string>
#include <string_view>

namespace d2l {

class SourceLocation {
 public:
  // An unknown location.
  constexpr SourceLocation() = default;
  constexpr SourceLocation(const char* file, int line)
      : file_(file), line_(line) {}

  // The line of the call, as a default argument. Do not pass arguments.
  static constexpr SourceLocation Current(const char* file = __builtin_FILE(),
                                          int line = __builtin_LINE()) {
    return SourceLocation(file, line);
  }

  constexpr const char* file() const { return file_; }
  constexpr int line() const { return line_; }
  constexpr bool known() const { return line_ != 0; }

  // "chapters/async_computation/lesson.cc:40", with the path that the compiler
  // was given; "an unknown place" if there is none.
  std::string ToString() const;

  friend bool operator==(const SourceLocation& a, const SourceLocation& b);
  friend bool operator!=(const SourceLocation& a, const SourceLocation& b) {
    return !(a == b);
  }

 private:
  const char* file_ = "";
  int line_ = 0;
};

// A null-terminated copy of `text` that lives as long as the process, the same
// one for equal texts: for names and files that are read at run time, not for
// data. The text holds no null characters. Costs a lock and a hash table
// lookup. Thread-safe.
const char* Intern(std::string_view text);

}  // namespace d2l

#endif  // D2L_COMMON_BASE_SOURCE_LOCATION_H_
