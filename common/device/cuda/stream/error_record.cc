#include "common/device/cuda/stream/error_record.h"

#include <string>

#include "absl/strings/str_format.h"

namespace d2l {

static_assert(sizeof(ErrorRecord) == 64);

// The texts are the same as in common/kernels/cpu.
std::string DeviceErrorText(const ErrorRecord& record) {
  switch (record.code) {
    case DeviceError::kIndexOutOfRange:
      if (record.b == 0) {
        return absl::StrFormat(
            "index %d at position %d is out of range; there is nothing to "
            "index",
            record.a, record.position);
      }
      return absl::StrFormat(
          "index %d at position %d is out of range; valid are 0..%d", record.a,
          record.position, record.b - 1);
    case DeviceError::kDivisionByZero:
      return absl::StrFormat("division by zero at element %d", record.position);
    case DeviceError::kNegativeExponent:
      return absl::StrFormat("negative integer exponent %d at element %d",
                             record.a, record.position);
    case DeviceError::kLabelOutOfRange:
      return absl::StrFormat(
          "label %d of sample %d is out of range; there are %d classes, from 0 "
          "on",
          record.a, record.position, record.b);
  }
  return absl::StrFormat("error %d of a kernel, at element %d",
                         static_cast<int>(record.code), record.position);
}

void ReportFromHost(const ErrorReporter& errors, DeviceError code,
                    std::int64_t position, std::int64_t a, std::int64_t b) {
  const ErrorReporter to = errors.OfLaunch();
  unsigned long long empty = 0;  // NOLINT(google-runtime-int)
  if (!__atomic_compare_exchange_n(&to.record->claimed_by, &empty,
                                   to.number + 1, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    return;
  }
  to.record->code = code;
  to.record->position = position;
  to.record->a = a;
  to.record->b = b;
  to.record->reported_by = errors.number;
}

}  // namespace d2l
