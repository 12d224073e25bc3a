#include "common/device/op_label.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"

namespace d2l {

std::string OpLabel::InputsToString() const {
  std::string text;
  const std::int64_t* dims = dims_;
  for (int i = 0; i < inputs_; ++i) {
    absl::StrAppend(&text, i > 0 ? ", (" : "(",
                    absl::StrJoin(absl::MakeSpan(dims, ranks_[i]), ", "), ")");
    dims += ranks_[i];
  }
  if (incomplete_) text += text.empty() ? "…" : ", …";
  return text;
}

}  // namespace d2l
