#include "common/autograd/tape.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "common/autograd/gradient_rules.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"
#include "common/ops/primitive/record.h"
#include "common/ops/primitive/recording_tape.h"
#include "common/tensor/dtype.h"

namespace d2l {
namespace {

// The user's line, if a layer made the request.
SourceLocation LineOf(const OpRecord& record) {
  return record.requested_by.known() ? record.requested_by
                                     : record.requested_at;
}

// x, summed over the dimensions in which `shape` was broadcast.
Tensor SumToShape(const Tensor& x, const Shape& shape, SourceLocation at) {
  if (x.shape() == shape) return x;
  const int missing = x.dim() - shape.rank();
  Dims dims;
  for (int i = 0; i < x.dim(); ++i) {
    const bool repeated = i < missing || shape[i - missing] == 1;
    if (repeated && x.size(i) != 1) dims.Add(i);
  }
  return Reshape(dims.empty() ? x : Sum(x, dims, /*keepdim=*/true, at), shape,
                 at);
}

}  // namespace

// Listens to the operations, and runs the backward pass through them.
class GradientTape::Recorder final : public OpListener, public RecordingTape {
 public:
  Recorder(std::vector<Tensor> watched, SourceLocation at);

  void Begin(const Tensor& y, const Tensor& gradient, SourceLocation at);
  std::optional<Gradient> Next();
  std::size_t num_watched() const { return watched_.size(); }

  void OnOp(const OpRecord& record) override;
  bool recording() const override { return !done_; }
  bool NeedsGradient(const Tensor& x) const override {
    return !done_ && KnownOf(x).value >= 0;
  }
  Tensor CopyBeforeWrite(const Primitive& primitive,
                         absl::Span<const Tensor* const> inputs,
                         std::size_t input, SourceLocation at) override;

 private:
  // An operation that depends on a watched tensor.
  struct Node {
    Node(std::unique_ptr<Primitive> primitive, SourceLocation at)
        : primitive(std::move(primitive)),
          rule(FindGradientRule(*this->primitive)),
          at(at) {}
    const std::unique_ptr<Primitive> primitive;
    const GradientRule* const rule;  // null if there is none
    const SourceLocation at;
    int output;                                // the number of the value
    absl::InlinedVector<int, 2> input_values;  // -1: not differentiable
    absl::InlinedVector<ValueSpec, 2> inputs;
    absl::InlinedVector<SavedTensor, 2> saved;
    Reads transposed = 0;  // see ForwardOp
  };
  // The state of a tensor. Its family are the tensors that share memory and
  // gradients with it: its views, and the tensor that it is a view of.
  struct Known {
    int value;  // its number; -1 for a constant
    int since;  // the number of the last write in place when it got this value
    std::uint64_t family;
  };
  // The numbers of the last writes in place to a family, from 1 on.
  struct Writes {
    int any = 0;
    int differentiable = 0;
    SourceLocation at;
  };

  void Note(const OpRecord& record, const absl::InlinedVector<int, 2>& values,
            std::uint64_t family);
  void AddValue(const Tensor& x, std::uint64_t family);
  static Known Unknown(const Tensor& x);
  Known KnownOf(const Tensor& x) const;
  // Throws std::logic_error, and makes Backward throw it, if the memory of x
  // was written to after x got its value.
  void CheckRead(const Tensor& x, const Known& known, const char* reader,
                 SourceLocation at);
  [[noreturn]] void Refuse(const std::string& what);
  void CheckUnchanged(const Node& node) const;
  bool IsWatched(int value) const {
    return value >= 0 && value < static_cast<int>(watched_.size());
  }
  // The number of y. Throws if Backward's arguments are wrong.
  int CheckBackward(const Tensor& y, const Tensor& gradient, SourceLocation at);
  // The gradient of a watched tensor, after all its operations are enqueued.
  Gradient Give(int watched);
  // Adds to the gradients of the inputs. dy: of the output.
  void GoBack(const Node& node, const Tensor& dy);

