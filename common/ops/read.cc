#include "common/ops/read.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/listener.h"
#include "common/kernels/functors.h"
#include "common/ops/primitive/record.h"
#include "common/ops/primitive/reject.h"

namespace d2l {
namespace {

// Reports to the listeners that the host reads `x` while this lives.
class ReadScope {
 public:
  ReadScope(const char* reader, const Tensor& x, SourceLocation at)
      : record_{reader, {}, at, 0, 0} {
    if (!x.defined()) {
      RejectAt(at, "[%s] the tensor is undefined (declared and never assigned)",
               reader);
    }
    if (!listeners_.any()) return;
    record_.input = &x;
    record_.host_begin = listeners_.Now();
    listeners_.ForEach([this](OpListener& l) { l.BeforeRead(record_); });
  }
  void Done() {
    if (!listeners_.any()) return;
    record_.host_end = listeners_.Now();
    listeners_.ForEach([this](OpListener& l) { l.AfterRead(record_); });
  }

 private:
  const internal::Listeners listeners_;
  ReadRecord record_;
};

void WaitForWriter(const Tensor& x, const char* reader, SourceLocation at) {
  const Storage& storage = *x.storage();
  if (storage.writer() == nullptr) return;  // nothing was written
  storage.writer()->Finish(storage.written_by(), reader, at);
}

// The storage's elements from the view's first to its last.
template <typename T>
std::vector<T> CopySpan(const Tensor& x, SourceLocation at) {
  const std::int64_t span = x.span();
  std::vector<T> values(span);
  if (x.device().type() == DeviceType::kCpu) {
    // The device's memory is the host's, and its writer is done.
    std::copy_n(static_cast<const T*>(x.data()), span, values.data());
  } else {
    // On a separate stream: the copy must not wait for work that was enqueued
    // on the device since.
    const internal::PartOfRequest part;
    ReadStream(x.device())
        .CopyAsync(values.data(), x.data(), span * sizeof(T),
                   CopyKind::kDeviceToHost, at);
  }
  return values;
}

// The number in a tensor of one element, for Item.
template <typename T>
T ReadNumber(const Tensor& x, SourceLocation at) {
  if (x.device().type() == DeviceType::kCpu) {
    WaitForWriter(x, "Item", at);
    return *static_cast<const T*>(x.data());
  }
  // The first call makes the stream even if it does not need it: later the GPU
  // may be busy, and making a stream would wait.
  Stream& stream = ReadStream(x.device());
  const Storage& storage = *x.storage();
  Stream* const writer = storage.writer();
  T number{};
  const bool read = writer != nullptr && writer->device() == x.device() &&
                    writer->ReadBehind(storage.written_by(), &number, x.data(),
                                       sizeof(T), at);
  WaitForWriter(x, "Item", at);
  // If the writer could not read it, the idle read stream may.
  if (!read && !stream.ReadBehind(0, &number, x.data(), sizeof(T), at)) {
    const internal::PartOfRequest part;
    stream.CopyAsync(&number, x.data(), sizeof(T), CopyKind::kDeviceToHost, at);
  }
  return number;
}

template <typename T>
std::vector<T> Read(const Tensor& x, SourceLocation at) {
  if (x.numel() == 0) return {};
  std::vector<T> span = CopySpan<T>(x, at);
  if (x.is_contiguous()) return span;
  std::vector<T> values;
  values.reserve(x.numel());
  std::int64_t index[kMaxRank] = {};
  std::int64_t position = 0;
  for (std::int64_t n = x.numel(); n > 0; --n) {
    values.push_back(span[position]);
    for (int d = x.dim() - 1; d >= 0; --d) {
      position += x.strides()[d];
      if (++index[d] < x.size(d)) break;
      position -= index[d] * x.strides()[d];
      index[d] = 0;
    }
  }
  return values;
}

// Positions in the storage, from the view's first element, that EdgesToVector
// reads.
void AppendEdges(const Tensor& x, std::int64_t edge, int dim,
                 std::int64_t position, std::vector<std::int64_t>* positions) {
  if (dim == x.dim()) {
    positions->push_back(position);
    return;
  }
  const std::int64_t size = x.size(dim);
  for (std::int64_t i = 0; i < size; ++i) {
    if (i == edge && size > 2 * edge) i = size - edge;
    AppendEdges(x, edge, dim + 1, position + i * x.strides()[dim], positions);
  }
}

template <typename T>
std::vector<T> ReadEdges(const Tensor& x, std::int64_t edge,
                         SourceLocation at) {
  std::vector<std::int64_t> positions;
  AppendEdges(x, edge, 0, 0, &positions);
  std::vector<T> values(positions.size());
  const T* const data = static_cast<const T*>(x.data());
  if (x.device().type() == DeviceType::kCpu) {
    std::transform(positions.begin(), positions.end(), values.begin(),
                   [data](std::int64_t position) { return data[position]; });
    return values;
  }
  const internal::PartOfRequest part;
  Stream& stream = ReadStream(x.device());
  for (std::size_t i = 0; i < values.size(); ++i) {
    stream.CopyAsync(&values[i], data + positions[i], sizeof(T),
                     CopyKind::kDeviceToHost, at);
  }
  return values;
}

// Waits for the elements of x, and returns what `read` makes of them.
template <typename T, typename F>
std::vector<T> ToVectorBy(const Tensor& x, SourceLocation at, const F& read) {
  ReadScope scope("to_vector", x, at);
  if (x.dtype() != DTypeOf<T>::value) {
    RejectAt(at, "[to_vector] %s elements asked of %s", DTypeOf<T>::value, x);
  }
  WaitForWriter(x, "ToVector", at);
  std::vector<T> values = read();
  scope.Done();
  return values;
}

}  // namespace

template <typename T>
std::vector<T> ToVector(const Tensor& x, SourceLocation at) {
  return ToVectorBy<T>(x, at, [&] { return Read<T>(x, at); });
}

template <typename T>
std::vector<T> EdgesToVector(const Tensor& x, std::int64_t edge,
                             SourceLocation at) {
  return ToVectorBy<T>(x, at, [&] { return ReadEdges<T>(x, edge, at); });
}

template std::vector<float> ToVector(const Tensor&, SourceLocation);
template std::vector<double> ToVector(const Tensor&, SourceLocation);
template std::vector<std::int64_t> ToVector(const Tensor&, SourceLocation);
template std::vector<std::uint8_t> ToVector(const Tensor&, SourceLocation);

template std::vector<float> EdgesToVector(const Tensor&, std::int64_t,
                                          SourceLocation);
template std::vector<double> EdgesToVector(const Tensor&, std::int64_t,
                                           SourceLocation);
template std::vector<std::int64_t> EdgesToVector(const Tensor&, std::int64_t,
                                                 SourceLocation);
template std::vector<std::uint8_t> EdgesToVector(const Tensor&, std::int64_t,
                                                 SourceLocation);

template <typename T>
T Item(const Tensor& x, SourceLocation at) {
  ReadScope scope("item", x, at);
  if (x.numel() != 1) RejectAt(at, "[item] one element wanted; got %s", x);
  const T value = VisitDType(x.dtype(), [&](auto zero) {
    // Converts as To does: NaN, infinities and large numbers have values, too.
    return kernels::ConvertTo<T>()(ReadNumber<decltype(zero)>(x, at));
  });
  scope.Done();
  return value;
}

template double Item(const Tensor&, SourceLocation);
template std::int64_t Item(const Tensor&, SourceLocation);

void WaitToRead(const Tensor& x, SourceLocation at) {
  ReadScope scope("wait_to_read", x, at);
  WaitForWriter(x, "WaitToRead", at);
  scope.Done();
}

}  // namespace d2l
