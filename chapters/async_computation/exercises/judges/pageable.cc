// Judges pageable: are the values right, and does the caller wait?

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/base/console/language.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/device/memory/host_memory.h"
#include "common/device/memory/storage.h"
#include "common/exercise/exercise.h"
#include "common/exercise/probes.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {
namespace {

using StartCopy = StorageRef(const Tensor& x);

void JudgeOne(const Judging& judging, StartCopy* answer, const Tensor& x,
              const std::string& name) {
  const std::vector<float> expected = ToVector<float>(x);
  const Device device = x.device();
  const Tensor values_of_x = Clone(x);
  FillInPlace(x, 0.0);
  Synchronize(device);
  static Stream& stream = NewStream(device);
  const StreamGuard guard(stream);
  Gate gate(stream);
  CopyTo(values_of_x, x);  // behind the gate
  Requests asked;
  const StorageRef host = answer(x);
  const StorageRef again = answer(x);
  const bool waited = gate.TimedOut();
  // Work in another stream's queue is done now, which is too early.
  DefaultStream(device).Synchronize();
  gate.Open();
  const std::string input = Say("%s, behind other work", name);
  if (!host) {
    judging.Wrong({input, "no memory", "a block with the values",
                   "Return the block that you copy to."});
  }
  if (host->data() == x.storage()->data()) {
    judging.Wrong({input, "the memory of x itself", "another block",
                   "A device's memory is not the host's, though both look "
                   "alike on a virtual device. Copy the values."});
  }
  const bool pinned = IsPinned(host->data(), host->bytes());
  if (waited) {
    judging.Wrong(
        {input, "the call returned when the copy was done", "at once",
         asked.reads > 0
             ? "ToVector and Item wait for the values, since they return "
               "numbers. Enqueue a copy instead."
         : pinned
             ? "The memory is pinned, so the copy itself does not wait, but "
               "something else does. Leave the wait to the caller."
             : "The memory is not pinned. A device can copy by itself to "
               "pinned memory only; for other memory the call has to wait."});
  }
  Synchronize(device);
  if (asked.copies == 0 && !expected.empty()) {
    judging.Wrong(
        {input, "no CopyAsync", "one copy by the device",
         "The host copied the values itself, which is not possible with a "
         "GPU's memory. CopyAsync enqueues a copy that the device makes."});
  }
  if (host->data() == again->data() && !expected.empty()) {
    judging.Wrong({input, "the same block from two calls",
                   "a block for each call",
                   "The second copy overwrites the values of the first. Do not "
                   "reuse a block that the caller still holds."});
  }
  if (host->bytes() < expected.size() * sizeof(float)) {
    judging.Wrong({input, Say("%d bytes", host->bytes()),
                   absl::StrFormat("%d", expected.size() * sizeof(float)),
                   "A float has four bytes; memory is counted in bytes."});
  }
  const auto* values = static_cast<const float*>(host->data());
  const std::vector<float> got = {values, values + expected.size()};
  judging.ExpectClose(input, got, expected, 0,
                      !got.empty() && got[0] == 0
                          ? "These are the numbers from before the work. Copy "
                            "on the current stream, CurrentStream(device), so "
                            "that the copy comes after the work."
                          : "Copy all of it: bytes, not elements.");
}

void JudgeStartCopy(Judging& judging, StartCopy* answer) {
  const Device device = Devices().back().device;
  for (const std::int64_t n : {7, 4099, 1, 0}) {
    const Tensor x = FromVector(RandomNumbers(n, 3), {n}, device);
    JudgeOne(judging, answer, x, Say("%d floats", n));
  }
  const Tensor rows = FromVector(RandomNumbers(15, 4), {3, 5}, device);
  JudgeOne(judging, answer, Select(rows, 0, 1),
           Say("the second of three rows"));

  constexpr std::int64_t kLarge = 4'000'000;
  const Tensor x = FromVector(RandomNumbers(kLarge, 5), {kLarge}, device);
  const std::size_t bytes = kLarge * sizeof(float);
  const StorageRef host = PinnedMemory(device).AllocatePinned(bytes);
  judging.Race({"yours: 16 MB, copied", {device}, [&] { answer(x); }},
               {{"into the same pinned block",
                 {device},
                 [&] {
                   CurrentStream(device).CopyAsync(
                       host->data(), x.data(), bytes, CopyKind::kDeviceToHost);
                 }},
                4,
                "The copy itself takes a small part of this time. Do you copy "
                "twice, or fill the memory first?"});
}

D2L_JUDGE("pageable", JudgeStartCopy);

}  // namespace
}  // namespace d2l
