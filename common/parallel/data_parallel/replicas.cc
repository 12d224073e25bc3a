#include "common/parallel/data_parallel/replicas.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/ops/no_grad.h"
#include "common/ops/ops.h"
#include "common/ops/primitive/primitive.h"

namespace d2l {

ModuleReplicas::ModuleReplicas(std::unique_ptr<nn::Module> net,
                               const std::vector<Device>& devices) {
  nn::To(*net, devices[0]);
  for (const Device device : devices) {
    Replica& replica = replicas_.emplace_back();
    replica.device = device;
    replica.net = replicas_.size() == 1 ? std::move(net)
                                        : nn::Clone(*replicas_[0].net, device);
    replica.parameters = nn::Parameters(*replica.net);
    for (const auto& [name, x] : nn::NamedState(*replica.net)) {
      replica.state.push_back(x);
    }
  }
  Remember();
}

bool ModuleReplicas::Follow(SourceLocation at) {
  bool written = false;
  for (const Replica& replica : replicas_) {
    nn::CopyModes(*replicas_[0].net, *replica.net);
    const auto named = nn::NamedState(*replica.net);
    for (std::size_t i = 0; i < replica.state.size(); ++i) {
      const Tensor& kept = replica.state[i];
      const Tensor* now = i < named.size() ? &named[i].second : nullptr;
      if (now == nullptr || !IsSameView(*now, kept)) {
        throw std::invalid_argument(absl::StrFormat(
            "[DataParallel] %s of the module was %s after the DataParallel was "
            "made, which updates the tensor that it found, %s; write into that "
            "one (nn::LoadStateDict, CopyTo), or make a DataParallel of the "
            "changed module; requested at %s",
            now == nullptr ? "a tensor" : named[i].first,
            now == nullptr ? "removed"
            : now->device() != kept.device()
                ? absl::StrCat("moved to ", now->device().ToString())
                : "replaced",
            kept.Describe(), at.ToString()));
      }
      written = written || kept.version() != replica.versions[i];
    }
  }
  return written;
}

void ModuleReplicas::CopyFirst(SourceLocation at) {
  const NoGradGuard guard;
  const std::vector<Tensor>& from = replicas_[0].state;
  for (std::size_t d = 1; d < replicas_.size(); ++d) {
    const std::vector<Tensor>& to = replicas_[d].state;
    for (std::size_t i = 0; i < to.size(); ++i) {
      CopyTo(from[i], to[i], /*non_blocking=*/true, at);
    }
  }
}

void ModuleReplicas::Remember() {
  for (Replica& replica : replicas_) {
    replica.versions.clear();
    for (const Tensor& x : replica.state) {
      replica.versions.push_back(x.version());
    }
  }
}

void ModuleReplicas::CheckValues(SourceLocation at) const {
  for (const Replica& replica : replicas_) {
    for (const Tensor& x : replica.state) {
      CheckReadable(x, CurrentStream(replica.device), "DataParallel", at);
    }
  }
}

void ModuleReplicas::Fail(const std::exception_ptr& error, SourceLocation at) {
  const NoGradGuard guard;
  const auto request = [](const auto& f) {
    try {
      f();
    } catch (const AsyncError&) {  // NOLINT(bugprone-empty-catch)
      // The stream has failed already.
    }
  };
  // With it the callback's failure would be reported, and the stream would run.
  const LaunchBlockingGuard queued(false);
  for (Replica& replica : replicas_) {
    request([&] {
      CurrentStream(replica.device)
          .HostCallback([error] { std::rethrow_exception(error); }, at);
    });
    for (Tensor& x : replica.state) {
      request([&] { x *= Operand(1, at); });  // will be skipped
    }
  }
}

}  // namespace d2l
