// What train.cc prints and writes of a training.
//
//   std::cout << HeadText(options, data, processes, parameters);
//
// Pure functions of what they are given and the device table.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chapters/multi_gpu/train/checkpoint.h"
#include "chapters/multi_gpu/train/options.h"
#include "chapters/multi_gpu/train/processes.h"

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

// What a checkpoint also says of a run: its "data", "test_data", "hardware" and
// "processes".
std::map<std::string, std::string> Surroundings(const TrainOptions& options,
                                                const TrainData& data,
                                                const Processes& processes);
// That the checkpoint was trained on other images, by its surroundings, than
// this run has; or nothing.
std::string OtherDataText(const TrainOptions& options, const TrainData& data);
// What else is not as it was when it was made, and so: sentences.
std::vector<std::string> ChangesSince(const TrainOptions& options,
                                      const TrainData& data,
                                      const Processes& processes);

// What --json writes.
std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& epochs);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_REPORT_H_
