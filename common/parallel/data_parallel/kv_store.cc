#include "common/parallel/data_parallel/kv_store.h"

#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/ops/copy.h"
#include "common/ops/elementwise.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"

namespace d2l {

void KvStore::Init(const std::string& key, const Tensor& value,
                   SourceLocation at) {
  CheckDefined("init", value, at);
  if (values_.count(key) != 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[init] the key \"%s\" is there already; change it with Push; "
        "requested at %s",
        key, at.ToString()));
  }
  values_[key] = value.device() == server_ ? Clone(value, at)
                                           : To(value, server_, false, at);
}

void KvStore::Push(const std::string& key, absl::Span<const Tensor> per_device,
                   SourceLocation at) {
  const Tensor& stored = Find("push", key, per_device, at);
  const RequestedBy user(at);
  Tensor sum = To(per_device[0], server_, false, at);
  for (const Tensor& value : per_device.subspan(1)) {
    sum = sum + To(value, server_, false, at);
  }
  if (updater_ == nullptr) return CopyTo(sum, stored, false, at);
  updater_(key, sum, stored);
}

void KvStore::Pull(const std::string& key, absl::Span<const Tensor> per_device,
                   SourceLocation at) {
  const Tensor& stored = Find("pull", key, per_device, at);
  for (const Tensor& value : per_device) CopyTo(stored, value, false, at);
}

const Tensor& KvStore::Find(const char* name, const std::string& key,
                            absl::Span<const Tensor> per_device,
                            SourceLocation at) const {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(
        absl::StrFormat("[%s] %s; requested at %s", name, what, at.ToString()));
  };
  const auto found = values_.find(key);
  if (found == values_.end()) {
    std::string known;
    for (const auto& [other, value] : values_) {
      absl::StrAppend(&known, known.empty() ? "" : ", ", other);
    }
    refuse(absl::StrFormat("no key \"%s\"; there are: %s; make it with Init",
                           key, known.empty() ? "none" : known));
  }
  if (per_device.empty()) refuse("a tensor for each device wanted; got none");
  for (const Tensor& value : per_device) {
    CheckDefined(name, value, at);
    if (value.shape() == found->second.shape() &&
        value.dtype() == found->second.dtype()) {
      continue;
    }
    refuse(absl::StrFormat("under \"%s\" is %s; got %s", key,
                           found->second.Describe(), value.Describe()));
  }
  return found->second;
}

}  // namespace d2l
