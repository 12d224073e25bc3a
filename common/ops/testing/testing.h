// What the tests of operations share: tensors whose values are known, in all
// kinds of memory, and comparisons with a reference in double precision.
//
//   for (const Placement placement : kPlacements) {
//     const Tensor x = RandomTensor({5, 7}, device, dtype, placement);
//     EXPECT_TRUE(Matches(Abs(x), x.shape(), dtype, Map(x, std::fabs)));
//   }
//   EXPECT_REFUSED("[add] shapes (2) and (3) do not broadcast: …", x + y);
//
// Values are read with ToVector, so nothing here depends on the kind of
// device. Numbers are the host's own: they do not come from Rand.

#ifndef D2L_COMMON_OPS_TESTING_TESTING_H_
#define D2L_COMMON_OPS_TESTING_TESTING_H_

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/device/testing/testing.h"
#include "common/kernels/kernels.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"
#include "common/tensor/tensor.h"
#include "gtest/gtest.h"

namespace d2l {

inline constexpr DType kAllDTypes[] = {DType::kFloat32, DType::kFloat64,
                                       DType::kInt64, DType::kUInt8};
inline constexpr DType kFloatDTypes[] = {DType::kFloat32, DType::kFloat64};

// How a tensor's elements lie in memory.
enum class Placement {
  kContiguous,
  kOffset,      // contiguous, but not from the start of the memory
  kTransposed,  // column by column
  kStepped,     // every second element
  kColumns,     // columns of a wider matrix: rows with gaps
};
inline constexpr Placement kPlacements[] = {
    Placement::kContiguous, Placement::kOffset, Placement::kTransposed,
    Placement::kStepped, Placement::kColumns};
const char* PlacementName(Placement placement);

// The elements, row by row. An int64 beyond 2^53 is rounded.
std::vector<double> ValuesOf(const Tensor& x);

// Expects that reading x throws the AsyncError of an operation requested there.
void ExpectFailedAt(SourceLocation at, const Tensor& x);

// A tensor of these numbers, row by row, converted to the dtype. What lies
// between its elements in memory is 99.
Tensor Place(const std::vector<double>& values, const Shape& shape,
             Device device, DType dtype = DType::kFloat32,
             Placement placement = Placement::kContiguous);
// The memory behind a tensor that Place made, as a vector of all its elements.
Tensor MemoryOf(const Tensor& placed);
// What MemoryOf(placed) holds after these values have been written to `placed`,
// if it held `memory` before and nothing else was written.
std::vector<double> WithValues(std::vector<double> memory, const Tensor& placed,
                               const std::vector<double>& values);

// Random numbers that are values of the dtype, not uniform and all different
// from call to call: of floating-point dtypes mostly small, of both signs, and
// a few large; of int64 -1000 to 1000; of uint8 all.
std::vector<double> RandomValues(std::int64_t count, DType dtype);
Tensor RandomTensor(const Shape& shape, Device device,
                    DType dtype = DType::kFloat32,
                    Placement placement = Placement::kContiguous);

// One number as the dtype holds it: rounded, or wrapped around.
double RoundTo(DType dtype, double value);
// f of each element, in double.
std::vector<double> Map(const Tensor& x,
                        const std::function<double(double)>& f);
// Element `index` of x, whose shape is `shape`, as seen from `out`, to which
// it broadcasts.
double BroadcastAt(const std::vector<double>& values, const Shape& shape,
                   const Shape& out, std::int64_t index);

// The elements of x that a tensor of shape `out` consists of, row by row: the
// one at f(position) for each position in it.
using Position = std::vector<std::int64_t>;
std::vector<double> Pick(const Tensor& x, const Shape& out,
                         const std::function<Position(Position)>& f);
// The positions in a shape, row by row, and the number of one of them.
std::vector<Position> PositionsIn(const Shape& shape);
std::int64_t NumberOf(const Position& position, const Shape& shape);

// Whether x has this shape, this dtype and these values, after rounding them
// to the dtype: exactly, NaN where NaN is expected, or within `ulps` units in
// the last place.
testing::AssertionResult Matches(const Tensor& x, const Shape& shape,
                                 DType dtype,
                                 const std::vector<double>& expected,
                                 double ulps = 0);
// Whether each value is within its own absolute error.
testing::AssertionResult IsNear(const Tensor& x, const Shape& shape,
                                DType dtype,
                                const std::vector<double>& expected,
                                const std::vector<double>& errors);
// The distance between 1 and the next number.
double Epsilon(DType dtype);

// Another device of the table, of whatever kind; `device` if it is the only
// one.
Device OtherDevice(Device device);

// Whether f throws std::invalid_argument that says `text` and, after it, that
// the request came from `at`.
testing::AssertionResult IsRefused(const std::function<void()>& f,
                                   const std::string& text, SourceLocation at);

// Expects that the statement, the last argument, is refused with this message,
// which names the line of this very macro.
#define EXPECT_REFUSED(text, ...)                                             \
  EXPECT_TRUE(::d2l::IsRefused([&] { static_cast<void>(__VA_ARGS__); }, text, \
                               ::d2l::SourceLocation::Current()))

// As a base class: a test for each device.
class DeviceTest : public testing::TestWithParam<Device> {
 protected:
  Device device() const { return GetParam(); }
};

// Instantiates a suite that is derived from DeviceTest.
#define INSTANTIATE_FOR_ALL_DEVICES(suite)                           \
  INSTANTIATE_TEST_SUITE_P(All, suite,                               \
                           ::testing::ValuesIn(::d2l::AllDevices()), \
                           ::d2l::DeviceTestName)

// Applies an operation of one operand in place, as passes of programs do.
void ApplyUnaryInPlace(kernels::UnaryOp op, const Tensor& x,
                       SourceLocation at = SourceLocation::Current());

// Calls f, waits for all devices, and ignores failures. Then f can be called
// while a stream is stalled: the streams and the memory that it needs exist, if
// f gives back what it takes. Allocating more on a GPU may wait for the stalled
// stream.
void RunOnce(const std::function<void()>& f);

// The names of the primitives that MakePrimitive makes.
std::set<std::string> PrimitiveNames();

}  // namespace d2l

#endif  // D2L_COMMON_OPS_TESTING_TESTING_H_
