// State dicts: the parameters and buffers of a network by name, as PyTorch
// names them, in memory and in files that PyTorch reads and writes as well
// (safetensors.torch.save_file, load_file).
//
//   absl::Status saved = nn::SaveStateDict(net, "net.safetensors");
//   auto keys = nn::LoadStateDict(net, "net.safetensors");
//   if (!keys.ok()) std::cerr << keys.status().message() << "\n";
//
// Loading writes into the memory that is there, so that other handles to the
// parameters, such as an optimiser's, stay valid; numbers are converted to the
// dtype that is there, and moved to the device. Names and shapes are compared
// first: if an error is returned for them, nothing was written. A parameter
// that refuses to be used, since what computed it failed, may be used again.
//
// Errors: InvalidArgument with PyTorch's message for names that are missing or
// unexpected and for shapes, and if nothing at all would be loaded; as of
// common/safetensors for files. DataLoss if the file could be opened and not be
// read to its end: only then some of the network is overwritten. Thread-safety:
// none.

#ifndef D2L_COMMON_NN_STATE_DICT_H_
#define D2L_COMMON_NN_STATE_DICT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/nn/module.h"
#include "common/safetensors/safetensors.h"

namespace d2l::nn {

// Handles to the parameters and buffers (torch.nn.Module.state_dict).
safetensors::NamedTensors StateDict(const Module& module);

// What the module has and the state has not, and the reverse.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;
  std::vector<std::string> unexpected_keys;
};

// With strict there are none: they are an error.
absl::StatusOr<IncompatibleKeys> LoadStateDict(
    Module& module, const safetensors::NamedTensors& state, bool strict = true);
absl::StatusOr<IncompatibleKeys> LoadStateDict(Module& module,
                                               const std::string& path,
                                               bool strict = true);

// Replaces the file atomically.
absl::Status SaveStateDict(const Module& module, const std::string& path,
                           const safetensors::Metadata& metadata = {});

// The same tensors, without the prefix where a name begins with it: of
// DataParallel's "module.", for example
// (torch.nn.modules.utils.consume_prefix_in_state_dict_if_present).
safetensors::NamedTensors ConsumePrefix(const safetensors::NamedTensors& state,
                                        absl::string_view prefix);

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_STATE_DICT_H_
