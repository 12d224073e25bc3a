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
// A call's key is the input's shape, dtype, strides and device, which tensors
// the parameters and buffers are, and which modules are being trained. The
// first call with a key runs Forward under ir::Trace, then ir::Optimize, and
// makes an ir::Captured; later ones run that, bit for bit as Forward would. A
// parameter that is written in place is read as it then is; one that is
// replaced means another program.
//
// Only operations on tensors are in a program. What else Forward does happens
// while it is traced, and not again: a print, a counter, an `if` on a flag of
// the host's, which stays as it was decided then. A tensor that is not a
// parameter is read as it then is, too, but that it was replaced is not seen.
// Forward may branch on the input's shape: it is in the key.
//
// Forward runs as usual in calls with a new key when there are kMaxPrograms
// programs already (standard error says so, once), and while an OpListener of
// the thread is present, such as the trace of a module around this one.
//
// Errors: as of ir::Trace (reading a value in Forward throws std::logic_error)
// and of Forward; then there is no program, and the next call tries again.
// Thread-safety: calls may be made on several threads, as far as the module's
// own; one thread traces at a time, and what it has traced is not traced again.
// Ownership: it owns the module. Programs keep their parameters' memory.

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

// For the programs: generate_cpp and how.
using HybridOptions = ir::CapturedOptions;

struct HybridReport {
  struct Program {
    std::string input;         // "float32[1, 20]"
    std::string why;           // it was traced
    std::int64_t calls = 0;    // the traced one included
    double trace_seconds = 0;  // of Forward, which also enqueued its work
    std::vector<ir::PassReport> passes;
    // Of the executor and its first run; on a GPU, which records in a later run
    // (captured.h), without the recording.
    double prepare_seconds = 0;
    double generate_seconds = 0;  // of C++ and its compiler
    std::string not_captured;     // as of ir::Captured
    std::string not_generated;    // likewise; "" if it was not asked for

    // All of these, and the passes.
    double SecondsToCompile() const;
  };

  std::string name;  // of the module
  std::int64_t eager_calls = 0;
  std::vector<Program> programs;  // in the order in which they were traced

  std::int64_t calls() const;
  std::string ToString() const;
};

// It prints, and names its parameters, as the module that it owns.
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
  // Without the programs.
  std::unique_ptr<Module> New() const override;

  Module& module();
  HybridReport Report() const;

  // These throw std::logic_error before the first call. The program that was
  // traced last, after the passes and before; they stay where they are.
  const ir::Graph& graph() const;
  const ir::Graph& traced() const;
  // What runs graph(); its C++, for example.
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
