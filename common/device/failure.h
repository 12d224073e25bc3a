// Failure: what is known about a queued operation that failed, and AsyncError,
// the exception that carries it.
//
//   try {
//     Synchronize(device);
//   } catch (const AsyncError& error) {
//     std::cerr << error.what() << "\n";
//     std::cerr << error.failure().requested_at.ToString() << "\n";
//   }
//
// An operation runs long after the call that requested it has returned, so its
// error surfaces later, in another call: a late error. It carries the line that
// requested the operation.
//
// Failures are immutable and shared: the stream, the events after it and every
// exception point at one object.

#ifndef D2L_COMMON_DEVICE_FAILURE_H_
#define D2L_COMMON_DEVICE_FAILURE_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "common/base/source_location.h"
#include "common/device/op_label.h"

namespace d2l {

struct Failure {
  std::string operation;        // "relu"
  std::uint64_t number = 0;     // its number in its stream, from 0
  std::string stream;           // "cuda:0", or "cuda:0/1" for a further stream
  SourceLocation requested_at;  // the innermost line
  SourceLocation requested_by;  // the user's line, where a layer called
  std::string inputs;           // "(256, 128), (128)"; may be empty
  std::string what;             // what went wrong
  std::exception_ptr cause;     // what the operation threw; may be null
  // Nothing went wrong: it was skipped because the program is ending.
  bool end_of_program = false;

  // "relu (operation 41 of stream cuda:0, requested at net.cc:88, input
  // (256, 128)) failed: …"
  std::string ToString() const;
};

using FailurePtr = std::shared_ptr<const Failure>;

// A late error. what() says which operation failed, which line requested it,
// where it was noticed, and how many operations after it were skipped.
class AsyncError : public std::runtime_error {
 public:
  // noticed_in: the call that throws, "Synchronize". skipped: how many
  // operations after the failed one had been skipped by then; negative if
  // unknown.
  AsyncError(FailurePtr failure, const char* noticed_in,
             SourceLocation noticed_at, std::int64_t skipped);

  const Failure& failure() const { return *failure_; }
  const FailurePtr& shared_failure() const { return failure_; }
  SourceLocation noticed_at() const { return noticed_at_; }

 private:
  FailurePtr failure_;
  SourceLocation noticed_at_;
};

// Thrown by a task that is made of other operations' tasks, when one of them
// throws: the failure then names that one and not the whole.
//
//   try {
//     step.task();
//   } catch (...) {
//     throw StepError(step.label, std::current_exception());
//   }
class StepError : public std::exception {
 public:
  // cause: what the step threw. The label's inputs and lines are copied.
  StepError(const OpLabel& label, std::exception_ptr cause)
      : label_(label), cause_(std::move(cause)) {}

  const char* what() const noexcept override { return "a step failed"; }
  const OpLabel& label() const { return label_; }
  const std::exception_ptr& cause() const { return cause_; }

 private:
  OpLabel label_;
  std::exception_ptr cause_;
};

// The message of `thrown`, which is not null.
std::string WhatOf(const std::exception_ptr& thrown);

// For back ends: the failure of an operation that threw `thrown`. A StepError
// becomes the failure of that step. An AsyncError passes on the failure it
// carries, which is the cause, rather than the wait for it.
FailurePtr MakeFailure(const OpLabel& label, std::uint64_t number,
                       std::string stream, const std::exception_ptr& thrown);
// The failure of an operation that threw nothing.
std::shared_ptr<Failure> MakeFailure(const OpLabel& label, std::uint64_t number,
                                     std::string stream, std::string what);
// The failure of an operation skipped because the program is ending.
FailurePtr MakeSkippedAtEnd(const OpLabel& label, std::uint64_t number,
                            std::string stream);

// There is not enough memory on a device. Thrown by the allocating call.
class OutOfMemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_FAILURE_H_
