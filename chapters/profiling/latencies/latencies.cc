#include "chapters/profiling/latencies/latencies.h"

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "chapters/profiling/latencies/measure.h"
#include "common/base/console/format.h"
#include "common/base/console/language.h"
#include "common/base/console/text.h"
#include "common/base/statistics.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

constexpr double kNano = 1e-9;
// How many measurements share the time.
constexpr int kMeasurements = 9;

// Runs `measure`, which sets the results. If it throws, the exception says why
// there are none.
void Try(const std::function<void()>& measure,
         const std::vector<Measurement*>& results) try {
  measure();
} catch (const std::exception& error) {
  for (Measurement* const result : results) {
    *result = NotMeasured(absl::StrCat(error.what(), "."));
  }
}

std::string Line(const Phrase& what, const std::string& book,
                 const std::string& yours, const std::string& ratio) {
  std::string line = absl::StrFormat("%s%10s   %-27s%10s", Padded(what, 29),
                                     book, yours, ratio);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

// The book's figures are those of its section 13.4 (d2l.ai,
// chapter_computational-performance/hardware.html), with its words.
std::vector<LatencyRow> MeasureLatencies(Device device,
                                         const LatencyOptions& options) {
  // Also makes the device's worker, the second thread that MeasureMutex needs.
  Synchronize(device);
  Budget budget;
  budget.seconds = options.seconds / kMeasurements;
  MemoryLatencies memory;
  Try([&] { memory = MeasureMemory(options.max_buffer_bytes, budget); },
      {&memory.l1, &memory.l2, &memory.l3, &memory.mib64, &memory.beyond});
  const auto tried = [](auto measure, auto... arguments) {
    Measurement result;
    Try([&] { result = measure(arguments...); }, {&result});
    return result;
  };
  const char* const tested = "TinyMemBench on a Broadwell E5-2690v4, local CPU";
  return {
      {"L1 cache hit", 1.5 * kNano, "4 cycles", memory.l1},
      {"Floating-point addition", 1.5 * kNano,
       "4 cycles, for an addition, a multiplication or both (FMA)",
       tried(MeasureAddition, budget)},
      {"L2 cache hit", 5 * kNano, "12 to 17 cycles", memory.l2},
      {"Branch mispredict", 6 * kNano, "15 to 20 cycles",
       tried(MeasureMispredict, budget)},
      {"L3 cache hit", 16 * kNano,
       "42 cycles, of a line that no other core has; 25 ns if one has it, 40 "
       "ns on another socket",
       memory.l3},
      {"Mutex, lock and unlock", 25 * kNano, "", tried(MeasureMutex, budget)},
      {"Line that another core wrote", 29 * kNano,
       "L3 cache hit, modified in another core: 75 cycles",
       tried(MeasureCacheLine, budget)},
      {"64 MB of memory", 46 * kNano, tested, memory.mib64},
      {"Memory beyond the caches", 75 * kNano,
       Say("256 MB, %s", Phrase(tested)), memory.beyond},
  };
}

std::string LatencyTable(const std::vector<LatencyRow>& rows, bool all) {
  std::string table = Line("", Padded("the book", -10), Padded("yours", 27),
                           Padded("ratio", -10));
  // The reasons, each with the adjacent rows that share it.
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const auto& [what, book, book_text, yours] : rows) {
    const std::string figure = absl::StrFormat("%g ns", book / kNano);
    if (!yours.seconds.empty()) {
      const Summary summary = Summarize(yours.seconds);
      table += Line(Phrase(what), figure, FormatSummary(summary, "s"),
                    FormatFactor(summary.median / book));
      continue;
    }
    table += Line(Phrase(what), figure, "n/a", "");
    if (reasons.empty() || reasons.back().first != yours.why_not) {
      reasons.push_back({yours.why_not, {}});
    }
    reasons.back().second.push_back(Translated(what));
  }
  if (!all) return table;
  absl::StrAppend(
      &table, Say("Yours: the median [and its 95 %% interval]; ratio: yours "
                  "/ the book's.\n"));
  for (const auto& [why_not, whats] : reasons) {
    table += Wrap(Say("n/a: %s: %s", absl::StrJoin(whats, "; "), why_not), "",
                  kTextWidth);
  }
  return table;
}

std::string LatencyNotes(const std::vector<LatencyRow>& rows) {
  std::string notes;
  for (const LatencyRow& row : rows) {
    std::string note;
    if (!row.book_text.empty()) {
      absl::StrAppend(&note, Say(" The book: %s.", Translated(row.book_text)));
    }
    if (!row.yours.how.empty()) {
      absl::StrAppend(&note, Say(" Yours: %s", row.yours.how));
    }
    if (note.empty()) continue;
    notes += Wrap(Say("%s.", Translated(row.what)) + note, "- ", kTextWidth);
  }
  return notes;
}

}  // namespace d2l
