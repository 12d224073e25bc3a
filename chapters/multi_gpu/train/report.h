// What train.cc prints and writes of a training.
//
//   std::cout << HeadText(options, data, processes, parameters);
//
// Pure functions of what they are given and the device table.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/processes.h"
#include "common/training/checkpoint.h"

namespace d2l {

// The first lines: the network, the options, the devices, the data.
std::string HeadText(const TrainOptions& options, const TrainData& data,
                     const Processes& processes, std::int64_t parameters);

// The course's closing sentence, with the data's name.
std::string ResultText(const TrainOptions& options, const TrainData& data,
                       const Processes& processes,
                       const std::vector<EpochRecord>& epochs);

// Why a training ended whose last step had that loss. saved_epoch: after which
// this run saved it last.
std::string NotFiniteText(const TrainOptions& options,
                          const TrainingProgress& progress, double loss,
                          std::optional<std::size_t> saved_epoch);

// Advice for one that has learnt nothing in its epochs of so many batches; or
// nothing.
std::string ChanceText(const TrainOptions& options,
                       const TrainingProgress& progress, std::int64_t batches);

// The command that goes on after an end without a save; saved: this run did so
// before.
std::string HowToGoOnText(const TrainOptions& options, bool saved);

// What --json writes.
std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& epochs);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_
