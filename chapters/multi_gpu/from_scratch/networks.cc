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
// Device d adds up, or copies, what device d + i of its machine has. The first
// `machines` parts are device 0's, the next ones device 1's.
void InMachines(int machines, int each, int step, MoveOp op, Visitor visit) {
  for (int i = 1; i < each; ++i) {
    for (int to = 0; to < machines * each; ++to) {
      const int d = to % each, other = (d + i) % each;
      const int owner = op == MoveOp::kAdd ? d : other;
      for (int m = 0; m < machines; ++m) {
        visit({step + i, to, to - d + other, owner * machines + m, op});
      }
    }
  }
}

// The same between device d of each machine: one of its parts is machine m's.
void Between(int machines, int each, int step, MoveOp op, Visitor visit) {
  for (int i = 1; i < machines; ++i) {
    for (int to = 0; to < machines * each; ++to) {
      const int d = to % each, m = to / each, other = (m + i) % machines;
      const int owner = op == MoveOp::kAdd ? m : other;
      visit({step + i, to, other * each + d, d * machines + owner, op});
    }
  }
}

// Of the book's seven steps those that move gradients; rank = m * each + d.
CollectiveSchedule Hierarchy(int machines, int each) {
  const int n = machines * each;
  return {"hierarchy", n, n, [=](Visitor visit) {
            InMachines(machines, each, 0, MoveOp::kAdd, visit);       // step 2
            Between(machines, each, n, MoveOp::kAdd, visit);          // 3 and 4
            Between(machines, each, 2 * n, MoveOp::kCopy, visit);     // 5
            InMachines(machines, each, 3 * n, MoveOp::kCopy, visit);  // 6 and 7
          }};
}
// %%

}  // namespace d2l::multi_gpu
