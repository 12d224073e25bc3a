#include "chapters/multi_gpu/processes.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <iostream>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/files/sha256.h"
#include "common/ops/ops.h"
#include "common/parallel/split_batch.h"

namespace d2l {
namespace {

std::uint64_t Short(Sha256& hash) {
  std::uint64_t value = 0;
  const bool hex = absl::SimpleHexAtoi(hash.Hex().substr(0, 16), &value);
  return hex ? value : 0;
}

template <typename T>
void Update(Sha256& hash, const std::vector<T>& values) {
  hash.Update({reinterpret_cast<const char*>(values.data()),
               values.size() * sizeof(T)});
}

void Update(Sha256& hash, const Tensor& x) {
  switch (x.dtype()) {
    case DType::kFloat32:
      return Update(hash, ToVector<float>(x));
    case DType::kInt64:
      return Update(hash, ToVector<std::int64_t>(x));
    default:
      return Update(hash, ToVector<double>(To(x, DType::kFloat64)));
  }
}

}  // namespace

std::uint64_t HashOf(absl::string_view bytes) {
  Sha256 hash;
  hash.Update({bytes.data(), bytes.size()});
  return Short(hash);
}

std::uint64_t HashOf(const nn::Module& net, nn::SGD& sgd) {
  Sha256 hash;
  for (const auto& [name, x] : nn::NamedState(net)) Update(hash, x);
  for (const Tensor& x : sgd.momentum_buffers()) {
    if (x.defined()) Update(hash, x);
  }
  return Short(hash);
}

absl::StatusOr<std::unique_ptr<Processes>> Processes::Start(
    double timeout_seconds) {
  if (MpiWorld::StartedProcesses() == 1) {
    return std::unique_ptr<Processes>(new Processes(nullptr));
  }
  absl::StatusOr<std::unique_ptr<MpiWorld>> world =
      MpiWorld::Start({timeout_seconds});
  if (!world.ok()) return world.status();
  return std::unique_ptr<Processes>(new Processes(*std::move(world)));
}

absl::Status Processes::Agree(const absl::Status& mine) {
  if (!several()) return mine;
  const std::uint64_t hash = mine.ok() ? 0 : HashOf(mine.message());
  const std::vector<std::uint64_t> all = world_->Gather(hash);
  if (std::count(all.begin(), all.end(), 0) == size()) return mine;
  const bool first = std::find(all.begin(), all.end(), hash) - all.begin() ==
                     world_->process();
  return !mine.ok() && first ? mine : absl::CancelledError();
}

void Processes::CheckSame(const std::map<std::string, std::string>& values) {
  if (!several()) return;
  for (const auto& [name, value] : values) {
    const std::vector<std::string> all = Gather(value);
    for (int rank = 1; rank < size(); ++rank) {
      if (all[rank] == all[0]) continue;
      throw CommonError(absl::StrFormat(
          "%s is \"%s\" in rank 0 and \"%s\" in rank %d. Give all %d ranks the "
          "same flags and data, since ranks that differ do not train one "
          "network.",
          name, all[0], all[rank], rank, size()));
    }
  }
}

void Processes::CheckEqual(std::uint64_t hash, const std::string& what) {
  if (!several()) return;
  const std::vector<std::uint64_t> all = world_->Gather(hash);
  std::vector<int> others;
  for (int rank = 0; rank < size(); ++rank) {
    if (all[rank] != all[0]) others.push_back(rank);
  }
  if (others.empty()) return;
  throw CommonError(absl::StrFormat(
      "%s of rank%s %s are not those of rank 0, of %d ranks. Stopped, since "
      "ranks that differ do not train one network.",
      what, others.size() == 1 ? "" : "s", absl::StrJoin(others, ", "),
      size()));
}

std::vector<GeneratorState> Processes::Gather(
    const std::vector<GeneratorState>& mine) {
  if (!several()) return mine;
  std::vector<GeneratorState> all(mine.size() * size());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::vector<std::uint64_t> seeds = world_->Gather(mine[i].seed);
    const std::vector<std::uint64_t> offsets = world_->Gather(mine[i].offset);
    for (std::size_t rank = 0; rank < seeds.size(); ++rank) {
      all[rank * mine.size() + i] = {seeds[rank], offsets[rank]};
    }
  }
  return all;
}

std::vector<std::string> Processes::Gather(const std::string& mine) {
  const std::vector<std::uint64_t> sizes = world_->Gather(mine.size());
  const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::string> all(size());
  for (std::size_t at = 0; at < most; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    const std::string part = mine.substr(std::min(at, mine.size()));
    std::memcpy(&word, part.data(), std::min(part.size(), sizeof(word)));
    const std::vector<std::uint64_t> words = world_->Gather(word);
    for (int rank = 0; rank < size(); ++rank) {
      all[rank].append(reinterpret_cast<const char*>(&words[rank]),
                       sizeof(word));
    }
  }
  for (int rank = 0; rank < size(); ++rank) all[rank].resize(sizes[rank]);
  return all;
}

std::int64_t Processes::Sum(std::int64_t mine) {
  if (!several()) return mine;
  const std::vector<std::uint64_t> all = world_->Gather(mine);
  return static_cast<std::int64_t>(
      std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
}

NcclId Processes::SharedNcclId() {
  NcclId id = {};
  absl::Status made;
  if (rank() == 0) {
    const absl::StatusOr<const NcclLibrary*> nccl = Nccl();
    made = nccl.status();
    if (made.ok() && (*nccl)->get_unique_id(&id) != kNcclSuccess) {
      made = absl::UnavailableError(
          "NCCL cannot make an id; NCCL_DEBUG=INFO makes it say why.");
    }
  }
  made = Agree(made);
  if (!made.ok()) throw CommonError(std::string(made.message()));
  std::array<std::uint64_t, sizeof(id.bytes) / sizeof(std::uint64_t)> words;
  std::memcpy(words.data(), id.bytes.data(), sizeof(words));
  if (several()) {
    for (std::uint64_t& word : words) word = world_->Gather(word)[0];
  }
  std::memcpy(id.bytes.data(), words.data(), sizeof(words));
  return id;
}

pid_t Processes::FirstHere() {
  if (!several()) return getpid();
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  const std::uint64_t machine = HashOf(name.data());
  const std::vector<std::uint64_t> pids = world_->Gather(getpid());
  const bool here = world_->Gather(machine)[0] == machine;
  return here ? static_cast<pid_t>(pids[0]) : 0;
}

Dataset Processes::Part(Dataset data) const {
  if (!several()) return data;
  const std::vector<std::int64_t> sizes =
      ShardSizes(data.size(), std::vector<int>(size(), 1));
  const std::int64_t begin =
      std::accumulate(sizes.begin(), sizes.begin() + rank(), std::int64_t{0});
  const std::int64_t end = begin + sizes[rank()];
  return {data.name,
          {data.images.begin() + begin * kImagePixels,
           data.images.begin() + end * kImagePixels},
          {data.labels.begin() + begin, data.labels.begin() + end}};
}

int Processes::Complain(const absl::Status& status) const {
  if (absl::IsCancelled(status)) return 1;
  std::cerr << Wrap(TranslatedMessage(std::string(status.message())),
                    several() ? Name() + ": " : Lead("Error:"))
            << std::flush;
  return 1;
}

std::string Processes::Name() const {
  return absl::StrFormat("rank %d of %d", rank(), size());
}

}  // namespace d2l
