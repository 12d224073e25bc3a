#include "common/graph/saved/saved.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/machine.h"
#include "common/graph/passes/passes.h"
#include "common/ops/ops.h"

namespace d2l::ir {
namespace {

constexpr const char* kProgram = "d2l.program";  // in the metadata

std::string PathOf(const std::string& prefix) {
  return prefix + ".safetensors";
}

bool WritesExternal(const Graph& graph) {
  return std::any_of(graph.functions.begin(), graph.functions.end(),
                     [](const Function& function) {
                       return Storages(function).writes_external;
                     });
}

bool ShareMemory(const safetensors::NamedTensors& tensors) {
  std::set<const Storage*> memories;
  return !std::all_of(tensors.begin(), tensors.end(), [&](const auto& named) {
    return memories.insert(&*named.second.storage()).second;
  });
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
  safetensors::NamedTensors tensors;
  const std::string json = ProgramToJson(graph, tensors);
  if (WritesExternal(graph) && ShareMemory(tensors)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s writes to weights that share memory, which files do not describe: "
        "make them one weight",
        graph.main().name));
  }
  return safetensors::SaveFile(tensors, PathOf(prefix), {{kProgram, json}});
}

absl::StatusOr<Graph> LoadProgram(const std::string& prefix, Device device) {
  const std::string path = PathOf(prefix);
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    return absl::NotFoundError(absl::StrFormat(
        "cannot read %s: No such file or directory. Name what the program was "
        "saved as, without .safetensors.",
        path));
  }
  const absl::StatusOr<safetensors::File> file =
      safetensors::LoadFile(path, device);
  if (!file.ok()) return file.status();
  const auto json = file->metadata.find(kProgram);
  if (json == file->metadata.end()) {
    const std::string old = prefix + ".program";
    return absl::InvalidArgumentError(
        std::filesystem::exists(old, none)
            ? absl::StrFormat(
                  "%s holds the weights of a program in the format of two "
                  "files, with %s; this library reads one file. Save it again: "
                  "net.Save(\"%s\").",
                  path, old, std::filesystem::path(prefix).filename().string())
            : absl::StrFormat("%s holds tensors, and no program. Save one: "
                              "net.Save(\"my_mlp\").",
                              path));
  }
  absl::StatusOr<Graph> graph =
      ProgramFromJson(json->second, file->tensors, device);
  const absl::Status status =
      graph.ok() ? CheckSize(*graph, device) : graph.status();
  if (status.ok()) return graph;
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

}  // namespace d2l::ir
