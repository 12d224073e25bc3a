// For tests: recordings that nobody recorded.
//
//   FakeProgram program;
//   const int x = program.Op("ones", {});
//   const int y = program.Op("relu", {x});
//   ProgramGraph graph(program.recording());

#ifndef D2L_COMMON_LESSON_RECORDING_TESTING_H_
#define D2L_COMMON_LESSON_RECORDING_TESTING_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/lesson/recorder.h"
#include "common/ops/record.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l {

// Values are ints. Operation i, from 0, is requested at 100 i ns, returns at
// 100 i + 20 and runs from 1000 (i + 1) to 1000 (i + 1) + 500 on stream cpu:0.
class FakeProgram {
 public:
  FakeProgram() {
    recording_.threads = 1;
    recording_.streams = {{"cpu:0", Device(DeviceType::kCpu, 0)}};
  }

  // Returns the value that it makes.
  int Op(const std::string& name, const std::vector<int>& inputs) {
    const int value = ++values_;
    Add(name, inputs, value, value);
    return value;
  }
  int View(const std::string& name, int base) {
    const int value = ++values_;
    Add(name, {base}, value, StorageOf(base));
    recording_.ops.back().view = true;
    recording_.ops.back().stream = -1;
    recording_.ops.back().begin = 0;
    recording_.ops.back().end = 0;
    return value;
  }
  void InPlace(const std::string& name, const std::vector<int>& inputs,
               int target) {
    Add(name, inputs, target, StorageOf(target));
    recording_.ops.back().in_place = true;
  }
  // A value from outside.
  int Outside() {
    const int value = ++values_;
    storage_[value] = value;
    return value;
  }

  Recording& recording() { return recording_; }

 private:
  int StorageOf(int value) { return storage_.at(value); }

  ValueRecord Record(int value) {
    return {static_cast<std::uint64_t>(value),
            static_cast<std::uint64_t>(StorageOf(value)), 1, Shape{2, 3},
            DType::kFloat32};
  }

  void Add(const std::string& name, const std::vector<int>& inputs, int value,
           int storage) {
    storage_[value] = storage;
    const std::int64_t i = static_cast<std::int64_t>(recording_.ops.size());
    RecordedOp op;
    op.name = name;
    for (const int input : inputs) op.inputs.push_back(Record(input));
    op.output = Record(value);
    op.stream = 0;
    op.number = static_cast<std::uint64_t>(i);
    op.requested_at = SourceLocation("dir/net.cc", static_cast<int>(i) + 1);
    op.host_begin = 1'000'000 + 100 * i;
    op.host_end = op.host_begin + 20;
    op.begin = 1'000'000 + 1000 * (i + 1);
    op.end = op.begin + 500;
    recording_.ops.push_back(op);
  }

  Recording recording_;
  int values_ = 0;
  std::map<int, int> storage_;
};

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RECORDING_TESTING_H_
