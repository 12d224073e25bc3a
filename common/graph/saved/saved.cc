#include "common/graph/saved/saved.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/console/text.h"
#include "common/base/machine.h"
#include "common/graph/passes/passes.h"
#include "common/ops/ops.h"

namespace d2l::ir {
namespace {

constexpr const char* kProgram = "d2l.program";  // in the metadata

std::string PathOf(const std::string& prefix) {
  return prefix + ".safetensors";
}

bool ShareMemory(const safetensors::NamedTensors& tensors) {
  std::set<const Storage*> memories;
  return !std::all_of(tensors.begin(), tensors.end(), [&](const auto& named) {
    return memories.insert(&*named.second.storage()).second;
  });
}

}  // namespace

Tensor WithStrides(const Tensor& values, const Tensor& type) {
  if (type.is_contiguous() || type.numel() == 0) return values;
  Tensor source = values;
  for (int i = 0; i < type.dim(); ++i) {
    // Only the first of the repeated elements is written.
    if (type.strides()[i] == 0) source = Slice(source, i, 0, 1);
  }
  const Tensor memory = Empty({type.span()}, values.device(), values.dtype());
  CopyTo(source, Tensor::View(memory, 0, source.shape(), type.strides()));
  return Tensor::View(memory, 0, type.shape(), type.strides());
}

absl::Status SaveProgram(const Graph& graph, const std::string& prefix) {
  Verify(graph);
  Graph flat = graph;
  Unfuse(flat);
  safetensors::NamedTensors tensors;
  const std::string json = ProgramToJson(flat, tensors);
  if (Storages(flat.main()).writes_external && ShareMemory(tensors)) {
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
        PrintableText(path)));
  }
  const absl::StatusOr<safetensors::File> file =
      safetensors::LoadFile(path, device);
  if (!file.ok()) return file.status();
  const auto json = file->metadata.find(kProgram);
  if (json == file->metadata.end()) {
    return absl::InvalidArgumentError(
        PrintableText(path) +
        " holds tensors, and no program. Save one: "
        "net.Save(\"my_mlp\").");
  }
  absl::StatusOr<Graph> graph =
      ProgramFromJson(json->second, file->tensors, device);
  if (!graph.ok()) {
    return absl::Status(
        graph.status().code(),
        absl::StrCat(PrintableText(path), ": ", graph.status().message()));
  }
  Fuse(*graph);
  const std::int64_t bytes = PeakBytes(*graph);
  if (device.type() == DeviceType::kCpu && bytes > FreeHostMemory(0)) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: its values need %d bytes at once; %d are free",
                        PrintableText(path), bytes, FreeHostMemory(0)));
  }
  return graph;
}

}  // namespace d2l::ir
