#include "chapters/hybrid_programming/exercises/judges/traced.h"

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/base/console/language.h"
#include "common/device/device_table.h"
#include "common/exercise/exercise.h"
#include "common/graph/ir.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "common/tensor/tensor.h"

namespace d2l {

Tensor OnDevice(const std::vector<float>& x) {
  return FromVector(x, {static_cast<std::int64_t>(x.size())},
                    Devices().back().device);
}

ir::Graph TraceAnswer(
    const Judging& judging,
    const std::function<std::vector<Tensor>(const Tensor&)>& answer,
    const std::vector<float>& x, const std::string& look) {
  try {
    return ir::Trace(
        [&](const std::vector<Tensor>& inputs) { return answer(inputs[0]); },
        {OnDevice(x)});
  } catch (const NotDone&) {
    throw;
  } catch (const std::invalid_argument&) {
    throw;  // such as a wrong shape
  } catch (const std::logic_error&) {
    judging.Wrong({Say("%d numbers, traced", x.size()),
                   "the trace read a value", "operations on tensors only",
                   look});
  }
}

}  // namespace d2l
