#include "common/nn/hybrid.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/mutex.h"
#include "common/base/timer.h"
#include "common/graph/saved/saved.h"
#include "common/graph/trace.h"
#include "common/ops/primitive/record.h"

namespace d2l::nn {
namespace {

// The state that a program depends on: the identity of the parameters and
// buffers, and which modules are in training mode. Each call visits the module,
// to see every change of its owner; this takes about a nanosecond a member.
class State : public MemberVisitor {
 public:
  explicit State(Module& module) {
    training.push_back(module.training());
    module.Members(*this);
  }
  void Parameter(std::string_view, Tensor& parameter) override {
    ids.push_back(parameter.id());
  }
  void Buffer(std::string_view, Tensor& buffer) override {
    ids.push_back(buffer.id());
  }
  void Child(std::string_view, Module& child) override {
    training.push_back(child.training());
    child.Members(*this);
  }

  bool operator==(const State& other) const {
    return ids == other.ids && training == other.training;
  }

  absl::InlinedVector<std::uint64_t, 16> ids;
  absl::InlinedVector<bool, 32> training;
};

struct Program {
  Program(const Tensor& x, State its_state, ir::Graph traced_graph,
          ir::Graph optimized, const HybridOptions& options)
      : input(ir::TypeOf(x)),
        state(std::move(its_state)),
        traced(std::move(traced_graph)),
        captured(std::move(optimized), options) {}

  bool IsFor(const Tensor& x, const State& now) const {
    return ir::SameType(x, input) && state == now;
  }

  Tensor Run(const Tensor& x) {
    // The first run makes the program's tasks, which is measured.
    if (calls.fetch_add(1, std::memory_order_relaxed) == 1) {
      const Timer timer;
      Tensor y = RunCaptured(x);
      first_run_seconds.store(timer.Seconds(), std::memory_order_relaxed);
      return y;
    }
    return RunCaptured(x);
  }

  Tensor RunCaptured(const Tensor& x) {
    return std::move(
        captured.Run({&x, 1}, internal::op_context.requested_by).front());
  }

  const Tensor input;  // a type
  const State state;
  std::vector<std::pair<std::string, Tensor>> parameters;  // and buffers
  const ir::Graph traced;
  ir::Captured captured;
  HybridReport::Program report;  // except the counters below
  std::atomic<std::int64_t> calls{1};
  std::atomic<double> first_run_seconds{0};
};

// The parts of x's key that differ from the program's.
std::string Difference(
    const Program& program, const Tensor& x, const State& state,
    const std::vector<std::pair<std::string, Tensor>>& parameters) {
  std::vector<std::string> guards;
  const auto compare = [&](const char* what, const std::string& before,
                           const std::string& now) {
    if (before == now) return false;
    guards.push_back(
        absl::StrFormat("the input had %s %s and has %s", what, before, now));
    return true;
  };
  const Tensor& input = program.input;
  // Another shape implies other strides.
  if (!compare("shape", input.shape().ToString(), x.shape().ToString())) {
    compare("strides", input.strides().ToString(), x.strides().ToString());
  }
  compare("dtype", DTypeName(input.dtype()), DTypeName(x.dtype()));
  compare("device", input.device().ToString(), x.device().ToString());
  if (program.parameters.size() != parameters.size()) {
    guards.push_back(absl::StrFormat("it had %d parameters and has %d",
                                     program.parameters.size(),
                                     parameters.size()));
    return absl::StrJoin(guards, "; ");
  }
  if (program.state.training != state.training) {
    guards.push_back("other modules are being trained (Train, Eval)");
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor& before = program.parameters[i].second;
    const Tensor& now = parameters[i].second;
    if (before.id() == now.id()) continue;
    guards.push_back(absl::StrFormat(
        "the parameter \"%s\" was %s and is another tensor, %s",
        parameters[i].first, ir::TypeToString(before), ir::TypeToString(now)));
  }
  return absl::StrJoin(guards, "; ");
}

}  // namespace

class Hybrid::Programs {
 public:
  Programs(std::unique_ptr<Module> its_module, const HybridOptions& options)
      : module(std::move(its_module)), options(options) {}

