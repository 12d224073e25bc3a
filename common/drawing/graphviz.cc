#include "common/drawing/graphviz.h"

#include <chrono>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/child_process.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"

namespace d2l {

absl::StatusOr<std::string> DotToSvg(const std::string& dot,
                                     std::chrono::milliseconds time_limit) {
  ProgramOptions options;
  options.input = dot;
  options.time_limit = time_limit;
  options.separate_stderr = true;
  const ProgramResult result = RunProgram("dot", {"-Tsvg"}, {}, options);
  if (!result.failure.empty()) {
    const std::string failure =
        Say("Graphviz's dot, which draws graphs, %s.", result.failure);
    if (result.timed_out) return absl::DeadlineExceededError(failure);
    if (result.exit_code == 127) {
      return absl::NotFoundError(absl::StrCat(
          failure, " ", Say("Install it:\nsudo apt-get install graphviz")));
    }
    return absl::InternalError(absl::StrCat(
        failure, " ",
        QuotedText(absl::StripAsciiWhitespace(result.error_output))));
  }
  // In front of the element stands the type of the document, which would be
  // none within a page.
  const std::size_t begin = result.output.find("<svg ");
  const std::size_t end = result.output.find('>', begin);
  if (end == std::string::npos) {
    return absl::InternalError(
        Say("Graphviz's dot, which draws graphs, printed no SVG."));
  }
  // The points of dot are the pixels of other drawings.
  return absl::StrCat(
      absl::StrReplaceAll(result.output.substr(begin, end - begin),
                          {{"pt\"", "\""}}),
      result.output.substr(end));
}

}  // namespace d2l
