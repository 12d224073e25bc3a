// Tools of the judges of exercises: random inputs and arguments, counts of a
// function's requests to the devices and of its allocations, a gate that holds
// a stream, and tensors whose numbers come late.
//   const Tensor x = FromVector(RandomNumbers(7, 1), {7}, device);
//   Gate gate(DefaultStream(device));
//   Requests asked;
//   const double got = answer(x);  // enqueues work after the gate
//   asked.operations;              // the number of operations
//   if (gate.TimedOut()) …         // the answer waited for the device
//   gate.Open();

#ifndef D2L_COMMON_EXERCISE_PROBES_H_
#define D2L_COMMON_EXERCISE_PROBES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/device/device.h"
#include "common/device/listener.h"
#include "common/device/stream.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"

namespace d2l {

// Numbers of both signs, from 1e-2 to 1e2 and more, so that different sums, or
// orders of a sum, differ. The same seed gives the same numbers.
std::vector<float> RandomNumbers(std::size_t count, unsigned seed);

// Kinds of numbers for which wrong answers go wrong: as above; 1e30 and more,
// and so on down to 1e-30; all negative; all far above the first; and as above,
// with a NaN and an infinity, or one of them, at a random place.
enum class NumberKind {
  kMixed,
  kHuge,
  kTiny,
  kNegative,
  kFirstFarBelow,
  kWithNan,
  kWithInfinity
};
inline constexpr NumberKind kNumberKinds[] = {
    NumberKind::kMixed,       NumberKind::kHuge,          NumberKind::kTiny,
    NumberKind::kNegative,    NumberKind::kFirstFarBelow, NumberKind::kWithNan,
    NumberKind::kWithInfinity};
std::vector<float> RandomNumbers(std::size_t count, unsigned seed,
                                 NumberKind kind);

// Values of an argument that an answer cannot know: a negative number, a small
// one, 0, and a large one. They are others in each run of the program.
std::vector<float> DrawnNumbers();
// A number from `low` to `high`, another one at each call.
double Drawn(double low, double high);

// Counts the requests of this thread while it lives.
class Requests : private OpListener, private DeviceListener {
 public:
  // before_record is about `recorded`'s events; nullptr: any stream's.
  explicit Requests(const Stream* recorded = nullptr);

  int operations = 0;
  int of_the_host = 0;  // those among them that move numbers of the host
  std::map<const Stream*, int> on_stream;  // operations by stream
  int reads = 0;                           // Item, ToVector, printing
  int waits = 0;   // Synchronize, and reads that had to wait
  int copies = 0;  // Stream::CopyAsync
  std::size_t copied_bytes = 0;
  int stream_waits = 0;  // Stream::Wait: one stream waits for another
  // The operations before the last Stream::Record; -1 if there was none.
  int before_record = -1;
  // The operations before the last Stream::Wait; -1 if there was none.
  int before_wait = -1;

 private:
  void OnOp(const OpRecord& record) override;
  void BeforeRead(const ReadRecord&) override { ++reads; }
  void OnWait(const WaitRecord&) noexcept override { ++waits; }
  void OnStream(const StreamRecord& record) override;

  const Stream* const recorded_;
  ScopedOpListener op_listener_;
  ScopedDeviceListener device_listener_;
};

// Counts what this thread allocates on the host while it lives: with malloc or
// calloc, which operator new, and so every container, calls.
class Allocations {
 public:
  Allocations();

  int count() const;

 private:
  const int before_;
};

// Memory for `size` numbers between others that nobody may write. All begin
// with the value `before`.
class Fenced {
 public:
  Fenced(std::size_t size, float before)
      : size_(size), before_(before), all_(size + 2 * kFence, before) {}

  float* data() { return all_.data() + kFence; }
  // Whether the other numbers are unchanged.
  bool Whole() const;

 private:
  static constexpr std::size_t kFence = 1024;

  const std::size_t size_;
  const float before_;
  std::vector<float> all_;
};

// Holds a stream, and the work queued after it, until it is opened: so a judge
// sees without measuring times whether a function waits. A function that waits
// for the gate before it is opened would wait for ever; so the gate opens by
// itself three seconds after the stream has reached it, and records that. A
// call that does not wait is over within a millisecond: three seconds leave
// room for a busy machine, and only an answer that waits takes them. Any thread
// may call it; the destructor opens it. Not with launch blocking, where the
// call that makes the gate waits.
class Gate {
 public:
  explicit Gate(Stream& stream);
  ~Gate() { Open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void Open();
  // Whether it opened by itself.
  bool TimedOut() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Tensors whose numbers a device writes only when it is allowed to. A function
// that is right, and has not waited, has enqueued the work on them: a host that
// reads them finds zeros. With devices whose memory the host can read, this is
// how a judge sees who has computed.
class LateTensors {
 public:
  // One tensor for each vector of numbers, on the current stream of `device`.
  LateTensors(const std::vector<std::vector<float>>& numbers,
              const Shape& shape, Device device);

  const Tensor& operator[](std::size_t i) const { return tensors_[i]; }
  // Lets the device go on. Returns whether somebody has waited for it.
  bool Arrive();

 private:
  std::vector<Tensor> tensors_;
  std::optional<Gate> gate_;
};

}  // namespace d2l

#endif  // D2L_COMMON_EXERCISE_PROBES_H_
