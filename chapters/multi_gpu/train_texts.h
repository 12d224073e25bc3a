// What train.cc prints of a training, and what its checkpoints say of the
// place. For train_run.cc.
//
//   std::cout << HeadText(options, data, processes, parameters);
//
// Pure functions of what they are given and the device table.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_TEXTS_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_TEXTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "chapters/multi_gpu/processes.h"
#include "chapters/multi_gpu/train_data.h"
#include "chapters/multi_gpu/train_options.h"
#include "common/training/trainer.h"

namespace d2l {

// The first lines: the network, the options, the devices, the data.
std::string HeadText(const TrainOptions& options, const TrainData& data,
                     const Processes& processes, std::int64_t parameters);

// The course's closing sentence, with the data's name.
std::string ResultText(const TrainOptions& options, const TrainData& data,
                       const Processes& processes,
                       const std::vector<EpochRecord>& epochs);

// "cpu (AMD EPYC), cpu (AMD EPYC)", as if all processes had this one's.
std::string Hardware(const TrainOptions& options, const Processes& processes);
// "2 processes of 1 device"
std::string HowMany(const TrainOptions& options, const Processes& processes);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_TEXTS_H_
