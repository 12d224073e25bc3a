#include "chapters/multi_gpu/exercises/judges/two_way_ring.h"

#include <functional>

#include "common/exercise/exercise.h"
#include "common/parallel/collective/schedule.h"

namespace d2l {
namespace {

namespace same_direction {
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  OneWayRing(n, [&](Move m) {
    move(m);
    move({m.step, m.to, m.from, n + m.chunk, m.op});
  });
}
}  // namespace same_direction

namespace same_chunks {
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  OneWayRing(n, [&](Move m) {
    move(m);
    move({m.step, n - 1 - m.to, n - 1 - m.from, m.chunk, m.op});
  });
}
}  // namespace same_chunks

namespace half_of_it {
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  OneWayRing(n, move);
}
}  // namespace half_of_it

namespace mirror_off_by_one {
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  OneWayRing(n, [&](Move m) {
    move(m);
    move({m.step, n - m.to, n - m.from, n + m.chunk, m.op});
  });
}
}  // namespace mirror_off_by_one

namespace swaps_the_ends {
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  OneWayRing(n, [&](Move m) {
    move(m);
    move({m.step, m.from, m.to, n + m.chunk, m.op});
  });
}
}  // namespace swaps_the_ends

namespace one_ring_then_the_other {
void TwoWayRing(int n, const std::function<void(Move)>& move) {
  OneWayRing(n, [&](Move m) {
    move(m);
    move({m.step + 2 * (n - 1), n - 1 - m.to, n - 1 - m.from, n + m.chunk,
          m.op});
  });
}
}  // namespace one_ring_then_the_other

D2L_MISTAKE("two_way_ring", same_direction, TwoWayRing,
            "in the same direction");
D2L_MISTAKE("two_way_ring", same_chunks, TwoWayRing, "chunks of its own");
D2L_MISTAKE("two_way_ring", half_of_it, TwoWayRing, "Half of the array");
D2L_MISTAKE("two_way_ring", mirror_off_by_one, TwoWayRing,
            "between neighbours only");
D2L_MISTAKE("two_way_ring", swaps_the_ends, TwoWayRing, "Mirror each move");
D2L_MISTAKE("two_way_ring", one_ring_then_the_other, TwoWayRing,
            "2 (n - 1) steps are enough");

}  // namespace
}  // namespace d2l
