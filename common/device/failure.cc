#include "common/device/failure.h"

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace d2l {
namespace {

std::string Message(const Failure& failure, const char* noticed_in,
                    SourceLocation noticed_at, std::int64_t skipped) {
  std::string text = failure.ToString();
  if (!text.empty() && text.back() != '.') text += '.';
  absl::StrAppend(&text, " Noticed at ", noticed_in);
  if (noticed_at.known()) absl::StrAppend(&text, ", ", noticed_at.ToString());
  text += '.';
  if (skipped == 1) {
    text += " The operation after it was skipped.";
  } else if (skipped > 1) {
    absl::StrAppend(&text, " The ", skipped,
                    " operations after it were skipped.");
  }
  return text;
}

}  // namespace

std::string WhatOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "it threw something that is not a std::exception";
  }
}

FailurePtr MakeFailure(const OpLabel& label, std::uint64_t number,
                       std::string stream, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const AsyncError& error) {
    return error.shared_failure();
  } catch (const StepError& error) {
    return MakeFailure(error.label(), number, std::move(stream), error.cause());
  } catch (...) {
    auto failure =
        MakeFailure(label, number, std::move(stream), WhatOf(thrown));
    failure->cause = thrown;
    return failure;
  }
}

std::shared_ptr<Failure> MakeFailure(const OpLabel& label, std::uint64_t number,
                                     std::string stream, std::string what) {
  auto failure = std::make_shared<Failure>();
  failure->operation = label.name();
  failure->number = number;
  failure->stream = std::move(stream);
  failure->requested_at = label.requested_at();
  failure->requested_by = label.requested_by();
  failure->inputs = label.InputsToString();
  failure->what = std::move(what);
  return failure;
}

FailurePtr MakeSkippedAtEnd(const OpLabel& label, std::uint64_t number,
                            std::string stream) {
  auto failure = MakeFailure(label, number, std::move(stream),
                             "it was skipped, because the program is ending");
  failure->end_of_program = true;
  return failure;
}

std::string Failure::ToString() const {
  std::string text =
      absl::StrCat(operation, " (operation ", number, " of stream ", stream);
  if (requested_at.known()) {
    absl::StrAppend(&text, ", requested at ", requested_at.ToString());
  }
  if (requested_by.known() && requested_by != requested_at) {
    absl::StrAppend(&text, ", called from ", requested_by.ToString());
  }
  if (!inputs.empty()) absl::StrAppend(&text, ", input ", inputs);
  absl::StrAppend(&text, ") failed: ", what);
  return text;
}

AsyncError::AsyncError(FailurePtr failure, const char* noticed_in,
                       SourceLocation noticed_at, std::int64_t skipped)
    : std::runtime_error(Message(*failure, noticed_in, noticed_at, skipped)),
      failure_(std::move(failure)),
      noticed_at_(noticed_at) {}

}  // namespace d2l
