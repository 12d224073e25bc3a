// OpRecord: describes an operation when it is requested. OpListener receives
// it.
//
//   class Counter : public OpListener {
//    public:
//     void OnOp(const OpRecord& record) override { ++ops; }
//     int ops = 0;
//   };
//   Counter counter;
//   {
//     ScopedOpListener listen(&counter);  // this thread's operations
//     Tensor z = x * y + 2;
//   }
//   counter.ops;  // 2
//
// Any number of listeners may be present: a tracer or a tape for its own
// thread, profilers for the whole process. Without a listener no record is
// made.
//
// Thread-safety: a thread's listener is called on that thread; one of the
// process is called on any thread, also concurrently, and must lock its state.
// A listener observes: it must not request operations.

#ifndef D2L_COMMON_OPS_PRIMITIVE_RECORD_H_
#define D2L_COMMON_OPS_PRIMITIVE_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/listener_list.h"
#include "common/base/source_location.h"
#include "common/base/ticks.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

class Primitive;

// A value that an operation reads or makes. The ids are unique; addresses are
// reused.
struct ValueRecord {
  std::uint64_t id;       // of the value
  std::uint64_t storage;  // of the memory, which several values may share
  std::uint64_t version;  // of the memory, after the operation
  Shape shape;
  DType dtype;
};

// Valid during the call only: copy what you keep, Clone() the primitive.
// OpCall (replay.h) does both.
struct OpRecord {
  const Primitive* primitive;
  std::uint64_t number;  // in its stream
  Stream* stream;        // null if it launched nothing: a view, Empty
  absl::Span<const Tensor* const> inputs;  // ToRecord gives their unique ids
  const Tensor& output;  // what it made, or, in place, wrote to
  bool in_place;
  bool view;                    // the output is the memory of the first input
  SourceLocation requested_at;  // the innermost line
  SourceLocation requested_by;  // the user's line, where a layer called
  // NowTicks before memory was taken for the output, and when the operation
  // had been enqueued. 0 unless a listener wants times.
  std::int64_t host_begin;
  std::int64_t host_end;
  OpStamps* stamps;  // a list of all listeners' NewStamps; may be null
};

// The host reads values of a tensor: Item, ToVector, printing. It waits.
struct ReadRecord {
  const char* reader;  // "item"
  const Tensor* input;
  SourceLocation requested_at;
  std::int64_t host_begin;  // NowTicks
  std::int64_t host_end;
};

inline ValueRecord ToRecord(const Tensor& value) {
  return {value.id(), value.storage()->id(), value.version(), value.shape(),
          value.dtype()};
}

class OpListener {
 public:
  virtual ~OpListener() = default;

  // An operation has been enqueued. With launch blocking, one that has failed
  // is not reported: its call throws.
  virtual void OnOp(const OpRecord& record) = 0;
  // Several have been, which a device does as one: their number, stream, times
  // and stamps are the same.
  virtual void OnOps(absl::Span<const OpRecord> records) {
    for (const OpRecord& record : records) OnOp(record);
  }
  // Called before the host reads (host_end is 0), and after it has read without
  // an exception. An exception of BeforeRead prevents the read.
  virtual void BeforeRead(const ReadRecord&) {}
  virtual void AfterRead(const ReadRecord&) {}

  // True for host times in records and calls of NewStamps. They cost two
  // readings of the clock for each operation.
  virtual bool wants_times() const { return false; }
  // The stamps for the operation that is being requested on `stream`; null for
  // none. Keep them until the operation is done; it may run even if its request
  // fails and OnOp is not called.
  virtual OpStamps* NewStamps(Stream& stream) {
    static_cast<void>(stream);
    return nullptr;
  }
};

namespace internal {

struct OpContext {
  const ScopedListener<OpListener>* listeners = nullptr;  // the innermost
  SourceLocation requested_by;
};
inline thread_local OpContext op_context;
inline ListenerList<OpListener> process_op_listeners;

}  // namespace internal

// Listens to this thread's operations while it lives.
class ScopedOpListener : public ScopedListener<OpListener> {
 public:
  explicit ScopedOpListener(OpListener* listener)
      : ScopedListener(internal::op_context.listeners, listener) {}
};

// Listens to all threads' operations. After Remove the listener must stay alive
// while an operation that was being requested may still call it.
inline void AddProcessOpListener(OpListener* listener) {
  internal::process_op_listeners.Add(listener);
}
inline void RemoveProcessOpListener(OpListener* listener) {
  internal::process_op_listeners.Remove(listener);
}

// While it lives, operations requested on this thread are also attributed to
// `location`: the user's line, where a layer or a library makes the call. The
// outermost one counts.
class RequestedBy {
 public:
  explicit RequestedBy(SourceLocation location)
      : outermost_(!internal::op_context.requested_by.known()) {
    if (outermost_) internal::op_context.requested_by = location;
  }
  ~RequestedBy() {
    if (outermost_) internal::op_context.requested_by = SourceLocation();
  }
  RequestedBy(const RequestedBy&) = delete;
  RequestedBy& operator=(const RequestedBy&) = delete;

 private:
  const bool outermost_;
};

namespace internal {

// The listeners at the time of a request; usually none.
class Listeners {
 public:
  Listeners()
      : thread_(op_context.listeners),
        any_(thread_ != nullptr || !process_op_listeners.empty()) {
    if (!any_) return;
    ForEach([this](OpListener& listener) {
      want_times_ = want_times_ || listener.wants_times();
    });
  }

  bool any() const { return any_; }
  // NowTicks if a listener wants times, else 0.
  std::int64_t Now() const { return want_times_ ? NowTicks() : 0; }
  // Calls f(OpListener&) for each: this thread's from the innermost outwards,
  // then those of the process.
  template <typename F>
  void ForEach(F f) const {
    ScopedOpListener::ForEach(thread_, ~0u, f);
    process_op_listeners.ForEach(f);
  }
  // The stamps of all listeners, as a list.
  OpStamps* NewStamps(Stream& stream) const {
    OpStamps* first = nullptr;
    if (!want_times_) return first;
    ForEach([&](OpListener& listener) {
      if (!listener.wants_times()) return;
      OpStamps* const stamps = listener.NewStamps(stream);
      if (stamps == nullptr) return;
      stamps->next = first;
      first = stamps;
    });
    return first;
  }

 private:
  const ScopedListener<OpListener>* const thread_;
  const bool any_;
  bool want_times_ = false;
};

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_OPS_PRIMITIVE_RECORD_H_
