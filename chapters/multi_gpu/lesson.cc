// Multi-GPU training: one model, several devices.

#include "common/lesson/lesson.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/inventory.h"
#include "chapters/multi_gpu/scratch.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/atomic_file.h"
#include "common/base/timer.h"
#include "common/device/device.h"
#include "common/device/device_table.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"
#include "common/nn/layers.h"
#include "common/nn/module.h"
#include "common/nn/state_dict.h"
#include "common/ops/ops.h"
#include "common/parallel/data_parallel/data_parallel.h"
#include "common/tensor/tensor.h"

namespace d2l::multi_gpu {

std::vector<Device> AtLeastTwo() {
  std::vector<Device> devices = AllDevices();
  if (devices.size() == 1) devices.push_back(devices[0]);
  return devices;
}

bool OnCpus() { return AllDevices()[0].type() == DeviceType::kCpu; }

std::string Median(const Figure& time) { return FormatMedian(time.value, "s"); }

Judgement SeveralDevices() {
  const std::size_t count = AllDevices().size();
  return Counted(count > 1, "needs 2", absl::StrCat(count));
}

namespace {

// %% 000/In9
// The table's columns: chapters/multi_gpu/inventory.h; NVML: nvml.h there.
void In9(Cell& cell) {
  const Device first = AllDevices()[0];
  const Tensor x = Rand({512, 512}, first);
  Tensor y = MatMul(x, x);
  Synchronize(first);
  const Timer timer;
  y = MatMul(x, x);
  Synchronize(first);
  // As many as keep it busy for a while.
  const double products = cell.BySize(0.2, 0.5, 0.5) / timer.Seconds();
  for (int i = 0; i < std::min(products, 5000.0); ++i) y = MatMul(x, x);
  const std::vector<DeviceState> mine = TableDevices(/*seconds=*/0.05);
  Synchronize(first);
  std::string note;
  std::vector<DeviceState> devices = MachineGpus(&note);
  devices.insert(devices.end(), mine.begin(), mine.end());
  std::cout << InventoryTable(devices);
  if (!note.empty()) std::cout << Wrap(note);
  cell.Check(mine.size() == Devices().size(), "a row for each device");
}
// %%

// %% 000/In10
void In10(Cell& cell) {
  const nn::Linear net(10, 1, /*bias=*/true, TryGpu());
  std::cout << net << "\n";
  for (const auto& [name, parameter] : nn::NamedParameters(net)) {
    std::cout << "  " << name << ": " << parameter.Describe() << "\n";
  }
  cell.Check(
      nn::ToString(net) == "Linear(in_features=10, out_features=1, bias=True)",
      "as PyTorch prints it");
  cell.Check(nn::NumParameters(net) == 11, "the number of parameters");
}
// %%

// %% 000/In11
void In11(Cell& cell) {
  const auto layer = [] { return nn::Linear(10, 1, TryGpu()); };
  const DataParallel all(layer());
  std::cout << all << "\n";
  for (const auto& [name, parameter] : nn::NamedParameters(all)) {
    std::cout << "  " << name << ": " << parameter.Describe() << "\n";
  }
  const int last = static_cast<int>(Devices().size()) - 1;
  const DataParallel restricted(layer(), /*device_ids=*/{last});
  std::cout << "  device_ids {" << last << "}: " << restricted.devices()[0]
            << "\n";
  std::size_t of_two = 0;
  std::cout << "  device_ids {0, 3}: ";
  try {
    const DataParallel two(layer(), /*device_ids=*/{0, 3});
    of_two = two.devices().size();
    std::cout << two.devices()[0] << " and " << two.devices()[1] << "\n";
  } catch (const std::invalid_argument& error) {
    std::cout << "\n" << Wrap(error.what(), "    ");
  }
  cell.Check(of_two == (last >= 3 ? 2u : 0u), "what {0, 3} restricts to");
  cell.Claim("By default DataParallel uses all devices: {}.",
             Counted(all.devices().size() == Devices().size(),
                     Say("there are %d", Devices().size()),
                     absl::StrCat(all.devices().size())));
  cell.Claim(
      "With one index in device_ids, DataParallel uses {} of the devices.",
      Counted(restricted.devices().size() == 1 &&
                  restricted.devices()[0] == Devices()[last].device,
              Devices()[last].device.ToString(),
              absl::StrCat(restricted.devices().size())));
}
// %%

// %% 001/c12, 001/c13, 001/c14
// How many of the first module's parameters the second has, bit for bit.
int EqualParameters(const nn::Module& a, const nn::Module& b) {
  const std::vector<Tensor> of_a = nn::Parameters(a), of_b = nn::Parameters(b);
  int equal = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    equal += ToVector<float>(of_a[i]) == ToVector<float>(of_b[i]) ? 1 : 0;
  }
  return equal;
}

nn::Linear NewLinear() { return {10, 1, TryGpu()}; }
// %%

// %% 001/c12
void C12(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  DataParallel net(NewLinear());
  cell.Check(nn::SaveStateDict(net, path).ok(), "saving");
  nn::Linear new_net = NewLinear();
  const std::vector<float> before = ToVector<float>(new_net.weight());
  const auto loaded = nn::LoadStateDict(new_net, path);
  std::cout << "nn::LoadStateDict(new_net, path):\n"
            << Wrap(absl::StrReplaceAll(loaded.status().message(),
                                        {{"\t", "  "}}),
                    "  ");
  cell.Check(ToVector<float>(new_net.weight()) == before, "nothing is loaded");
  int known = 0;
  const auto names = nn::StateDict(new_net);
  for (const auto& [name, tensor] : nn::StateDict(net)) {
    known += static_cast<int>(names.count(name));
  }
  cell.Claim(
      "Wrapping changed the structure: the unwrapped model has {} of the two "
      "saved names.",
      Counted(!loaded.ok() && known == 0, "loading needs both",
              absl::StrCat(known)));
}
// %%

// %% 001/c13
void C13(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  DataParallel net(NewLinear());
  cell.Check(nn::SaveStateDict(net.module(), path).ok(), "saving");
  nn::Linear new_net = NewLinear();
  const auto loaded = nn::LoadStateDict(new_net, path);
  for (const auto& [name, tensor] : nn::StateDict(net.module())) {
    std::cout << "  " << name << ": " << tensor.Describe() << "\n";
  }
  const int equal = EqualParameters(net, new_net);
  cell.Claim("It loads: {} parameters are those of the wrapped model.",
             Counted(loaded.ok() && equal == 2,
                     loaded.ok() ? "bit for bit"
                                 : std::string(loaded.status().message()),
                     Say("%d of %d", equal, 2)));
}
// %%

// %% 001/c14
void C14(Cell& cell) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  DataParallel net(NewLinear());
  cell.Check(nn::SaveStateDict(net, path).ok(), "saving");
  DataParallel new_net(NewLinear());
  const auto loaded = nn::LoadStateDict(new_net, path);
  const Tensor x = Randn({5, 10}, TryGpu());
  cell.Check(ToVector<float>(new_net(x)) == ToVector<float>(net(x)),
             "the outputs of all devices");
  int equal = 0;
  const int devices = static_cast<int>(new_net.devices().size());
  for (int i = 0; i < devices; ++i) {
    equal += EqualParameters(net.module(), new_net.replica(i));
  }
  cell.Claim("It loads: {} parameters, on all devices, are those saved.",
             Counted(loaded.ok() && equal == 2 * devices,
                     loaded.ok() ? "bit for bit"
                                 : std::string(loaded.status().message()),
                     Say("%d of %d", equal, 2 * devices)));
}
// %%

[[maybe_unused]] const bool registered =
    RegisterLesson({4,
                    "multi_gpu",
                    2,
                    {{"000/In9", In9},
                     {"000/In10", In10},
                     {"000/In11", In11},
                     {"001/c12", C12},
                     {"001/c13", C13},
                     {"001/c14", C14},
                     {"d2l/three-splits", ThreeSplits},
                     {"d2l/allreduce", AllReduceCell},
                     {"d2l/lenet-scratch", LeNetScratch},
                     {"002/c2", C2},
                     {"d2l/resnet18", ResNet18},
                     {"d2l/forgotten-allreduce", Forgotten},
                     {"d2l/straggler", Straggler},
                     {"d2l/overlap-link", OverlapLink},
                     {"d2l/parameter-server", ParameterServer},
                     {"d2l/key-value-store", KeyValueStore},
                     {"d2l/several-machines", SeveralMachines}}});

}  // namespace
}  // namespace d2l::multi_gpu
