// The images of train.cc, and its report on them.
//
//   absl::StatusOr<TrainData> data = LoadData("", 12000);  // generated
//
// Thread-safe.

#ifndef D2L_CHAPTERS_MULTI_GPU_TRAIN_DATA_H_
#define D2L_CHAPTERS_MULTI_GPU_TRAIN_DATA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "chapters/multi_gpu/train_options.h"
#include "common/data/dataset.h"
#include "common/training/checkpoint.h"

namespace d2l {

struct TrainData {
  Dataset training;
  Dataset test;
};

// Those of a directory with Fashion-MNIST's files, or, if there is none, so
// many generated ones and a sixth as many to test on.
absl::StatusOr<TrainData> LoadData(const std::string& data_dir,
                                   std::int64_t images);

// "12000 images with the SHA-256 57ab…", the same for the same images wherever
// they are.
std::string Fingerprint(const Dataset& data);

// What --json writes.
std::string ReportJson(const TrainOptions& options, const TrainData& data,
                       std::int64_t parameters,
                       const std::vector<EpochRecord>& records);

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_TRAIN_DATA_H_