  Tensor Call(const Tensor& x) {
    const State state(*module);
    if (Program* const program = Find(x, state)) return program->Run(x);
    // An outer trace would not know the values of an inner program.
    if (internal::op_context.listeners != nullptr) return RunEagerly(x);
    return TraceUnlessThere(x, state);
  }

  const Program& Last() const {
    const int count = count_.load(std::memory_order_acquire);
    if (count > 0) return *all_[count - 1];
    throw std::logic_error(absl::StrFormat(
        "[Hybridize] %s has no program yet; call it once with an input, so "
        "that there is one",
        module->Name()));
  }

  HybridReport Report() const {
    HybridReport report;
    report.name = module->Name();
    report.eager_calls = eager_calls_.load(std::memory_order_relaxed);
    const int count = count_.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i) {
      HybridReport::Program program = all_[i]->report;
      program.calls = all_[i]->calls.load(std::memory_order_relaxed);
      program.prepare_seconds +=
          all_[i]->first_run_seconds.load(std::memory_order_relaxed);
      // The reason is known only after a run on CUDA.
      program.not_captured = all_[i]->captured.not_captured();
      report.programs.push_back(std::move(program));
    }
    return report;
  }

  const std::unique_ptr<Module> module;
  const HybridOptions options;

 private:
  // Null if there is none. Needs no lock: programs are only ever added.
  Program* Find(const Tensor& x, const State& state) {
    const int used = used_.load(std::memory_order_acquire);
    const int count = count_.load(std::memory_order_acquire);  // > used
    for (int i = 0; i < count; ++i) {
      const int k = i == 0 ? used : i <= used ? i - 1 : i;
      if (!all_[k]->IsFor(x, state)) continue;
      if (k != used) used_.store(k, std::memory_order_release);
      return all_[k].get();
    }
    return nullptr;
  }

  Tensor RunEagerly(const Tensor& x) {
    eager_calls_.fetch_add(1, std::memory_order_relaxed);
    return module->Forward(x);
  }

  void SayThatItIsFull(const Tensor& x) {
    if (said_.exchange(true)) return;
    std::cerr << "[Hybridize] " << module->Name() << " has " << kMaxPrograms
              << " programs, and none for " << x.Describe()
              << "; calls that need another one run as they are, not compiled. "
                 "Use fewer shapes, write to parameters in place instead of "
                 "replacing them, or see Report() for why it was traced.\n";
  }

  Tensor TraceUnlessThere(const Tensor& x, const State& state) {
    if (count_.load(std::memory_order_acquire) == kMaxPrograms) {
      SayThatItIsFull(x);
      return RunEagerly(x);
    }
    MutexLock lock(mutex_);
    if (Program* const program = Find(x, state)) return program->Run(x);
    const int count = count_.load(std::memory_order_relaxed);
    if (count == kMaxPrograms) return RunEagerly(x);
    HybridReport::Program report;
    ir::TraceOptions trace_options;
    trace_options.name = module->Name();
    trace_options.weights = NamedState(*module);
    std::vector<Tensor> results;
    trace_options.results = &results;
    const Timer trace_timer;
    ir::Graph traced = ir::Trace(
        [&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
          return {module->Forward(in[0])};
        },
        {x}, trace_options, internal::op_context.requested_by);
    report.trace_seconds = trace_timer.Seconds();
    ir::Graph optimized = traced;
    report.passes = ir::Optimize(optimized);
    const Timer prepare_timer;
    auto program = std::make_unique<Program>(x, state, std::move(traced),
                                             std::move(optimized), options);
    const ir::Captured& captured = program->captured;
    report.generate_seconds = captured.compile_seconds();
    report.prepare_seconds = prepare_timer.Seconds() - report.generate_seconds;
    if (options.generate_cpp) report.not_generated = captured.not_generated();
    report.input = ir::TypeToString(program->input);
    report.why = count == 0
                     ? "it is the first"
                     : Difference(*all_[used_.load(std::memory_order_relaxed)],
                                  x, state, trace_options.weights);
    program->parameters = std::move(trace_options.weights);
    program->report = std::move(report);
    all_[count] = std::move(program);
    count_.store(count + 1, std::memory_order_release);
    used_.store(count, std::memory_order_release);
    return std::move(results.front());
  }

