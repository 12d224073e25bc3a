#include "chapters/multi_gpu/exercises/judges/what_to_shard.h"

#include <cstdint>

#include "common/exercise/exercise.h"

namespace d2l {
namespace {

// What one of the mistakes has wrong.
struct Rule {
  int gathers = 2;  // of sharded parameters
  int first = 0;    // the kind to look at first
  int step = 1;
};

Sharded Choose(const Cluster& c, const Rule& rule) {
  const std::int64_t once = c.parameters / c.devices * (c.devices - 1);
  for (int kind = rule.first; kind >= 0 && kind < 4; kind += rule.step) {
    const std::int64_t held = c.activations + c.parameters * (3 - kind) +
                              c.parameters / c.devices * kind;
    const std::int64_t moved = once * (kind == 3 ? 1 + rule.gathers : 2);
    if (held <= c.memory && moved <= c.link) return static_cast<Sharded>(kind);
  }
  return Sharded::kNoneFits;
}

namespace gathered_once {
Sharded WhatToShard(const Cluster& c) {
  Rule rule;
  rule.gathers = 1;
  return Choose(c, rule);
}
}  // namespace gathered_once

namespace all_or_nothing {
Sharded WhatToShard(const Cluster& c) {
  Rule rule;
  rule.step = 3;
  return Choose(c, rule);
}
}  // namespace all_or_nothing

namespace most_first {
Sharded WhatToShard(const Cluster& c) {
  // Gradients before momentum, where the parameters are whole.
  Rule rule;
  rule.first = 2;
  rule.step = -1;
  const Sharded whole = Choose(c, rule);
  rule.first = 3;
  return whole == Sharded::kNoneFits ? Choose(c, rule) : whole;
}
}  // namespace most_first

namespace everything_divided {
Sharded WhatToShard(const Cluster& c) {
  const std::int64_t once = c.parameters / c.devices * (c.devices - 1);
  const std::int64_t all = 3 * c.parameters + c.activations;
  if (all <= c.memory && 2 * once <= c.link) return Sharded::kNothing;
  if (all / c.devices > c.memory) return Sharded::kNoneFits;
  if (2 * once <= c.link) return Sharded::kMomentum;
  return Sharded::kNoneFits;
}
}  // namespace everything_divided

D2L_MISTAKE("what_to_shard", gathered_once, WhatToShard, "gathered twice");
D2L_MISTAKE("what_to_shard", all_or_nothing, WhatToShard,
            "shard the parameters last");
D2L_MISTAKE("what_to_shard", most_first, WhatToShard,
            "shards more than needed");
D2L_MISTAKE("what_to_shard", everything_divided, WhatToShard,
            "is whole on each device");

}  // namespace
}  // namespace d2l
