// Functions that cells in several files share. The cells are in lesson.cc (the
// devices, and DataParallel's names), training.cc, splits.cc, communication.cc,
// memory.cc and machines.cc; the longer programs that they teach are in
// from_scratch/.

#ifndef D2L_CHAPTERS_MULTI_GPU_CELLS_H_
#define D2L_CHAPTERS_MULTI_GPU_CELLS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/d2l.h"
#include "common/device/topology.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l {
class MpiWorld;
}  // namespace d2l

namespace d2l::multi_gpu {

// The table's GPUs; all its devices if it has no GPU (d2l.try_all_gpus).
std::vector<Device> AllDevices();
// The first two of them, or the only one.
std::vector<Device> AtMostTwo();
// All of them, or the only one twice: then two replicas share it.
std::vector<Device> AtLeastTwo();

// The devices' places in the device table, as DataParallel takes them.
std::vector<int> NumbersOf(const std::vector<Device>& devices);
// "[device(type='cuda', index=0)]", as the course prints them.
std::string Names(const std::vector<Device>& devices);

// True if the devices are in one CPU; some reasons hold only for these.
bool OnCpus();
// The claim, or INCONCLUSIVE if there is only one device.
Judgement OnSeveral(const Judgement& claim);
// Says that there is only one device; `fact` if there are several.
std::string OneDeviceOr(const std::string& fact);

std::string Median(const Figure& time);
// The median of its completion.
std::string Median(const Timing& timing);

// How many of a's parameters are equal to b's, bit for bit.
int EqualParameters(const nn::Module& a, const nn::Module& b);
// Checks that two devices' parameters, or gradients, are the same.
void CheckClose(Cell& cell, const std::string& what,
                const std::vector<Tensor>& got,
                const std::vector<Tensor>& expected);

// A step of training with `each` random samples for each device.
std::function<void()> Stepper(const std::shared_ptr<DataParallel>& net,
                              std::int64_t each);
// Benchmarks of a step with this number of samples, on one device or on two.
using MakeStep =
    std::function<std::function<void()>(const std::vector<Device>& devices)>;
bool OnOne(const std::string& name, std::int64_t samples, const MakeStep& make);
bool OnTwo(const std::string& name, std::int64_t samples, const MakeStep& make,
           const Rates& rates = {});

// from_scratch/parameter_server.cc

struct SimulatedServer {
  Phrase name;
  AllReduceAlgorithm algorithm;
  int gpus;
  double book;  // seconds, like the following
  double simulated = 0;
  double bound = 0;
};
std::vector<SimulatedServer> SimulateTheBook();
// slower: divides the links' speed.
Topology BooksTopology(int gpus, double slower = 1);

// from_scratch/networks.cc

CollectiveSchedule Rings(const std::vector<std::vector<int>>& rings);
CollectiveSchedule Servers(int workers, int servers);
CollectiveSchedule Hierarchy(int machines, int each);

// from_scratch/two_processes.cc

bool SumsAsOneProcess(MpiWorld& world, AllReduceAlgorithm algorithm,
                      std::int64_t n);
double SecondsOfSum(MpiWorld& world, const Tensor& x,
                    std::optional<AllReduceAlgorithm> algorithm);
// The simulator's prediction for two processes. Latency and speed of their link
// follow from star's seconds, of two transfers one after the other.
double SimulatedOverLink(AllReduceAlgorithm algorithm, double bytes,
                         double star_of_an_eighth, double star);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_CELLS_H_