  Mutex mutex_;  // held while tracing, and to add a program
  std::array<std::unique_ptr<Program>, kMaxPrograms> all_;
  std::atomic<int> count_{0};  // programs that may be used
  std::atomic<int> used_{0};   // the last one used
  std::atomic<std::int64_t> eager_calls_{0};
  std::atomic<bool> said_{false};
};

double HybridReport::Program::SecondsToCompile() const {
  double seconds = trace_seconds + prepare_seconds + generate_seconds;
  for (const ir::PassReport& pass : passes) seconds += pass.seconds;
  return seconds;
}

std::int64_t HybridReport::calls() const {
  std::int64_t calls = eager_calls;
  for (const Program& program : programs) calls += program.calls;
  return calls;
}

std::string HybridReport::ToString() const {
  std::string text =
      absl::StrFormat("%s: %d calls, %d of them not compiled; %d programs\n",
                      name, calls(), eager_calls, programs.size());
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Program& program = programs[i];
    absl::StrAppendFormat(
        &text,
        "program %d for %s: %d calls; traced because %s\n"
        "  %.3f ms: trace %.3f, executor and its first run %.3f, C++ %.3f, "
        "passes:\n",
        i + 1, program.input, program.calls, program.why,
        1e3 * program.SecondsToCompile(), 1e3 * program.trace_seconds,
        1e3 * program.prepare_seconds, 1e3 * program.generate_seconds);
    for (const ir::PassReport& pass : program.passes) {
      absl::StrAppend(&text, "    ", pass.ToString(), "\n");
    }
    if (!program.not_captured.empty()) {
      absl::StrAppend(
          &text, "  the interpreter runs it: ", program.not_captured, "\n");
    }
    if (!program.not_generated.empty()) {
      absl::StrAppend(&text, "  no C++: ", program.not_generated, "\n");
    }
  }
  return text;
}

Hybrid::Hybrid(std::unique_ptr<Module> module, const HybridOptions& options)
    : programs_(std::make_unique<Programs>(std::move(module), options)) {}
Hybrid::~Hybrid() = default;
Hybrid::Hybrid(Hybrid&&) noexcept = default;
Hybrid& Hybrid::operator=(Hybrid&&) noexcept = default;

Tensor Hybrid::Forward(const Tensor& x) { return programs_->Call(x); }

std::string Hybrid::Name() const { return programs_->module->Name(); }

std::string Hybrid::ExtraRepr() const { return programs_->module->ExtraRepr(); }

void Hybrid::Members(MemberVisitor& visitor) {
  programs_->module->Members(visitor);
}

void Hybrid::Train(bool mode) {
  Module::Train(mode);
  programs_->module->Train(mode);
}

std::unique_ptr<Module> Hybrid::New() const {
  return std::make_unique<Hybrid>(programs_->module->New(), programs_->options);
}

Module& Hybrid::module() { return *programs_->module; }

HybridReport Hybrid::Report() const { return programs_->Report(); }

const ir::Graph& Hybrid::graph() const { return captured().graph(); }

const ir::Graph& Hybrid::traced() const { return programs_->Last().traced; }

const ir::Captured& Hybrid::captured() const {
  return programs_->Last().captured;
}

absl::Status Hybrid::Save(const std::string& prefix) const {
  return ir::SaveProgram(graph(), prefix);
}

}  // namespace d2l::nn
