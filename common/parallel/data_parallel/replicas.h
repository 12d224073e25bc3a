// ModuleReplicas: a module and its copies, one on each device, which are equal.
//
//   ModuleReplicas replicas(std::move(net), {cpu0, cpu1});
//   CopyTo(values, replicas[0].parameters[0]);
//   replicas[0].net->Eval();
//   if (replicas.Follow(at)) replicas.CopyFirst(at);  // [1] is equal again
//   replicas.Remember();
//
// The first is the user's module. Its values and its modes count: what is
// written to it, and Train and Eval of it or of a part of it, reach the others
// with Follow. Its tensors must stay.
//
// For the thread of a DataParallel. Ownership: it owns the modules.

#ifndef D2L_COMMON_PARALLEL_DATA_PARALLEL_REPLICAS_H_
#define D2L_COMMON_PARALLEL_DATA_PARALLEL_REPLICAS_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "common/base/source_location.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/tensor/tensor.h"

namespace d2l {

struct Replica {
  Device device;
  std::unique_ptr<nn::Module> net;
  std::vector<Tensor> parameters;
  std::vector<Tensor> state;            // these and the buffers
  std::vector<std::uint64_t> versions;  // of the state, at the last Remember
};

class ModuleReplicas {
 public:
  // Moves the net to the first device if necessary.
  ModuleReplicas(std::unique_ptr<nn::Module> net,
                 const std::vector<Device>& devices);

  std::size_t size() const { return replicas_.size(); }
  Replica& operator[](std::size_t device) { return replicas_[device]; }
  const Replica& operator[](std::size_t device) const {
    return replicas_[device];
  }

  // Gives all the modes of the first. Returns whether a value of any was
  // written since the last Remember. Throws std::invalid_argument if a tensor
  // was moved or replaced.
  bool Follow(SourceLocation at);
  // Copies the values of the first to the others.
  void CopyFirst(SourceLocation at);
  // The replicas are equal now.
  void Remember();
  // Throws AsyncError if a value has failed and that has been reported; until
  // then the device skips what uses it.
  void CheckValues(SourceLocation at) const;
  // Makes all values fail with the error.
  void Fail(const std::exception_ptr& error, SourceLocation at);

 private:
  std::vector<Replica> replicas_;
};

}  // namespace d2l

#endif  // D2L_COMMON_PARALLEL_DATA_PARALLEL_REPLICAS_H_