  const std::vector<Tensor> watched_;
  const SourceLocation watched_at_;
  int num_values_ = 0;                               // the first are watched
  absl::flat_hash_map<std::uint64_t, Known> known_;  // by a tensor's id
  std::vector<std::unique_ptr<Node>> nodes_;
  int num_writes_ = 0;
  absl::flat_hash_map<std::uint64_t, Writes> families_;
  // By the id of memory: the last operation in place.
  absl::flat_hash_map<std::uint64_t, SourceLocation> writes_;
  std::string refused_;       // the error, if there was one
  SourceLocation gone_back_;  // the line of Backward, if it was called
  // By watched tensor: the number of the first operation that uses it, which is
  // the last that adds to its gradient.
  std::vector<std::size_t> first_uses_;
  // For Backward: by value; the memory of gradients that were given, and of the
  // first, which is the caller's; and those that are known and not yet given.
  std::vector<Tensor> gradients_;
  absl::flat_hash_set<std::uint64_t> taken_;
  std::vector<int> ready_;
  std::vector<bool> listed_;  // by watched tensor: in ready_ now or before
  bool twice_ = false;        // a tensor is watched twice: the second counts
  bool done_ = false;
  bool given_ = false;  // false if Backward failed
  // Last, so that all members exist.
  const ScopedListener<RecordingTape> tape_;
  const ScopedOpListener listen_;
};

GradientTape::Recorder::Recorder(std::vector<Tensor> watched, SourceLocation at)
    : watched_(std::move(watched)),
      watched_at_(at),
      first_uses_(watched_.size(), SIZE_MAX),
      tape_(internal::recording_tapes, this),
      listen_(this) {
  // The first steps must not be slowed by growth.
  known_.reserve(64);
  nodes_.reserve(64);
  for (const Tensor& x : watched_) {
    CheckDefined("GradientTape", x, at);
    WithLine(at, [&] { CheckFloatingPoint("GradientTape", x); });
    AddValue(x, KnownOf(x).family);
  }
}

void GradientTape::Recorder::AddValue(const Tensor& x, std::uint64_t family) {
  known_[x.id()] = {num_values_++, num_writes_, family};
}

// A constant, in the family of its memory. ~: no tensor has this id.
GradientTape::Recorder::Known GradientTape::Recorder::Unknown(const Tensor& x) {
  return {-1, 0, ~x.storage()->id()};
}

GradientTape::Recorder::Known GradientTape::Recorder::KnownOf(
    const Tensor& x) const {
  const auto found = known_.find(x.id());
  return found == known_.end() ? Unknown(x) : found->second;
}

void GradientTape::Recorder::OnOp(const OpRecord& record) {
  if (done_) return;
  const Tensor& output = record.output;
  const Inputs written_inputs = record.primitive->WrittenInputs(record.inputs);
  absl::InlinedVector<const Tensor*, 2> written(written_inputs.begin(),
                                                written_inputs.end());
  if (record.in_place) written.push_back(&output);
  for (const Tensor* x : written) writes_[x->storage()->id()] = LineOf(record);
  if (internal::no_grad_guards > 0) {
    if (record.view) known_[output.id()] = {-1, num_writes_, output.id()};
    return;
  }
  // Integers have no gradient.
  if (!IsFloatingPoint(output.dtype())) return;
  absl::InlinedVector<int, 2> values;
  bool differentiable = false;
  const Known target = record.in_place ? KnownOf(output) : Unknown(output);
  std::uint64_t family = target.family;
  for (const Tensor* input : record.inputs) {
    const Known known = KnownOf(*input);
    CheckRead(*input, known, record.primitive->name(), LineOf(record));
    values.push_back(known.value);
    differentiable = differentiable || known.value >= 0;
    if (record.view) family = known.family;
  }
  for (const Tensor* x : written) {
    const Known of_x = KnownOf(*x);
    if (IsWatched(of_x.value)) {
      Refuse(absl::StrFormat(
          "[%s_] an operation in place, requested at %s, writes to %s that is "
          "watched, known to the tape since %s: gradients would be wrong; make "
          "a new tensor (x = x + y, Where, Cat, Clone), or write under a "
          "NoGradGuard what needs no gradient",
          record.primitive->name(), LineOf(record).ToString(), x->Describe(),
          watched_at_.ToString()));
    }
    Writes& writes = families_[of_x.family];
    writes.any = ++num_writes_;
    if (differentiable) writes.differentiable = num_writes_;
    writes.at = LineOf(record);
  }
  if (differentiable) {
    Note(record, values, family);
  } else if (record.in_place || record.view) {
    known_[output.id()] = {-1, num_writes_, family};
  }
}

void GradientTape::Recorder::CheckRead(const Tensor& x, const Known& known,
                                       const char* reader, SourceLocation at) {
  if (num_writes_ == 0) return;
  const auto found = families_.find(known.family);
  if (found == families_.end()) return;
  const Writes& writes = found->second;
  // A constant stays one if only constants were written.
  if (known.since >= (known.value >= 0 ? writes.any : writes.differentiable)) {
    return;
  }
  Refuse(absl::StrFormat(
      "[%s] requested at %s, reads %s that shares memory with one that was "
      "written in place at %s: gradients would miss what was written; make the "
      "view of the written tensor after the write, or a new tensor there "
      "(x = x + y, Where, Cat, Clone), or read under a NoGradGuard what needs "
      "no gradient",
      reader, at.ToString(), x.Describe(), writes.at.ToString()));
}

Tensor GradientTape::Recorder::CopyBeforeWrite(
    const Primitive& primitive, absl::Span<const Tensor* const> inputs,
    std::size_t input, SourceLocation at) {
  if (done_ || internal::no_grad_guards > 0) return {};
  const GradientRule* const rule = FindGradientRule(primitive);
  Reads reads = 0;
  for (std::size_t i = 0; i < inputs.size() && rule != nullptr; ++i) {
    if (KnownOf(*inputs[i]).value < 0) continue;
    reads |= rule->reads(primitive, static_cast<int>(i));
  }
  const bool read = (reads & ReadsInput(static_cast<int>(input))) != 0;
  return read ? Clone(*inputs[input], at) : Tensor();
}

void GradientTape::Recorder::Note(const OpRecord& record,
                                  const absl::InlinedVector<int, 2>& values,
                                  std::uint64_t family) {
  const Tensor& output = record.output;
  auto node = std::make_unique<Node>(record.primitive->Clone(), LineOf(record));
  node->output = num_values_;
  node->input_values = values;
  AddValue(output, family);
  Reads reads = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor& input = *record.inputs[i];
    node->inputs.push_back({input.shape(), input.dtype(), input.device()});
    if (IsWatched(values[i])) {
      std::size_t& first = first_uses_[values[i]];
      first = std::min(first, nodes_.size());
    }
    if (!input.is_contiguous() && input.dim() >= 2 &&
        input.strides()[input.dim() - 2] == 1) {
      node->transposed |= ReadsInput(static_cast<int>(i));
    }
    if (values[i] >= 0 && node->rule != nullptr) {
      reads |= node->rule->reads(*node->primitive, static_cast<int>(i));
    }
  }
  for (int i = 0; i < static_cast<int>(values.size()) && i < kOutput; ++i) {
    if ((reads & ReadsInput(i)) == 0) continue;
    const Tensor& input = *record.inputs[i];
    node->saved.push_back({i, input.version(), input});
  }
  if ((reads & kReadsOutput) != 0) {
    node->saved.push_back({kOutput, output.version(), output});
  }
  nodes_.push_back(std::move(node));
}

