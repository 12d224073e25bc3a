// Judges what_to_shard by the needs of each way to shard, kind by kind.

#include "chapters/multi_gpu/exercises/judges/what_to_shard.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/exercise/exercise.h"

namespace d2l {
namespace {

using WhatToShard = Sharded(const Cluster& cluster);

constexpr const char* kNames[] = {"kNothing", "kMomentum", "kGradients", "kAll",
                                  "kNoneFits"};

std::string NameOf(Sharded sharded) {
  const int i = static_cast<int>(sharded);
  return i < 0 || i > 4 ? Say("no Sharded") : kNames[i];
}

struct Needs {
  std::int64_t memory = 0;
  std::int64_t link = 0;
};

Needs NeedsOf(const Cluster& c, Sharded sharded) {
  const auto kind = static_cast<int>(sharded);
  const std::int64_t shard = c.parameters / c.devices;
  Needs needs;
  needs.memory += kind >= 1 ? shard : c.parameters;  // momentum
  needs.memory += kind >= 2 ? shard : c.parameters;  // gradients
  needs.memory += kind >= 3 ? shard : c.parameters;  // parameters
  needs.memory += c.activations;
  // The sums of gradients, for the shards; then what a device lacks: the sums,
  // the new parameters, or the parameters in the forward and the backward pass.
  const int gathers = kind == 3 ? 2 : 1;
  for (int i = 0; i < 1 + gathers; ++i) needs.link += c.parameters - shard;
  return needs;
}

bool Fits(const Cluster& c, Sharded sharded) {
  const Needs needs = NeedsOf(c, sharded);
  return needs.memory <= c.memory && needs.link <= c.link;
}

Sharded Expected(const Cluster& c) {
  Sharded best = Sharded::kNoneFits;
  for (const Sharded s : {Sharded::kAll, Sharded::kGradients,
                          Sharded::kMomentum, Sharded::kNothing}) {
    if (!Fits(c, s)) continue;
    if (best == Sharded::kNoneFits ||
        NeedsOf(c, s).link <= NeedsOf(c, best).link) {
      best = s;
    }
  }
  return best;
}

std::string LookAt(const Cluster& c, Sharded got, Sharded expected) {
  if (got == Sharded::kNoneFits) {
    return "One of the ways fits: a device may use all of its memory.";
  }
  const Needs needs = NeedsOf(c, got);
  if (needs.memory > c.memory) {
    return Say(
        "A device needs %s: everything that is not sharded, such as the "
        "activations, is whole on each device.",
        FormatBytes(needs.memory));
  }
  if (needs.link > c.link) {
    return Say(
        "A device receives %s. Sharded parameters are gathered twice in a "
        "step, and the gradients are added up as well.",
        FormatBytes(needs.link));
  }
  return expected < got && NeedsOf(c, expected).link < needs.link
             ? "This way fits, but moves more bytes than needed: shard the "
               "parameters last."
             : "This way fits, but shards more than needed.";
}

void JudgeWhatToShard(Judging& judging, WhatToShard* answer) {
  std::mt19937 random(33);
  const auto pick = [&random](std::int64_t from, std::int64_t to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  for (int i = 0; i < 400; ++i) {
    Cluster c{};
    c.devices = i % 40 == 39 ? 1 : pick(2, 9);
    c.parameters = c.devices * 4 * pick(i % 50 == 1 ? 0 : 1000, 40'000'000);
    c.activations = pick(0, 2) * pick(0, c.parameters);
    // Just enough for one way to shard, or a byte too little, or anything.
    const Needs needs = NeedsOf(c, static_cast<Sharded>(pick(0, 3)));
    c.memory = i % 3 == 0 ? pick(0, 4 * c.parameters + c.activations)
                          : needs.memory - i % 3 + 1;
    c.link = i % 4 == 0 ? needs.link - pick(0, 1) : pick(2, 4) * c.parameters;
    c.memory = std::max<std::int64_t>(c.memory, 0);
    c.link = std::max<std::int64_t>(c.link, 0);
    const Sharded expected = Expected(c), got = answer(c);
    if (got == expected) continue;
    judging.Wrong(
        {Say("%d devices with %s each, of which a step may receive %s; "
             "parameters of %s, activations of %s",
             c.devices, FormatBytes(c.memory), FormatBytes(c.link),
             FormatBytes(c.parameters), FormatBytes(c.activations)),
         NameOf(got), NameOf(expected), LookAt(c, got, expected)});
  }
}

D2L_JUDGE("what_to_shard", JudgeWhatToShard);

}  // namespace
}  // namespace d2l
