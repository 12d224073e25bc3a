// Runs a program that was saved as my_mlp.safetensors, without the code that
// made it.
//
//   bazel run //tools:run_program -- my_mlp --print_program
//   bazel run //tools:run_program -- my_mlp --input=x.safetensors
//       --output=y.safetensors
//
// The tensors of --input have the names of the program's arguments. Those of
// --output are output_0, output_1, ….

#include <cstdint>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "common/base/console/command_line.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/device/device_table.h"
#include "common/graph/captured.h"
#include "common/graph/ir.h"
#include "common/graph/saved/saved.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"
#include "common/tensor/dtype.h"

ABSL_FLAG(std::string, input, "",
          "A safetensors file with the arguments. Default: random numbers.");
ABSL_FLAG(std::uint64_t, seed, 0, "Of the random numbers.");
ABSL_FLAG(std::string, output, "",
          "The safetensors file to save the results in.");
ABSL_FLAG(bool, print_program, false, "Prints the program before it runs.");

namespace d2l {
namespace {

struct Argument {
  std::string name;
  Tensor type;
};

// Values without a name are numbered, as in the text.
std::vector<Argument> ArgumentsOf(const ir::Function& function) {
  std::vector<Argument> arguments;
  int next = 0;
  for (const ir::ValueId value : function.arguments) {
    const std::string& name = function.values[value].name;
    arguments.push_back(
        {name.empty() ? absl::StrCat(next++) : name, function.type(value)});
  }
  return arguments;
}

Tensor RandomValues(const Tensor& type) {
  if (!IsFloatingPoint(type.dtype())) {
    return RandInt(0, 2, type.shape(), type.device(), type.dtype());
  }
  return Randn(type.shape(), type.device(), type.dtype());
}

// Throws std::invalid_argument.
Tensor Given(const safetensors::File& file, const std::string& path,
             const Argument& argument) {
  const auto found = file.tensors.find(argument.name);
  const std::string wanted =
      absl::StrFormat("The program takes %s: %s.", argument.name,
                      ir::TypeToString(argument.type));
  if (found == file.tensors.end()) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : file.tensors) names.push_back(name);
    throw std::invalid_argument(absl::StrFormat(
        "%s has no tensor \"%s\"; it has %s. %s", path, argument.name,
        names.empty() ? "none" : QuotedTexts(names), wanted));
  }
  const Tensor& tensor = found->second;
  if (tensor.shape() != argument.type.shape() ||
      tensor.dtype() != argument.type.dtype()) {
    throw std::invalid_argument(
        absl::StrFormat("in %s, \"%s\" is %s. %s", path, argument.name,
                        ir::TypeToString(tensor), wanted));
  }
  return tensor;
}

// Messages contain text of files, which may be untrusted: makes it printable.
int Complain(absl::string_view what) {
  std::cerr << "Error: " << CutText(PrintableText(what), 2000) << "\n";
  return 1;
}

absl::Status Run(const std::string& prefix) {
  const std::string input = UserPath(absl::GetFlag(FLAGS_input));
  const std::string output = UserPath(absl::GetFlag(FLAGS_output));
  const absl::Status written =
      CheckNotRead({"output", absl::GetFlag(FLAGS_output), nullptr},
                   {UserPath(prefix) + ".safetensors", input});
  if (!written.ok()) return written;
  const absl::StatusOr<ir::Graph> graph =
      ir::LoadProgram(UserPath(prefix), TryGpu());
  if (!graph.ok()) return graph.status();
  if (absl::GetFlag(FLAGS_print_program)) std::cout << ir::ToText(*graph);

  safetensors::File file;
  if (!input.empty()) {
    absl::StatusOr<safetensors::File> loaded =
        safetensors::LoadFile(input, TryGpu());
    if (!loaded.ok()) return loaded.status();
    file = *std::move(loaded);
  }
  ManualSeed(absl::GetFlag(FLAGS_seed));
  std::vector<Tensor> arguments;
  for (const Argument& argument : ArgumentsOf(graph->main())) {
    const Tensor values = input.empty() ? RandomValues(argument.type)
                                        : Given(file, input, argument);
    arguments.push_back(ir::WithStrides(values, argument.type));
  }
  const std::vector<Tensor> results = ir::Captured(*graph).Run(arguments);
  safetensors::NamedTensors named;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string name = absl::StrCat("output_", i);
    std::cout << name << " = " << results[i] << "\n";
    named[name] = results[i];
  }
  return output.empty() ? absl::OkStatus()
                        : safetensors::SaveFile(named, output);
}

}  // namespace
}  // namespace d2l

int main(int argc, char** argv) {
  d2l::CheckStdoutAtExit();
  absl::SetProgramUsageMessage(
      "runs a saved program: bazel run //tools:run_program -- my_mlp\n"
      "[--input=x.safetensors] [--seed=1] [--output=y.safetensors] "
      "[--print_program]");
  const absl::Status named = d2l::CheckFlagNames(
      argc, argv, {"input", "seed", "output", "print_program"});
  if (!named.ok()) return d2l::Complain(named.message());
  const std::vector<char*> words = absl::ParseCommandLine(argc, argv);
  if (words.size() != 2) {
    std::cerr << "Error: name one program, without .safetensors:\n  "
                 "bazel run //tools:run_program -- my_mlp\n";
    return 1;
  }
  try {
    const absl::Status status = d2l::Run(words[1]);
    return status.ok() ? 0 : d2l::Complain(status.message());
  } catch (const std::exception& error) {
    return d2l::Complain(error.what());
  }
}
