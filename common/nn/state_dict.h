// State dicts: the parameters and buffers of a network by name, as PyTorch
// names them, in memory and in files that PyTorch reads and writes as well
// (safetensors.torch.save_file, load_file).
//
//   absl::Status saved = nn::SaveStateDict(net, "net.safetensors");
//   auto keys = nn::LoadStateDict(net, "net.safetensors");
//   if (!keys.ok()) std::cerr << keys.status().message() << "\n";
//
// Loading writes into the existing memory, so that other handles to the
// parameters, such as an optimiser's, stay valid; numbers are converted to the
// parameters' dtypes, and moved to their devices. Names and shapes are compared
// first: an error about them means that nothing was written. Loading also makes
// a parameter usable again whose computation had failed.
//
// Errors: InvalidArgument with PyTorch's message for names that are missing or
// unexpected and for shapes, and if nothing at all would be loaded; as of
// common/safetensors for files. DataLoss if the file could be opened but not
// read to its end: only then a part of the network is overwritten.
// Thread-safety: none.

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

// The names that only the module has, and those that only the state has.
struct IncompatibleKeys {
  std::vector<std::string> missing_keys;
  std::vector<std::string> unexpected_keys;
};

// With `strict` both lists are empty: other names are an error.
absl::StatusOr<IncompatibleKeys> LoadStateDict(
    Module& module, const safetensors::NamedTensors& state, bool strict = true);
absl::StatusOr<IncompatibleKeys> LoadStateDict(Module& module,
                                               const std::string& path,
                                               bool strict = true);

// Replaces the file atomically.
absl::Status SaveStateDict(const Module& module, const std::string& path,
                           const safetensors::Metadata& metadata = {});

// The tensors of `state`; names that begin with the prefix lose it, for example
// DataParallel's "module."
// (torch.nn.modules.utils.consume_prefix_in_state_dict_if_present).
safetensors::NamedTensors ConsumePrefix(const safetensors::NamedTensors& state,
                                        absl::string_view prefix);

}  // namespace d2l::nn

#endif  // D2L_COMMON_NN_STATE_DICT_H_
