#include "common/graph/artefact/artefact.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/files/atomic_file.h"
#include "common/base/machine.h"
#include "common/device/failure.h"
#include "common/graph/ir_text.h"
#include "common/graph/passes/memory_plan.h"
#include "common/graph/passes/passes.h"
#include "common/ops/ops.h"
#include "common/safetensors/safetensors.h"

namespace d2l::ir {
namespace {

constexpr std::int64_t kMaxHeaderBytes = 1'000'000;
// Of the text. Programs have constants, but weights are elsewhere.
constexpr std::uintmax_t kMaxTextBytes = std::uintmax_t{256} << 20;

std::string TextPath(const std::string& prefix) { return prefix + ".program"; }
std::string WeightsPath(const std::string& prefix) {
  return prefix + ".safetensors";
}

// The weights that nodes refer to.
std::vector<const Weight*> UsedWeights(const Graph& graph) {
  std::set<int> used;
  for (const Function& function : graph.functions) {
    for (const Node& node : function.nodes) {
      if (node.kind == NodeKind::kWeight) used.insert(node.index);
    }
  }
  std::vector<const Weight*> weights;
  for (const int index : used) weights.push_back(&graph.weights[index]);
  return weights;
}

bool ShareMemory(const std::vector<const Weight*>& weights) {
  std::set<const Storage*> memories;
  return !std::all_of(
      weights.begin(), weights.end(), [&](const Weight* weight) {
        return memories.insert(&*weight->tensor.storage()).second;
      });
}

bool WritesExternal(const Graph& graph) {
  return std::any_of(graph.functions.begin(), graph.functions.end(),
                     [](const Function& function) {
                       return Storages(function).writes_external;
                     });
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || access(path.c_str(), R_OK) != 0) {
    return absl::NotFoundError(absl::StrFormat(
        "cannot read %s: %s. Name what the program was saved as, without "
        ".program.",
        path, error ? error.message() : std::strerror(errno)));
  }
  if (size > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has %d bytes; a program has at most %d", path, size,
                        kMaxTextBytes));
  }
  return ReadFile(path);
}

absl::Status WithFile(const absl::Status& status, const std::string& path) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

// Throws std::invalid_argument.
void BindWeights(safetensors::NamedTensors tensors, Graph& graph) {
  for (Weight& weight : graph.weights) {
    const auto found = tensors.find(weight.name);
    if (found == tensors.end()) {
      throw std::invalid_argument(
          absl::StrFormat("it has no weight \"%s\"", weight.name));
    }
    const Tensor& values = found->second;
    if (values.shape() != weight.type.shape() ||
        values.dtype() != weight.type.dtype()) {
      throw std::invalid_argument(absl::StrFormat(
          "the weight \"%s\" is %s; the program wants %s", weight.name,
          TypeToString(values), TypeToString(weight.type)));
    }
    weight.tensor = WithStrides(values, weight.type);
  }
}

// Whether it can be run: Captured puts all calls in place, in one arena.
absl::Status CheckSize(const Graph& graph, Device device) {
  try {
    Graph inlined = graph;
    Inline(inlined);
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(error.what());
  }
  const std::int64_t bytes = PeakBytes(graph);
  if (device.type() == DeviceType::kCpu && bytes > FreeHostMemory(0)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("its values need %d bytes at once; %d are free", bytes,
                        FreeHostMemory(0)));
  }
  return absl::OkStatus();
}

}  // namespace

Tensor WithStrides(const Tensor& values, const Tensor& type) {
  if (type.is_contiguous() || type.numel() == 0) return values;
  std::int64_t span = 1;
  Tensor source = values;
  for (int i = 0; i < type.dim(); ++i) {
    span += (type.size(i) - 1) * type.strides()[i];
    // Written once; the others are this one.
    if (type.strides()[i] == 0) source = Slice(source, i, 0, 1);
  }
  const Tensor memory = Empty({span}, values.device(), values.dtype());
  CopyTo(source, Tensor::View(memory, 0, source.shape(), type.strides()));
  return Tensor::View(memory, 0, type.shape(), type.strides());
}

absl::Status SaveProgram(const Graph& graph, const std::string& prefix) {
  CheckValid(graph);
  const std::vector<const Weight*> weights = UsedWeights(graph);
  safetensors::NamedTensors tensors;
  for (const Weight* weight : weights) {
    if (!weight->tensor.defined()) {
      throw std::invalid_argument(absl::StrFormat(
          "the weight \"%s\" is not bound; call Bind first", weight->name));
    }
    tensors[weight->name] = weight->tensor;
  }
  if (WritesExternal(graph) && ShareMemory(weights)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s writes to weights that share memory, which files do not describe: "
        "make them one weight",
        graph.main().name));
  }
  Graph program = graph;
  program.weights_sha256 = "0";
  ToText(program);  // throws before anything is written
  absl::StatusOr<AtomicFile> weights_file =
      AtomicFile::Open(WeightsPath(prefix));
  if (!weights_file.ok()) return weights_file.status();
  absl::StatusOr<AtomicFile> text_file = AtomicFile::Open(TextPath(prefix));
  if (!text_file.ok()) return text_file.status();
  const absl::Status written = safetensors::Write(
      tensors, *weights_file, {}, kMaxHeaderBytes, &program.weights_sha256);
  if (!written.ok()) return written;
  if (!text_file->Write(ToText(program))) return text_file->Commit();
  if (absl::Status s = weights_file->Commit(); !s.ok()) return s;
  return text_file->Commit();
}

absl::StatusOr<Graph> LoadProgram(const std::string& prefix, Device device) {
  const std::string path = TextPath(prefix);
  const absl::StatusOr<std::string> text = ReadText(path);
  if (!text.ok()) return text.status();
  absl::StatusOr<Graph> graph = ParseText(*text, device);
  if (!graph.ok()) return WithFile(graph.status(), path);
  if (absl::Status s = CheckSize(*graph, device); !s.ok()) {
    return WithFile(s, path);
  }
  const std::string weights_path = WeightsPath(prefix);
  std::string sha256;
  absl::StatusOr<safetensors::File> weights =
      safetensors::LoadFile(weights_path, device, kMaxHeaderBytes, &sha256);
  if (!weights.ok()) return weights.status();
  if (graph->weights_sha256.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s names no SHA-256 of its weights; was it written by SaveProgram?",
        path));
  }
  if (sha256 != graph->weights_sha256) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s are not the weights that %s was saved with: their SHA-256 is %s, "
        "not %s. Copy both files again, or save the program again.",
        weights_path, path, sha256, graph->weights_sha256));
  }
  graph->weights_sha256.clear();
  try {
    BindWeights(std::move(weights->tensors), *graph);
  } catch (const std::invalid_argument& error) {
    return absl::InvalidArgumentError(
        absl::StrCat(weights_path, ": ", error.what()));
  } catch (const OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat(weights_path, ": ", error.what()));
  }
  return graph;
}

}  // namespace d2l::ir