void GradientTape::Recorder::Refuse(const std::string& what) {
  refused_ = what;
  throw std::logic_error(what);
}

int GradientTape::Recorder::CheckBackward(const Tensor& y,
                                          const Tensor& gradient,
                                          SourceLocation at) {
  CheckDefined("backward", y, at);
  CheckDefined("backward", gradient, at);
  if (done_) {
    throw std::logic_error(absl::StrFormat(
        "[backward] requested at %s, but %s at %s%s, and the tape has let go "
        "of its values; make a GradientTape for each loss",
        at.ToString(),
        given_ ? "the tape has given its gradients before,"
               : "it was called before,",
        gone_back_.ToString(), given_ ? "" : ", and failed"));
  }
  if (!refused_.empty()) {
    throw std::logic_error(absl::StrCat(refused_, " ([backward] requested at ",
                                        at.ToString(), ")"));
  }
  const Known last = KnownOf(y);
  CheckRead(y, last, "backward", at);
  if (last.value < 0) {
    throw std::invalid_argument(absl::StrFormat(
        "[backward] the loss, %s, does not depend on a tensor that the tape "
        "watches: make the tape, GradientTape tape(parameters), before the "
        "loss is computed, on the same thread; requested at %s",
        y.Describe(), at.ToString()));
  }
  if (gradient.shape() != y.shape() || gradient.dtype() != y.dtype() ||
      gradient.device() != y.device()) {
    throw std::invalid_argument(absl::StrFormat(
        "[backward] the gradient must be like what it is the gradient of; got "
        "%s for %s; requested at %s",
        gradient.Describe(), y.Describe(), at.ToString()));
  }
  return last.value;
}

void GradientTape::Recorder::Begin(const Tensor& y, const Tensor& gradient,
                                   SourceLocation at) {
  const int last = CheckBackward(y, gradient, at);
  done_ = true;
  gone_back_ = at;
  gradients_.resize(num_values_);
  gradients_[last] = gradient;
  taken_ = {gradient.storage()->id()};
  listed_.resize(watched_.size());
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    twice_ = twice_ || KnownOf(watched_[i]).value != static_cast<int>(i);
  }
}

std::optional<GradientTape::Gradient> GradientTape::Recorder::Next() {
  const RequestedBy by(gone_back_);
  const auto list = [this](int watched) {
    if (!listed_[watched]) ready_.push_back(watched);
    listed_[watched] = true;
  };
  while (ready_.empty() && !nodes_.empty()) {
    // The node's values are freed with it.
    const std::unique_ptr<Node> node = std::move(nodes_.back());
    nodes_.pop_back();
    const Tensor dy = std::move(gradients_[node->output]);
    if (dy.defined()) GoBack(*node, dy);
    for (const int value : node->input_values) {
      if (IsWatched(value) && first_uses_[value] == nodes_.size()) list(value);
    }
  }
  for (std::size_t i = 0; ready_.empty() && i < watched_.size(); ++i) {
    list(static_cast<int>(i));
  }
  given_ = ready_.empty();
  if (given_) return std::nullopt;
  const int watched = ready_.front();
  ready_.erase(ready_.begin());
  return Give(watched);
}

