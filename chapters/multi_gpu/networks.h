// Networks on several devices by DataParallel, as the lesson and its benchmarks
// train them.
//
//   auto net = std::make_shared<DataParallel>(MakeNet(Net::kLeNet),
//                                             NumbersOf(AllDevices()));
//   const std::function<void()> step = Stepper(net, /*each=*/256);
//   step();  // asynchronous
//
// For the thread that runs a cell.

#ifndef D2L_CHAPTERS_MULTI_GPU_NETWORKS_H_
#define D2L_CHAPTERS_MULTI_GPU_NETWORKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/data/dataset.h"
#include "common/data/loader.h"
#include "common/device/device.h"
#include "common/nn/module.h"
#include "common/parallel/data_parallel/data_parallel.h"

namespace d2l::multi_gpu {

// As DataParallel takes them: places in the device table.
std::vector<int> NumbersOf(const std::vector<Device>& devices);
// "[device(type='cuda', index=0)]", as the course prints them.
std::string Names(const std::vector<Device>& devices);

// A step of training with so many random samples for each device.
std::function<void()> Stepper(const std::shared_ptr<DataParallel>& net,
                              std::int64_t each);

// An epoch of training; returns its seconds, until all of it is done.
double TrainEpoch(DataParallel& net, DataLoader& loader, double lr);

// The part of the data that the network has right.
double EvaluateAccuracy(nn::Module& net, const Dataset& data, Device device);

// Linear(784, 512), ReLU, Linear(512, 512), ReLU, Linear(512, 10) on these
// devices, with buckets of 256 KiB; over an emulated link if `link`: 0.2 ms,
// and 0.25 GB/s.
std::shared_ptr<DataParallel> LinkedMlp(const std::vector<Device>& devices,
                                        bool overlap, bool link);

}  // namespace d2l::multi_gpu

#endif  // D2L_CHAPTERS_MULTI_GPU_NETWORKS_H_
