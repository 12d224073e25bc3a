#include "common/graph/trace.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/stream.h"
#include "common/ops/primitive/record.h"
#include "common/ops/read.h"

namespace d2l::ir {
namespace {

class Listener : public OpListener {
 public:
  Listener(const TraceOptions& options, SourceLocation at)
      : options_(options), at_(at), function_(options.name) {}

  void AddArgument(const Tensor& x) {
    known_[x.id()] = {function_.AddArgument(TypeOf(x)), at_};
  }

  void OnOp(const OpRecord& record) override {
    if (record.stream != nullptr) {
      const Stream* const stream = &record.stream->receiver();
      if (stream_ == nullptr) stream_ = stream;
      if (stream_ != stream && other_stream_ == nullptr) {
        other_stream_ = stream;
        other_at_ = record.requested_at;
      }
    }
    if (other_stream_ != nullptr) return;  // Finish will throw
    Node node;
    node.op = ToCall(record);
    for (const Tensor* input : record.inputs) {
      node.inputs.push_back(ValueOf(*input));
    }
    if (record.in_place) {
      node.kind = NodeKind::kInPlace;
      node.target = ValueOf(record.output);
    }
    const std::vector<ValueId>& outputs =
        function_.Add(std::move(node), &graph_).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      known_[record.output.id()] = {outputs[i], record.requested_at};
    }
  }

  void BeforeRead(const ReadRecord& read) override {
    // wait_to_read only waits: the program gets no value.
    if (std::string_view(read.reader) == "wait_to_read") return;
    const auto made = known_.find(read.input->id());
    throw std::logic_error(absl::StrFormat(
        "[%s] the value of a tensor is read at %s while a function is traced; "
        "when the program runs again, there is no such value. %s at %s",
        read.reader, read.requested_at.ToString(),
        made == known_.end() ? "The trace began"
        : IsArgument(made->second.value)
            ? "It is an argument of the trace that began"
            : "It was made",
        (made == known_.end() ? at_ : made->second.at).ToString()));
  }

  Graph Finish(const std::vector<Tensor>& results) {
    if (other_stream_ != nullptr) {
      throw std::invalid_argument(absl::StrFormat(
          "[trace] operations on two streams, %s and %s, whose order a program "
          "does not hold; the first on another stream was requested at %s",
          stream_->name(), other_stream_->name(), other_at_.ToString()));
    }
    for (const Tensor& result : results) {
      if (!result.defined()) {
        throw std::invalid_argument(absl::StrCat(
            "[trace] ", options_.name,
            " returns an undefined tensor; traced at ", at_.ToString()));
      }
      function_.returns.push_back(ValueOf(result));
    }
    // Copies the host's numbers as they were.
    for (Node& node : function_.nodes) {
      if (node.kind != NodeKind::kOp ||
          node.op.primitive->effect() != Effect::kHostData) {
        continue;
      }
      node.constant = Apply(*node.op.primitive, {}, node.op.requested_at);
      WaitToRead(node.constant);
      node.kind = NodeKind::kConstant;
      node.op.primitive = nullptr;
    }
    graph_.functions.push_back(std::move(function_));
    Verify(graph_);
    return std::move(graph_);
  }

 private:
  struct Known {
    ValueId value;
    SourceLocation at;
  };

  bool IsArgument(ValueId value) const {
    return value < static_cast<int>(function_.arguments.size());
  }

  ValueId ValueOf(const Tensor& x) {
    const auto known = known_.find(x.id());
    if (known != known_.end()) return known->second.value;
    std::string name = absl::StrCat("w", graph_.weights.size());
    for (const auto& [its_name, tensor] : options_.weights) {
      if (tensor.id() == x.id()) name = its_name;
    }
    const ValueId value =
        function_.AddWeight(graph_, graph_.AddWeight(name, x));
    known_[x.id()] = {value, at_};
    return value;
  }

  const TraceOptions& options_;
  const SourceLocation at_;
  Graph graph_;
  Function function_;
  std::unordered_map<std::uint64_t, Known> known_;  // by the tensor's id
  const Stream* stream_ = nullptr;
  const Stream* other_stream_ = nullptr;
  SourceLocation other_at_;
};

}  // namespace

Graph Trace(const TensorFunction& function, const std::vector<Tensor>& inputs,
            const TraceOptions& options, SourceLocation at) {
  Listener listener(options, at);
  std::vector<Tensor> arguments;
  for (const Tensor& x : inputs) {
    CheckDefined("trace", x, at);
    // A new handle, so that no other argument and no weight has the same id.
    arguments.push_back(Tensor::View(x, x.offset(), x.shape(), x.strides()));
    listener.AddArgument(arguments.back());
  }
  std::vector<Tensor> results;
  {
    const ScopedOpListener listen(&listener);
    results = function(arguments);
  }
  Graph graph = listener.Finish(results);
  if (options.results != nullptr) *options.results = std::move(results);
  return graph;
}

}  // namespace d2l::ir
