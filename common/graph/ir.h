// Graph: a program of tensor operations as data, for passes that rewrite it and
// executors that run it.
//
//   ir::Graph graph = ir::Trace(fn, {x});                     // trace.h
//   ir::Optimize(graph);                                      // passes.h
//   std::vector<Tensor> y = ir::Captured(graph).Run({x});     // captured.h
//   std::cout << ir::ToText(graph);
//
// or by hand:
//
//   ir::Function f("f");
//   const ValueSpec spec = {{2, 3}, DType::kFloat32, Device()};
//   const ir::ValueId x = f.AddArgument(ir::TypeOf(spec));
//   f.returns = {f.AddOp(UnaryPrimitive(kernels::UnaryOp::kRelu), {x})};
//   ir::Graph graph;
//   graph.functions.push_back(f);
//
// A function is a list of nodes in the order in which they run. A node is an
// operation (a primitive of common/ops), a weight, a constant, a call of
// another function, or a fused region: a chain of element-wise operations that
// an executor may run as one. Values are numbered; each has one definition and
// a type, which is inferred when its node is added.
//
// A value is a handle to memory, as a Tensor is. A view shares its input's
// memory, and an operation in place writes to its target's. Memory that is
// written in place is pinned (Storages): no pass moves, merges, fuses or
// removes an operation that touches it. If an argument or a weight is written,
// all arguments and weights are pinned, since they may share memory; so are
// they if there is a call.
//
// Weights are references: a program reads the current values of a weight.
//
// Errors: the functions that add nodes throw std::invalid_argument, as the
// operation itself would. Thread-safety: a value.

#ifndef D2L_COMMON_GRAPH_IR_H_
#define D2L_COMMON_GRAPH_IR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "common/base/source_location.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/replay.h"
#include "common/tensor/tensor.h"

namespace d2l::ir {

// An index into Function::values.
using ValueId = int;

// A type is a tensor without memory: a shape, a dtype, a device, strides, and
// the offset from the start of the memory's first value.
Tensor TypeOf(const ValueSpec& spec);
Tensor TypeOf(const Tensor& x);  // for an argument: the offset counts from here
bool SameType(const Tensor& a, const Tensor& b);
// "float32[1, 512]", with strides unless they are the usual ones, and the
// device unless it is cpu:0.
std::string TypeToString(const Tensor& type);

// The bytes of a memory that holds all elements of the type and nothing else.
std::int64_t BytesOf(const Tensor& type);
// The bytes from its first element to its last; BytesOf if it is contiguous,
// else less, or more because of gaps.
std::int64_t SpanOf(const Tensor& type);

struct Value {
  Tensor type;
  std::string name;  // in text; may be empty, else unique in the function
};

struct Function;
struct Graph;

enum class NodeKind { kOp, kInPlace, kWeight, kConstant, kCall, kFused };

struct Node {
  NodeKind kind = NodeKind::kOp;
  // The primitive of kOp and kInPlace; the lines of all kinds.
  OpCall op;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  // none for kInPlace
  ValueId target = -1;           // for kInPlace: the value it writes to
  int index = -1;   // kWeight: in Graph::weights; kCall: in Graph::functions
  Tensor constant;  // kConstant; contiguous
  std::shared_ptr<const Function> body;  // kFused
};

struct Function {
  Function() = default;
  explicit Function(std::string its_name) : name(std::move(its_name)) {}

  ValueId AddArgument(const Tensor& type, std::string value_name = "");
  // Returns the first output.
  ValueId AddOp(const Primitive& primitive, std::vector<ValueId> inputs,
                SourceLocation at = SourceLocation::Current());
  void AddInPlace(const Primitive& primitive, std::vector<ValueId> inputs,
                  ValueId target,
                  SourceLocation at = SourceLocation::Current());
  ValueId AddConstant(const Tensor& constant);
  ValueId AddWeight(const Graph& graph, int weight);
  // `callee` is an earlier function of the graph.
  std::vector<ValueId> AddCall(const Graph& graph, int callee,
                               std::vector<ValueId> inputs,
                               SourceLocation at = SourceLocation::Current());
  // Adds a node, makes its outputs and infers their types. `graph` is for
  // weights and calls, and may be null without them.
  const Node& Add(Node node, const Graph* graph = nullptr);

  const Tensor& type(ValueId value) const { return values[value].type; }

  std::string name;
  std::vector<Value> values;
  std::vector<ValueId> arguments;
  std::vector<Node> nodes;
  std::vector<ValueId> returns;
};

struct Weight {
  std::string name;
  Tensor type;
  Tensor tensor;
};

struct Graph {
  // Returns the weight's number, which is that of an earlier weight of this
  // name. Throws std::invalid_argument if that one has another type.
  int AddWeight(const std::string& name, const Tensor& tensor);

