// For tests: invented programs.
//
//   FakeProgram program;
//   const int x = program.Op("ones", {});
//   const int y = program.Op("relu", {x});
//   ProgramGraph graph = program.Graph();

#ifndef D2L_COMMON_GRAPH_PROGRAM_TESTING_H_
#define D2L_COMMON_GRAPH_PROGRAM_TESTING_H_

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "common/base/source_location.h"
#include "common/graph/program_graph.h"
#include "common/ops/primitive/record.h"
#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace d2l {

// Values are ints. Operation i, from 0, runs from 1000 (i + 1) to
// 1000 (i + 1) + 500 on stream cpu:0.
class FakeProgram {
 public:
  // Returns the value that the operation makes.
  int Op(const std::string& name, const std::vector<int>& inputs) {
    return Ops(name, inputs, 1);
  }
  // Returns the first of the operation's outputs; the others follow.
  int Ops(const std::string& name, const std::vector<int>& inputs,
          int outputs) {
    std::vector<int> values;
    for (int i = 0; i < outputs; ++i) values.push_back(Outside());
    Add(name, inputs, values);
    return values[0];
  }
  int View(const std::string& name, int base) {
    const int value = ++values_;
    storage_[value] = storage_.at(base);
    Add(name, {base}, {value});
    ops.back().view = true;
    ops.back().stream = -1;
    ops.back().begin = ops.back().end = 0;
    return value;
  }
  void InPlace(const std::string& name, const std::vector<int>& inputs,
               int target) {
    Add(name, inputs, {target});
    ops.back().in_place = true;
  }
  // A value from outside.
  int Outside() {
    const int value = ++values_;
    storage_[value] = value;
    return value;
  }

  ProgramGraph Graph() const { return ProgramGraph(ops, streams); }

  std::vector<GraphOp> ops;
  std::vector<std::string> streams = {"cpu:0"};

 private:
  ValueRecord Record(int value) {
    return {static_cast<std::uint64_t>(value),
            static_cast<std::uint64_t>(storage_.at(value)), 1, Shape{2, 3},
            DType::kFloat32};
  }

  void Add(const std::string& name, const std::vector<int>& inputs,
           const std::vector<int>& outputs) {
    const std::int64_t i = static_cast<std::int64_t>(ops.size());
    GraphOp op;
    op.name = name;
    for (const int input : inputs) op.inputs.push_back(Record(input));
    for (const int output : outputs) op.outputs.push_back(Record(output));
    op.stream = 0;
    op.number = static_cast<std::uint64_t>(i);
    op.line = SourceLocation("dir/net.cc", static_cast<int>(i) + 1);
    op.begin = 1'000'000 + 1000 * (i + 1);
    op.end = op.begin + 500;
    ops.push_back(op);
  }

  int values_ = 0;
  std::map<int, int> storage_;
};

// A random program, with views, operations in place and several outputs.
inline FakeProgram RandomProgram(unsigned seed, int operations) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  FakeProgram p;
  std::vector<int> values = {p.Outside(), p.Outside()};
  const auto any = [&] {
    return values[below(static_cast<int>(values.size()))];
  };
  for (int i = 0; i < operations; ++i) {
    switch (below(7)) {
      case 0:
        values.push_back(p.View("view", any()));
        break;
      case 1:
        p.InPlace("write", {any()}, any());
        break;
      case 2:
        p.InPlace("fill", {}, any());
        break;
      case 3:
        values.push_back(p.Ops("split", {any()}, 2));
        values.push_back(values.back() + 1);
        break;
      default:
        values.push_back(p.Op("op", {any(), any(), any()}));
    }
  }
  return p;
}

}  // namespace d2l

#endif  // D2L_COMMON_GRAPH_PROGRAM_TESTING_H_
