#include "chapters/profiling/latencies.h"

#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies_core.h"
#include "chapters/profiling/latencies_device.h"
#include "chapters/profiling/latencies_io.h"
#include "chapters/profiling/latencies_memory.h"
#include "chapters/profiling/latencies_sampling.h"
#include "chapters/profiling/latencies_threads.h"
#include "common/device/device_table.h"

namespace d2l {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// How many measurements share the time.
constexpr int kMeasurements = 23;

// Fills the rows one after the other.
class Measuring {
 public:
  Measuring(const LatencyOptions& options, std::vector<LatencyRow>* rows)
      : options_(options), rows_(*rows) {}

  Budget budget() const {
    Budget budget;
    budget.seconds = options_.seconds / kMeasurements;
    return budget;
  }

  void Row(const std::string& what, std::optional<double> book_nanos,
           const std::string& book_text,
           const std::function<Measurement()>& measure) {
    Measurement measured;
    try {
      measured = measure();
    } catch (const std::exception& error) {
      measured = NotMeasured(absl::StrCat(error.what(), "."));
    }
    for (const double nanos : measured.nanos) {
      if (!std::isfinite(nanos) || nanos <= 0) {
        measured = NotMeasured(absl::StrCat("a sample was ", nanos, " ns."));
        break;
      }
    }
    rows_.push_back({what, book_nanos, book_text, std::move(measured.nanos),
                     std::move(measured.how), std::move(measured.why_not)});
    if (options_.progress) options_.progress(rows_.back());
  }

 private:
  const LatencyOptions& options_;
  std::vector<LatencyRow>& rows_;
};

// The figures are those of section 13.4 of the book (d2l.ai,
// chapter_computational-performance/hardware.html), with its words.
void MeasureHost(const LatencyOptions& options, Measuring& measuring) {
  const Budget budget = measuring.budget();
  const std::int64_t most = options.max_buffer_bytes;
  measuring.Row("L1 cache hit", 1.5, "4 cycles",
                [&] { return MeasureCache(1, most, budget); });
  measuring.Row("Floating-point addition", 1.5,
                "4 cycles, for an addition, a multiplication or both (FMA)",
                [&] { return MeasureAddition(budget); });
  measuring.Row("L2 cache hit", 5, "12 to 17 cycles",
                [&] { return MeasureCache(2, most, budget); });
  measuring.Row("Branch mispredict", 6, "15 to 20 cycles",
                [&] { return MeasureMispredict(budget); });
  measuring.Row("L3 cache hit", 16,
                "42 cycles, of a line that no other core has; 25 ns if one "
                "has it, 40 ns on another socket",
                [&] { return MeasureCache(3, most, budget); });
  measuring.Row("Mutex, lock and unlock", 25, "",
                [&] { return MeasureMutex(budget); });
  measuring.Row("Atomic addition", std::nullopt, "",
                [&] { return MeasureAtomic(budget); });
  measuring.Row("Line that another core wrote", 29,
                "L3 cache hit, modified in another core: 75 cycles",
                [&] { return MeasureCacheLine(budget); });
  const char* const tested = "TinyMemBench on a Broadwell E5-2690v4, local CPU";
  measuring.Row("64 MB of memory", 46, tested,
                [&] { return MeasureMemory(64 * kMiB, most, budget); });
  measuring.Row("Memory beyond the caches", 75,
                absl::StrCat("256 MB, ", tested),
                [&] { return MeasureBeyondCaches(most, budget); });
  measuring.Row("System call", std::nullopt, "",
                [&] { return MeasureSystemCall(budget); });
  measuring.Row("Context switch", std::nullopt, "",
                [&] { return MeasureContextSwitch(budget); });
  measuring.Row("Wake a thread", std::nullopt, "",
                [&] { return MeasureWakeUp(budget); });
  measuring.Row("Create and join a thread", std::nullopt, "",
                [&] { return MeasureThread(budget); });
}

void MeasureDevice(Device device, Measuring& measuring) {
  const Budget budget = measuring.budget();
  measuring.Row("Enqueue an operation", 10e3,
                "Launch CUDA kernel on GPU: the host instructs it to start",
                [&] { return MeasureEnqueue(device, budget); });
  measuring.Row("Enqueue it and wait", std::nullopt, "",
                [&] { return MeasureCompletion(device, budget); });
  CopyLatencies copies;
  const char* const pcie =
      "PCI-E GPU, ~12 GB/s on a PCIe 3.0 x16 link; either direction";
  measuring.Row("1 MB to the device", 80e3, pcie, [&] {
    copies = MeasureCopies(device, budget);
    return copies.to_device;
  });
  measuring.Row("1 MB from the device", 80e3, pcie, [&] {
    // Both were measured above; if that failed, so does this.
    if (copies.from_device.nanos.empty()) {
      return NotMeasured("the copies to the device failed.");
    }
    return copies.from_device;
  });
  measuring.Row("1 MB to an NVLink GPU", 30e3, "~33 GB/s on NVIDIA NVLink", [] {
    return NotMeasured(
        "it needs GPUs that NVLink joins, and how they are joined is not "
        "asked here.");
  });
  const auto needs_kernel = [] {
    return NotMeasured(
        "it needs a GPU kernel that chases pointers, which is not here.");
  };
  measuring.Row("GPU shared memory", 30,
                "30 to 90 cycles; bank conflicts add latency", needs_kernel);
  measuring.Row("GPU global memory", 200, "200 to 800 cycles", needs_kernel);
}

void MeasureDiskAndNetwork(const LatencyOptions& options,
                           Measuring& measuring) {
  const Budget budget = measuring.budget();
  DiskLatencies disk;
  measuring.Row("Disk: write 4 KB, random", 30e3,
                "DC P3608 NVMe SSD; a SATA SSD 500 us", [&] {
                  disk = MeasureDisk(options.directory.empty()
                                         ? TemporaryDirectory()
                                         : options.directory,
                                     options.file_bytes, budget);
                  return disk.random_write;
                });
  measuring.Row("Disk: read 4 KB, random", 120e3,
                "DC P3608 NVMe SSD; a SATA SSD 500 us, a hard disk 10 ms",
                [&] { return disk.random_read; });
  measuring.Row("Disk: read 1 MB in order", 208e3,
                "DC P3608 NVMe SSD, ~4.8 GB/s; a SATA SSD 2 ms, a hard disk "
                "5 ms",
                [&] { return disk.sequential_read; });
  measuring.Row("Disk: write 1 MB in order", std::nullopt, "",
                [&] { return disk.sequential_write; });
  measuring.Row("TCP to this machine and back", std::nullopt, "",
                [&] { return MeasureLoopback(budget); });
  measuring.Row("Datacenter and back", 500e3, "a ping one way takes ~250 us",
                [] { return NotMeasured("it needs a second machine."); });
}

}  // namespace

std::vector<LatencyRow> MeasureLatencies(Device device,
                                         const LatencyOptions& options) {
  // Also makes the device's worker, the second thread that MeasureMutex needs.
  Synchronize(device);
  std::vector<LatencyRow> rows;
  Measuring measuring(options, &rows);
  MeasureHost(options, measuring);
  MeasureDevice(device, measuring);
  MeasureDiskAndNetwork(options, measuring);
  return rows;
}

}  // namespace d2l