  // A function comes after those that it calls; the last is the program.
  const Function& main() const { return functions.back(); }
  Function& main() { return functions.back(); }

  std::vector<Weight> weights;
  std::vector<Function> functions;
};

// A program's text, for people:
//
//   def my_mlp(%x: float32[1, 512]) {
//     %w = weight "0.weight" : float32[256, 512]
//     %0 = transpose(%w) {dim0=0, dim1=1} : float32[512, 256]
//     %h = matmul(%x, %0) : float32[1, 256] @"net.cc":88
//     return %h
//   }
//
// The last function is the program. One node per line; other forms are
//
//   write %y = add(%y) {second=1.0}          in place, into the memory of %y
//   %c = constant [1.0, -0.0, inf] : float32[3]
//   %a, %b = call f(%x) : float32[2], int64[]
//   %z = fused(%x, %w) {                     the same, its values are its own
//     …
//   }
//
// Numbers are exact; a NaN is written as its bits, 0x7fc00000. A value without
// a name is numbered. `@` names the line that requested the operation, and `by`
// the user's line if a layer requested it.
//
// with_lines: also `@`. Throws std::invalid_argument for an operation without a
// text, "from_vector". It waits for constants and reads them.
std::string ToText(const Graph& graph, bool with_lines = true);

// The most operations that Inline makes and that a saved program holds.
inline constexpr int kMaxNodes = 100'000;

// Returns the types of the node's outputs. Throws std::invalid_argument.
std::vector<Tensor> InferTypes(const Node& node, const Function& function,
                               const Graph* graph);

// Throws std::invalid_argument, naming the function and the line, unless every
// operand is defined before it is used, every type is the inferred one, and
// names are unique. Passes and executors rely on this.
void Verify(const Graph& graph);

// The values that it writes in place: its target, and the inputs from
// Primitive::first_written_input on.
std::vector<ValueId> WrittenBy(const Node& node);

// Which values share memory, by value.
struct Storages {
  explicit Storages(const Function& function);

  bool pinned(ValueId value) const { return pinned_[root[value]]; }
  bool escapes(ValueId value) const { return escapes_[root[value]]; }
  bool external(ValueId value) const { return external_[root[value]]; }
  // Whether the node reads, writes or makes a pinned value.
  bool touches_pinned(const Node& node) const;

  std::vector<ValueId> root;  // the first value in the same memory
  bool writes_external = false;

 private:
  std::vector<bool> pinned_;    // by root
  std::vector<bool> escapes_;   // the function returns it
  std::vector<bool> external_;  // an argument or a weight
};

// Whether an operation may fail when it runs: integer division, indices.
bool MayFailLate(const Node& node, const Function& function);
// Whether an operation must stay even if nothing uses its result: it draws
// random numbers, or it may fail late.
bool HasEffect(const Node& node, const Function& function);

// How an element-wise operation with an output of shape `shape` steps through
// an operand: element by element; through the same row again and again, if its
// dimensions are the last of the shape's; or it is one number. kOther: none of
// these.
enum class Steps { kEach, kRow, kOne, kOther };
Steps StepsOf(const Tensor& operand, const Shape& shape);

// Whether a fused region may hold the operation: it computes one output element
// by element, from operands of one device that are no kOther, and cannot fail.
bool IsFusable(const Node& node, const Function& function);

// Nodes other than weights, constants and views; a fused region is one.
int CountOperations(const Graph& graph);

// Replaces all uses of each value a by map[a].
void ReplaceUses(const std::vector<ValueId>& map, Function& function);
// For each value the index of the last node that uses it or another value in
// its memory; nodes.size() if it escapes; -1 if there is none.
std::vector<int> LastUses(const Function& function, const Storages& storages);
// Removes the values that no node defines.
void DropUnusedValues(Function& function);

// The interpreter: runs the operations one by one, as the traced function did.
// The results are the reference for every other executor: they are bit for bit
// those of the operations themselves, with the same late errors, random numbers
// and calls of listeners. A value's memory is released after its last use.
//
// The graph must be valid, as a trace, LoadProgram and passes make it. Throws
// std::invalid_argument for inputs whose types differ from the arguments',
// strides included (they decided whether an operation copied or made a view);
// else throws what the operations throw.
std::vector<Tensor> Run(const Graph& graph, absl::Span<const Tensor> inputs);

// Throws std::invalid_argument unless the program accepts these inputs.
void CheckArguments(const Graph& graph, absl::Span<const Tensor> inputs);

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_IR_H_
