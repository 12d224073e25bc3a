// Multi-GPU training: one model, several devices.

#include "common/lesson/text/lesson.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "chapters/multi_gpu/cells.h"
#include "chapters/multi_gpu/inventory.h"
#include "common/d2l.h"
#include "common/lesson/cell/cell.h"

namespace d2l::multi_gpu {

std::vector<Device> AllDevices() {
  std::vector<Device> gpus, all;
  for (const DeviceInfo& info : Devices()) {
    all.push_back(info.device);
    if (info.device.type() == DeviceType::kCuda) gpus.push_back(info.device);
  }
  return gpus.empty() ? all : gpus;
}

std::vector<Device> AtMostTwo() {
  std::vector<Device> devices = AllDevices();
  if (devices.size() > 2) devices.resize(2);
  return devices;
}

std::vector<Device> AtLeastTwo() {
  std::vector<Device> devices = AllDevices();
  if (devices.size() == 1) devices.push_back(devices[0]);
  return devices;
}

std::vector<int> NumbersOf(const std::vector<Device>& devices) {
  std::vector<int> numbers;
  for (const Device device : devices) {
    for (std::size_t i = 0; i < Devices().size(); ++i) {
      if (Devices()[i].device == device) {
        numbers.push_back(static_cast<int>(i));
      }
    }
  }
  return numbers;
}

std::string Names(const std::vector<Device>& devices) {
  const auto add = [](std::string* text, Device device) {
    absl::StrAppendFormat(text, "device(type='%s', index=%d)",
                          DeviceTypeName(device.type()), device.index());
  };
  return "[" + absl::StrJoin(devices, ", ", add) + "]";
}

bool OnCpus() { return AllDevices()[0].type() == DeviceType::kCpu; }

Judgement OnSeveral(const Judgement& claim) {
  const std::size_t count = AllDevices().size();
  return Given(Counted(count > 1, "needs 2", absl::StrCat(count)), claim,
               "devices");
}

std::string OneDeviceOr(const std::string& fact) {
  const std::vector<Device> devices = AllDevices();
  if (devices.size() > 1) return fact;
  return Say("There is only one device, %s.", devices[0].ToString());
}

std::string Median(const Figure& time) { return FormatMedian(time.value, "s"); }

std::string Median(const Timing& timing) { return Median(timing.completion); }

void CheckClose(Cell& cell, const std::string& what,
                const std::vector<Tensor>& got,
                const std::vector<Tensor>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    cell.CheckClose(what, ToVector<float>(got[i]), ToVector<float>(expected[i]),
                    1e-3);
  }
}

bool OnOne(const std::string& name, std::int64_t samples,
           const MakeStep& make) {
  return BenchmarkWork(name, samples,
                       [make](Device device) { return make({device}); });
}
bool OnTwo(const std::string& name, std::int64_t samples, const MakeStep& make,
           const Rates& rates) {
  return BenchmarkPairWork(
      name, samples,
      [make](Device first, Device second) {
        return make({first, second});
      },
      /*flop=*/0, rates);
}

int EqualParameters(const nn::Module& a, const nn::Module& b) {
  const std::vector<Tensor> of_a = nn::Parameters(a), of_b = nn::Parameters(b);
  int equal = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) {
    equal += ToVector<float>(of_a[i]) == ToVector<float>(of_b[i]) ? 1 : 0;
  }
  return equal;
}

