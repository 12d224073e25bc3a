#include <vector>

#include "chapters/multi_gpu/cells.h"
#include "common/d2l.h"

namespace d2l::multi_gpu {

using Visitor = CollectiveSchedule::Visitor;

// %% d2l/networks
// Sums go round each ring, then the results do. Each ring has n parts of the
// array; one whose cables are twice as fast is named twice. Move and Visitor:
// common/parallel/collective/schedule.h
CollectiveSchedule Rings(const std::vector<std::vector<int>>& rings) {
  const int n = static_cast<int>(rings[0].size());
  const int parts = n * static_cast<int>(rings.size());
  return {"rings", n, parts, [=](Visitor visit) {
            for (int step = 0; step < 2 * (n - 1); ++step) {
              for (int part = 0; part < parts; ++part) {
                const std::vector<int>& ring = rings[part / n];
                const int at = (part + step) % n;
                visit({step, ring[(at + 1) % n], ring[at], part,
                       step < n - 1 ? MoveOp::kAdd : MoveOp::kCopy});
              }
            }
          }};
}

// Ranks from `workers` on are servers and begin with zeros: each adds up a part
// and gives it out. No two of them ask the same worker at the same time.
CollectiveSchedule Servers(int workers, int servers) {
  return {"servers", workers + servers, servers, [=](Visitor visit) {
            for (int step = 0; step < 2 * workers; ++step) {
              for (int part = 0; part < servers; ++part) {
                const int worker = (part + step) % workers;
                const int server = workers + part;
                if (step < workers) {
                  visit({step, server, worker, part, MoveOp::kAdd});
                } else {
                  visit({step, worker, server, part, MoveOp::kCopy});
                }
              }
            }
          }};
}
// %% d2l/networks
// Ranks that are `stride` apart, `size` of them, add up what the others have,
// or copy it. In the end rank p has the sum of part p; before that, in each
// group, the member at rank p's place has its group's sum of part p.
void Exchange(int n, int stride, int size, int step, MoveOp op, Visitor visit) {
  for (int i = 1; i < size; ++i) {
    for (int to = 0; to < n; ++to) {
      const int place = to / stride % size, other = (place + i) % size;
      const int from = to + (other - place) * stride;
      const int has_it = op == MoveOp::kAdd ? to : from;
      for (int part = has_it % (stride * size); part < n;
           part += stride * size) {
        visit({step + i, to, from, part, op});
      }
    }
  }
}

// Of the book's seven steps those that move gradients. Rank m * each + d is
// device d of machine m.
CollectiveSchedule Hierarchy(int machines, int each) {
  const int n = machines * each;
  return {"hierarchy", n, n, [=](Visitor visit) {
            Exchange(n, 1, each, 0, MoveOp::kAdd, visit);         // step 2
            Exchange(n, each, machines, n, MoveOp::kAdd, visit);  // 3 and 4
            Exchange(n, each, machines, 2 * n, MoveOp::kCopy, visit);  // 5
            Exchange(n, 1, each, 3 * n, MoveOp::kCopy, visit);  // 6 and 7
          }};
}
// %%

}  // namespace d2l::multi_gpu
