// The start of the exercise two_way_ring: a ring in one direction.

#ifndef D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_TWO_WAY_RING_H_
#define D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_TWO_WAY_RING_H_

#include <functional>

#include "common/parallel/collective/schedule.h"

namespace d2l {

// The moves of an allreduce over a ring of n ranks and n chunks, in which each
// rank fetches from its left neighbour, rank (to + n - 1) % n.
inline void OneWayRing(int n, const std::function<void(Move)>& move) {
  AllReduceSchedule(AllReduceAlgorithm::kRing, n).ForEach(move);
}

}  // namespace d2l

#endif  // D2L_CHAPTERS_MULTI_GPU_EXERCISES_JUDGES_TWO_WAY_RING_H_