namespace {

std::string BitForBitOr(const absl::Status& failure) {
  return failure.ok() ? "bit for bit" : std::string(failure.message());
}

// %% 000/In9
// The table's columns: chapters/multi_gpu/inventory.h.
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
D2L_CELL("000/In9", In9);

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
D2L_CELL("000/In10", In10);

// %% 000/In11
// A layer on all devices, or on those of these numbers.
DataParallel Parallel(const std::vector<int>& device_ids = {}) {
  return DataParallel(nn::Linear(10, 1, TryGpu()), device_ids);
}
// %% 000/In11, measured
void In11(Cell& cell) {
  const DataParallel all = Parallel();
  std::cout << all << "\n";
  for (const auto& [name, parameter] : nn::NamedParameters(all)) {
    std::cout << "  " << name << ": " << parameter.Describe() << "\n";
  }
  const int last = static_cast<int>(Devices().size()) - 1;
  const DataParallel restricted = Parallel({last});
  std::cout << "  device_ids {" << last << "}: " << restricted.devices()[0]
            << "\n";
  std::size_t of_two = 0;
  std::cout << "  device_ids {0, 3}: ";
  try {
    const DataParallel two = Parallel({0, 3});
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
  cell.Claim("With one index in device_ids, DataParallel uses one device: {}.",
             Counted(restricted.devices().size() == 1 &&
                         restricted.devices()[0] == Devices()[last].device,
                     Devices()[last].device.ToString(),
                     absl::StrCat(restricted.devices().size())));
}
// %%
D2L_CELL("000/In11", In11);

// %% 001/c12, 001/c13, 001/c14
nn::Linear NewLinear() { return {10, 1, TryGpu()}; }

// Returns what loading says.
absl::Status SaveAndLoad(const nn::Module& net, nn::Module& new_net) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/model.safetensors";
  const absl::Status saved = nn::SaveStateDict(net, path);
  if (!saved.ok()) throw std::runtime_error(saved.ToString());
  return nn::LoadStateDict(new_net, path).status();
}
// %% 001/c12
// The names of the wrapped layer begin with "module."
absl::Status LoadUnwrapped(const DataParallel& net, nn::Linear& new_net) {
  return SaveAndLoad(net, new_net);
}
// %% 001/c12, measured
void C12(Cell& cell) {
  const DataParallel net(NewLinear());
  nn::Linear new_net = NewLinear();
  const std::vector<float> before = ToVector<float>(new_net.weight());
  const absl::Status loaded = LoadUnwrapped(net, new_net);
  std::cout << "nn::LoadStateDict(new_net, path):\n"
            << Wrap(absl::StrReplaceAll(loaded.message(), {{"\t", "  "}}),
                    "  ");
  cell.Check(ToVector<float>(new_net.weight()) == before, "nothing is loaded");
  int known = 0;
  const auto names = nn::StateDict(new_net);
  for (const auto& [name, tensor] : nn::StateDict(net)) {
    known += static_cast<int>(names.count(name));
  }
  cell.Claim(
      "The model without a wrapper has neither of the two saved names: {}.",
      Counted(!loaded.ok() && known == 0, "loading needs both",
              absl::StrCat(known)));
}
// %%
D2L_CELL("001/c12", C12);

// %% 001/c13
// Saves the layer that is wrapped.
absl::Status LoadModule(DataParallel& net, nn::Linear& new_net) {
  return SaveAndLoad(net.module(), new_net);
}
// %% 001/c13, measured
void C13(Cell& cell) {
  DataParallel net(NewLinear());
  nn::Linear new_net = NewLinear();
  const absl::Status loaded = LoadModule(net, new_net);
  for (const auto& [name, tensor] : nn::StateDict(net.module())) {
    std::cout << "  " << name << ": " << tensor.Describe() << "\n";
  }
  const int equal = EqualParameters(net, new_net);
  cell.Claim(
      "The file is loaded, and the parameters equal those of the wrapped "
      "model: {}.",
      Counted(loaded.ok() && equal == 2, BitForBitOr(loaded),
              Say("%d of %d", equal, 2)));
}
// %%
D2L_CELL("001/c13", C13);

// %% 001/c14
// Wraps the new layer, too.
absl::Status LoadWrapped(const DataParallel& net, DataParallel& new_net) {
  return SaveAndLoad(net, new_net);
}
// %% 001/c14, measured
void C14(Cell& cell) {
  DataParallel net(NewLinear()), new_net(NewLinear());
  const absl::Status loaded = LoadWrapped(net, new_net);
  const Tensor x = Randn({5, 10}, TryGpu());
  cell.Check(ToVector<float>(new_net(x)) == ToVector<float>(net(x)),
             "the outputs of all devices");
  int equal = 0;
  const int devices = static_cast<int>(new_net.devices().size());
  for (int i = 0; i < devices; ++i) {
    equal += EqualParameters(net.module(), new_net.replica(i));
  }
  cell.Claim(
      "The file is loaded, and the parameters on all devices equal the saved "
      "ones: {}.",
      Counted(loaded.ok() && equal == 2 * devices, BitForBitOr(loaded),
              Say("%d of %d", equal, 2 * devices)));
}
// %%
D2L_CELL("001/c14", C14);

}  // namespace
}  // namespace d2l::multi_gpu