GradientTape::Gradient GradientTape::Recorder::Give(int watched) {
  const int value = known_.at(watched_[watched].id()).value;
  const Tensor sum = gradients_[value];
  if (!twice_) gradients_[value] = Tensor();
  if (!sum.defined())
    return {watched, ZerosLike(watched_[watched], gone_back_)};
  const Tensor dense = Contiguous(sum, gone_back_);
  const bool is_first = taken_.insert(dense.storage()->id()).second;
  return {watched, is_first ? dense : Clone(dense, gone_back_)};
}

void GradientTape::Recorder::GoBack(const Node& node, const Tensor& dy) {
  if (node.rule == nullptr) {
    throw std::logic_error(absl::StrFormat(
        "[backward] no gradient for %s, requested at %s; leave it out of the "
        "gradients with Detach, or add a rule to "
        "common/autograd/gradient_rules.cc ([backward] requested at %s)",
        node.primitive->name(), node.at.ToString(), gone_back_.ToString()));
  }
  CheckUnchanged(node);
  const ForwardOp op = {*node.primitive, node.at, node.inputs, node.saved,
                        node.transposed};
  Tensors all;
  if (node.rule->gradients != nullptr) {
    Reads wanted = 0;
    for (int i = 0; i < kOutput && i < static_cast<int>(node.inputs.size());
         ++i) {
      if (node.input_values[i] >= 0) wanted |= ReadsInput(i);
    }
    all = node.rule->gradients(op, wanted, dy);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.input_values[i] < 0) continue;
    const Tensor part =
        all.empty() ? node.rule->gradient(op, static_cast<int>(i), dy) : all[i];
    if (!part.defined()) continue;
    const Tensor dx = SumToShape(part, node.inputs[i].shape, node.at);
    Tensor& sum = gradients_[node.input_values[i]];
    // Not in place: several values may share this gradient.
    sum = sum.defined() ? Operand(sum, node.at) + dx : dx;
  }
}

void GradientTape::Recorder::CheckUnchanged(const Node& node) const {
  for (const SavedTensor& saved : node.saved) {
    if (saved.value.version() == saved.version) continue;
    const auto write = writes_.find(saved.value.storage()->id());
    throw std::logic_error(absl::StrFormat(
        "[backward] the gradient of %s, requested at %s, needs %s, %s, which "
        "was overwritten in place at %s; make a new tensor there, or copy it "
        "before, Clone(x) ([backward] requested at %s)",
        node.primitive->name(), node.at.ToString(),
        saved.which == kOutput ? "its result" : "an operand",
        saved.value.Describe(),
        (write == writes_.end() ? SourceLocation() : write->second).ToString(),
        gone_back_.ToString()));
  }
}

GradientTape::GradientTape(std::vector<Tensor> watched, SourceLocation at)
    : recorder_(std::make_unique<Recorder>(std::move(watched), at)) {}
GradientTape::~GradientTape() = default;

std::vector<Tensor> GradientTape::Backward(const Tensor& loss,
                                           SourceLocation at) {
  CheckDefined("backward", loss, at);
  if (loss.numel() != 1) {
    throw std::invalid_argument(absl::StrFormat(
        "[backward] a loss of one number wanted; got %s; reduce it, Sum(y) or "
        "Mean(y), or give its gradient: Backward(y, OnesLike(y)); requested "
        "at %s",
        loss.Describe(), at.ToString()));
  }
  return Backward(loss, OnesLike(loss, at), at);
}

std::vector<Tensor> GradientTape::Backward(const Tensor& y,
                                           const Tensor& gradient,
                                           SourceLocation at) {
  Begin(y, gradient, at);
  std::vector<Tensor> results(recorder_->num_watched());
  while (std::optional<Gradient> next = Next()) {
    results[next->watched] = std::move(next->value);
  }
  return results;
}

bool GradientTape::NeedsGradient(const Tensor& x) const {
  return x.defined() && recorder_->NeedsGradient(x);
}

void GradientTape::Begin(const Tensor& y, const Tensor& gradient,
                         SourceLocation at) {
  recorder_->Begin(y, gradient, at);
}

std::optional<GradientTape::Gradient> GradientTape::Next() {
  return recorder_->Next();
}

Tensor Detach(const Tensor& x, SourceLocation at) {
  CheckDefined("detach", x, at);
  const NoGradGuard guard;
  // Other listeners see a view: a tracer's program contains it.
  return Expand(x, x.shape(), at);
}

}  // namespace d2l
