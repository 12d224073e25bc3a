// CommaLocale: while it lives, the thread's locale has a decimal comma, as
// German's. Machines without German can make it, too.
//
//   const CommaLocale comma;
//   std::snprintf(text, sizeof(text), "%.1f", 0.5);  // "0,5"
//
// For one thread at a time: it sets LOCPATH.

#ifndef D2L_COMMON_BASE_COMMA_LOCALE_TESTING_H_
#define D2L_COMMON_BASE_COMMA_LOCALE_TESTING_H_

#include <locale.h>  // NOLINT(modernize-deprecated-headers): POSIX's newlocale

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "common/base/files/atomic_file.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace d2l {

class CommaLocale {
 public:
  CommaLocale() {
    using std::string_view_literals::operator""sv;
    const std::filesystem::path folder = directory_.path();
    std::filesystem::create_directory(folder / "comma");
    // As localedef makes it: a number for the format, the number of texts,
    // where each begins; and the texts: the marks, the sizes of groups, the
    // marks as wide characters, and the encoding.
    std::ofstream(folder / "comma" / "LC_NUMERIC", std::ios::binary)
        << "\x14\x11\x03\x20\6\0\0\0"
           "\x20\0\0\0\x22\0\0\0\x24\0\0\0\x28\0\0\0\x2c\0\0\0\x30\0\0\0"
           ",\0.\0\3\3\0\0,\0\0\0.\0\0\0UTF-8\0"sv;
    setenv("LOCPATH", folder.c_str(), 1);
#if defined(__SANITIZE_ADDRESS__)
    // The C library leaks the parts of LOCPATH.
    const __lsan::ScopedDisabler leaks;
#endif
    locale_ = newlocale(LC_NUMERIC_MASK, "comma", nullptr);
    unsetenv("LOCPATH");
    if (locale_ == nullptr) {
      throw std::runtime_error("the C library reads no such locale");
    }
    before_ = uselocale(locale_);
  }
  ~CommaLocale() {
    uselocale(before_);
    freelocale(locale_);
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;

 private:
  const TemporaryDirectory directory_;
  locale_t locale_ = nullptr;
  locale_t before_ = nullptr;
};

}  // namespace d2l

#endif  // D2L_COMMON_BASE_COMMA_LOCALE_TESTING_H_
