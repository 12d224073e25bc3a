// OpRecord: what is known about an operation when it is requested, and those
// who want to know it.
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
// One record has several readers: a tracer and a tape listen on their own
// thread, a profiler to the whole process. Without a listener a record is not
// even made. Later features add listeners, not hooks.
//
// Thread-safety: a thread's listener is called on that thread; the process's
// listener is called on any, at the same time, and must lock what it shares.
// A listener must not request operations itself.

#ifndef D2L_COMMON_OPS_RECORD_H_
#define D2L_COMMON_OPS_RECORD_H_

#include <atomic>
#include <cstdint>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/device/op_label.h"
#include "common/device/stream.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

class Primitive;

// A value that an operation reads or makes. The numbers name it for ever;
// addresses are reused and would not.
struct ValueRecord {
  std::uint64_t id;       // of the value
  std::uint64_t storage;  // of the memory, which several values may share
  std::uint64_t version;  // of the memory, after the operation
  Shape shape;
  DType dtype;
};

// Valid during the call only: copy what you keep, Clone() the primitive.
struct OpRecord {
  const Primitive* primitive;
  std::uint64_t number;  // in its stream
  Stream* stream;        // null if it launched nothing: a view, Empty
  absl::Span<const Tensor* const> inputs;  // ToRecord names them for ever
  // What it made, or for an operation in place what it wrote to.
  const Tensor* output;
  bool in_place;
  bool view;                    // the output is the memory of the first input
  SourceLocation requested_at;  // the innermost line
  SourceLocation requested_by;  // the user's line, where a layer called
  std::int64_t host_begin;      // NowTicks when the request came, before
                                // memory was taken for its output
  std::int64_t host_end;        // and when it had been enqueued
  OpStamps* stamps;             // from NewStamps, a list; null if nobody asked
};

// The host reads values of a tensor: Item, ToVector, printing. It waits.
struct ReadRecord {
  const char* reader;  // "item"
  const Tensor* input;
  SourceLocation requested_at;
  std::int64_t host_begin;  // NowTicks
  std::int64_t host_end;
};

ValueRecord ToRecord(const Tensor& value);

class OpListener {
 public:
  virtual ~OpListener() = default;

  // An operation has been enqueued. With launch blocking, one that has failed
  // is not told of: its call throws.
  virtual void OnOp(const OpRecord& record) = 0;
  // The host is about to read (host_end is 0), and has read, unless it threw.
  // Throw in the first call to forbid it.
  virtual void BeforeRead(const ReadRecord&) {}
  virtual void AfterRead(const ReadRecord&) {}
  // Where the device shall write when it runs the operation that is being
  // requested on `stream`; null not to ask. Keep it until the operation is
  // done, which it may become even if its request fails and OnOp is not called.
  virtual OpStamps* NewStamps(Stream& stream) {
    static_cast<void>(stream);
    return nullptr;
  }
};

// Listens to this thread's operations while it lives. They nest: the
// innermost one is told.
class ScopedOpListener {
 public:
  explicit ScopedOpListener(OpListener* listener);
  ~ScopedOpListener();
  ScopedOpListener(const ScopedOpListener&) = delete;
  ScopedOpListener& operator=(const ScopedOpListener&) = delete;

 private:
  OpListener* const previous_;
};

// Listens to all threads' operations; null to stop. The caller sees to it
// that no operation is being requested when a listener goes.
void SetProcessOpListener(OpListener* listener);

// While it lives, operations requested on this thread are also attributed to
// `location`: the user's line, where a layer or a library makes the call. The
// outermost one counts.
class RequestedBy {
 public:
  explicit RequestedBy(SourceLocation location);
  ~RequestedBy();
  RequestedBy(const RequestedBy&) = delete;
  RequestedBy& operator=(const RequestedBy&) = delete;

 private:
  const bool outermost_;
};

namespace internal {

struct OpContext {
  OpListener* listener = nullptr;
  SourceLocation requested_by;
};
inline thread_local OpContext op_context;
inline std::atomic<OpListener*> process_listener{nullptr};

// Those who listen at this moment; usually nobody.
class Listeners {
 public:
  Listeners()
      : thread_(op_context.listener),
        process_(process_listener.load(std::memory_order_acquire)) {}

  bool any() const { return thread_ != nullptr || process_ != nullptr; }
  // Calls f(OpListener&) for each.
  template <typename F>
  void ForEach(F f) const {
    if (thread_ != nullptr) f(*thread_);
    if (process_ != nullptr) f(*process_);
  }
  // Everyone's own, as a list.
  OpStamps* NewStamps(Stream& stream) const {
    OpStamps* first = nullptr;
    ForEach([&](OpListener& listener) {
      OpStamps* const stamps = listener.NewStamps(stream);
      if (stamps == nullptr) return;
      stamps->next = first;
      first = stamps;
    });
    return first;
  }

 private:
  OpListener* const thread_;
  OpListener* const process_;
};

}  // namespace internal
}  // namespace d2l

#endif  // D2L_COMMON_OPS_RECORD_H_
