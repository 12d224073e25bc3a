// For tests of saved programs: a directory, and a program to save.

#ifndef D2L_COMMON_GRAPH_SAVED_SAVED_TESTING_H_
#define D2L_COMMON_GRAPH_SAVED_SAVED_TESTING_H_

#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/graph/ir.h"
#include "common/graph/trace.h"
#include "common/ops/ops.h"
#include "gtest/gtest.h"

namespace d2l::ir {

// An empty directory for the test, and a prefix in it.
inline std::string NewPrefix() {
  static int next = 0;
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/saved-", getpid(), "-", next++);
  std::filesystem::create_directories(directory);
  return directory + "/my_mlp";
}

inline std::vector<std::string> FilesBeside(const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(prefix).parent_path())) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

inline std::string ErrorOf(const absl::Status& status) {
  return status.ok() ? "none" : std::string(status.message());
}

// An MLP; the weights are random.
struct Mlp {
  explicit Mlp(Device device = Device())
      : w0(Rand({5, 3}, device)),
        b0(Rand({5}, device)),
        w1(Rand({2, 5}, device)) {}

  Graph Program(const Tensor& x) const {
    return Trace(
        [this](const std::vector<Tensor>& in) -> std::vector<Tensor> {
          return {MatMul(Relu(MatMul(in[0], T(w0)) + b0), T(w1))};
        },
        {x}, {"my_mlp", {{"0.weight", w0}, {"0.bias", b0}, {"1.weight", w1}}});
  }
  Tensor w0, b0, w1;
};

}  // namespace d2l::ir

#endif  // D2L_COMMON_GRAPH_SAVED_SAVED_TESTING_H_
