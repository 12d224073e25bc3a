// Hybridize: a module that is traced when it is called, and then runs as a
// compiled program.
//
//   nn::Hybrid net = nn::Hybridize(
//       nn::Sequential(nn::Linear(20, 256), nn::ReLU(), nn::Linear(256, 10)));
//   Tensor x = Randn({2, 20});
//   Tensor y = net(x);         // runs as usual, and is written down
//   y = net(x);                // the compiled program
//   y = net(Randn({3, 20}));   // another shape: another program
//   std::cout << net.Report().ToString();
//   std::cout << ir::ToText(net.graph());
//   absl::Status saved = net.Save("my_mlp");
//
// A call's key is the input's shape, dtype, strides and device, the identity of
// the parameters and buffers, and which modules are in training mode. The first
// call with a key runs Forward under ir::Trace, then ir::Optimize, and makes an
// ir::Captured; later calls run that, bit for bit as Forward would, except for
// the sign and payload of a NaN. A parameter that is written in place is read
// with its current values; a parameter that is replaced needs another program.
//
// Only operations on tensors are in a program. Other effects of Forward happen
// only while it is traced: a print, a counter, an `if` on a flag of the host's,
// whose decision then stays. A tensor that is not a parameter is read with its
// current values, too, but replacing it has no effect. Forward may branch on
// the input's shape: it is in the key.
//
// Forward runs as usual in calls with a new key when there are kMaxPrograms
// programs already (standard error says so, once), and while the thread has an
// OpListener, such as the trace of a module around this one.
//
// Errors: as of ir::Trace (reading a value in Forward throws std::logic_error)
// and of Forward; then there is no program, and the next call tries again.
// Thread-safety: several threads may make calls if they may call the module;
// one thread traces at a time, and no key is traced twice. Ownership: it owns
// the module. Programs keep their parameters' memory.

#ifndef D2L_COMMON_NN_HYBRID_H_
#define D2L_COMMON_NN_HYBRID_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/passes/passes.h"
#include "common/nn/module.h"
#include "common/tensor/tensor.h"

namespace d2l::nn {

// Options of the programs, such as generate_cpp.
using HybridOptions = ir::CapturedOptions;

struct HybridReport {
  struct Program {
    std::string input;         // "float32[1, 20]"
    std::string why;           // why it was traced
    std::int64_t calls = 0;    // including the traced one
    double trace_seconds = 0;  // of Forward, which also enqueued its work
    std::vector<ir::PassReport> passes;
    // The time of making the executor and of its first run; on a GPU, which
    // captures in a later run (captured.h), without the capture.
    double prepare_seconds = 0;
    double generate_seconds = 0;  // of C++ and its compiler
    std::string not_captured;     // as of ir::Captured
    std::string not_generated;    // likewise; "" without generate_cpp

    // The sum of all these times, and the passes'.
    double SecondsToCompile() const;
  };

  std::string name;  // of the module
  std::int64_t eager_calls = 0;
  std::vector<Program> programs;  // in the order of tracing

  std::int64_t calls() const;
  std::string ToString() const;
};

// A Hybrid prints, and names its parameters, like the module that it owns.
class Hybrid : public Module {
 public:
  static constexpr int kMaxPrograms = 8;

  explicit Hybrid(std::unique_ptr<Module> module,
                  const HybridOptions& options = {});
  ~Hybrid() override;
  Hybrid(Hybrid&&) noexcept;
  Hybrid& operator=(Hybrid&&) noexcept;

  Tensor Forward(const Tensor& x) override;
  std::string Name() const override;
  std::string ExtraRepr() const override;
  void Members(MemberVisitor& visitor) override;
  using Module::Train;
  void Train(bool mode) override;
  // The new module has no programs.
  std::unique_ptr<Module> New() const override;

  Module& module();
  HybridReport Report() const;

  // These throw std::logic_error before the first call. They return the last
  // traced program, after the passes and before; references stay valid.
  const ir::Graph& graph() const;
  const ir::Graph& traced() const;
  // The Captured that runs graph(); it has the generated C++, for example.
  const ir::Captured& captured() const;
  // Writes graph(), with the parameters' values, as PREFIX.safetensors, which
  // runs without the module's code. Errors: as of ir::SaveProgram
  // (common/graph/saved).
  absl::Status Save(const std::string& prefix) const;

 private:
  class Programs;
  std::unique_ptr<Programs> programs_;
};

template <typename M>
Hybrid Hybridize(M module, const HybridOptions& options = {}) {
  return Hybrid(std::make_unique<M>(std::move(module)), options);
}

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_HYBRID_H_
