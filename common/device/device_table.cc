#include "common/device/device_table.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/base/console/language.h"
#include "common/base/mutex.h"
#include "common/device/listener.h"

namespace d2l {
namespace {

// One device of the table.
struct Entry {
  DeviceInfo info;
  Backend* backend = nullptr;
  StreamOptions stream_options;
  std::unique_ptr<DeviceMemory> memory;
  std::unique_ptr<DeviceMemory> pinned;
  std::unique_ptr<Stream> default_stream;

  Mutex making;  // held while a stream is made, which may wait for the device
  Mutex mutex;   // never held that long
  // The streams other than the default one.
  std::vector<std::unique_ptr<Stream>> streams ABSL_GUARDED_BY(mutex);
  // One of them, once made.
  std::atomic<Stream*> read_stream{nullptr};
};

struct Table {
  std::vector<DeviceInfo> infos;
  std::vector<std::unique_ptr<Entry>> entries;
  // By type and index; null where there is no device.
  std::array<std::array<Entry*, kMaxDevices>, kDeviceTypes> by_name{};
};

Backend& GetBackend(DeviceType type) {
  return type == DeviceType::kCpu ? CpuBackend() : CudaBackend();
}

Mutex table_mutex;                   // held by InitializeDevices
std::atomic<Table*> table{nullptr};  // set once, never deleted

// The streams made current by guards on this thread; null is the default one.
thread_local std::array<std::array<Stream*, kMaxDevices>, kDeviceTypes>
    current_streams{};

absl::Status CheckQueueBound(std::int64_t operations) {
  if (operations >= 1 && operations <= StreamOptions::kUnbounded) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "A queue bound of %d operations was asked for; it must be 1 to %d. "
      "With 0 the first operation would wait for ever; the default is %d.",
      operations, StreamOptions::kUnbounded,
      StreamOptions().max_queued_operations));
}

template <typename F>
void ForEachStream(Entry& entry, F f) {
  f(*entry.default_stream);
  std::vector<Stream*> streams;
  {
    MutexLock lock(entry.mutex);
    for (const auto& stream : entry.streams) streams.push_back(stream.get());
  }
  for (Stream* stream : streams) f(*stream);
}

// At the end of the process: drops what is queued, so that no worker touches an
// object that is already gone, and prints unreported failures.
void StopStreams() {
  Table* t = table.load(std::memory_order_acquire);
  if (t == nullptr) return;
  // If work on a stream calls exit(), it cannot wait for itself; a forked child
  // cannot wait for its parent's threads.
  if (internal::enqueue_mode == internal::kOnWorker || internal::forked_child) {
    return;
  }
  BeginEndOfProgram();
  std::vector<Stream*> streams;
  for (const auto& entry : t->entries) {
    ForEachStream(*entry,
                  [&streams](Stream& stream) { streams.push_back(&stream); });
  }
  for (Stream* stream : streams) stream->Shutdown();
  for (Stream* stream : streams) stream->Drain();
}

Table& GetTable() {
  Table* t = table.load(std::memory_order_acquire);
  if (t != nullptr) return *t;
  // Another thread may win; either way there is a table then.
  const absl::Status status = InitializeDevices();
  t = table.load(std::memory_order_acquire);
  if (t == nullptr) throw std::runtime_error(std::string(status.message()));
  return *t;
}

// Waits for the virtual devices, whatever has failed there: that stays to be
// reported.
void AwaitVirtualDevices() {
  for (const auto& entry : GetTable().entries) {
    if (entry->info.kind != DeviceKind::kVirtual) continue;
    ForEachStream(*entry,
                  [](Stream& stream) { stream.Record().state()->Block(); });
  }
}

void CheckTiming(const VirtualTiming& timing) {
  const auto refuse = [](const std::string& why) {
    throw std::invalid_argument(absl::StrCat("[virtual_timing] ", why));
  };
  if (!(timing.pace >= 0)) {
    refuse(absl::StrFormat("a pace of %g; it must be 0 or more", timing.pace));
  }
  if (internal::active_timing.load() != nullptr) {
    refuse("there is a scope already; end it first");
  }
  if (!timing.links.has_value()) return;
  for (const DeviceInfo& info : GetTable().infos) {
    if (info.kind == DeviceKind::kVirtual &&
        info.device.index() >= timing.links->ranks()) {
      refuse(absl::StrFormat("%s is not in a %s of %d devices",
                             info.device.ToString(), timing.links->name(),
                             timing.links->ranks()));
    }
  }
}

Entry& GetEntry(Device device) {
  Table& t = GetTable();
  const int index = device.index();
  if (index >= 0 && index < kMaxDevices) {
    Entry* entry = t.by_name[static_cast<int>(device.type())][index];
    if (entry != nullptr) return *entry;
  }
  std::vector<std::string> names;
  for (const DeviceInfo& info : t.infos) {
    names.push_back(info.device.ToString());
  }
  throw std::invalid_argument(absl::StrFormat(
      "[device] %s is not in the device table, which has %s. Name it with "
      "--devices, or in InitializeDevices.",
      device.ToString(), absl::StrJoin(names, ", ")));
}

// options: for a bound or cores other than the device's.
Stream& AddStream(Entry& entry, const StreamOptions& options)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry.making) {
  int index = 1;
  {
    MutexLock lock(entry.mutex);
    index += static_cast<int>(entry.streams.size());
  }
  std::unique_ptr<Stream> made = entry.backend->NewStream(
      entry.info.device, entry.info.physical_index, index, options);
  MutexLock lock(entry.mutex);
  entry.streams.push_back(std::move(made));
  return *entry.streams.back();
}

Stream& AddStreamBeside(Entry& entry)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(entry.making) {
  StreamOptions options = entry.stream_options;
  options.beside = true;
  return AddStream(entry, options);
}

std::unique_ptr<Entry> MakeEntry(const DeviceInfo& info,
                                 const DeviceOptions& options) {
  auto entry = std::make_unique<Entry>();
  entry->info = info;
  entry->backend = &GetBackend(info.device.type());
  entry->stream_options = options.stream;
  entry->stream_options.cores = info.cores;
  entry->memory = std::make_unique<DeviceMemory>(
      *entry->backend, info.device, info.physical_index,
      DeviceMemory::Kind::kDevice, options.max_bytes_in_flight);
  entry->pinned = std::make_unique<DeviceMemory>(
      *entry->backend, info.device, info.physical_index,
      DeviceMemory::Kind::kPinned, options.max_bytes_in_flight);
  entry->default_stream = entry->backend->NewStream(
      info.device, info.physical_index, 0, entry->stream_options);
  return entry;
}

}  // namespace

const char* DeviceKindName(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::kVirtual:
      return "virtual";
    case DeviceKind::kLogical:
      return "logical";
    case DeviceKind::kReal:
      return "real";
    case DeviceKind::kModelled:
      return "modelled";
  }
  return "unknown";
}

std::string DeviceInfo::Describe() const {
  const std::string id = device.ToString();
  switch (kind) {
    case DeviceKind::kVirtual:
      return cores == 1 ? Say("%s (virtual, %d core of %s)", id, cores, name)
                        : Say("%s (virtual, %d cores of %s)", id, cores, name);
    case DeviceKind::kLogical:
      return Say("%s (logical, on GPU %d, %s)", id, physical_index, name);
    case DeviceKind::kReal:
      return Say("%s (real, %s)", id, name);
    case DeviceKind::kModelled:
      return Say("%s (modelled, %s)", id, name);
  }
  return id;
}

absl::Status InitializeDevices(absl::string_view spec,
                               const DeviceOptions& options) {
  const absl::Status bound =
      CheckQueueBound(options.stream.max_queued_operations);
  if (!bound.ok()) return bound;
  if (options.max_bytes_in_flight < 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "A bound of %d bytes in flight was asked for; it must be at least 1. "
        "The default is %d.",
        options.max_bytes_in_flight, DeviceOptions().max_bytes_in_flight));
  }
  MutexLock lock(table_mutex);
  if (table.load(std::memory_order_relaxed) != nullptr) {
    return absl::FailedPreconditionError(
        "The device table is already made. Call InitializeDevices once, at "
        "the start of main, before anything uses a device.");
  }
  absl::StatusOr<std::vector<DeviceInfo>> infos = ResolveDevices(
      spec, options.min_devices, GetBackend(DeviceType::kCpu).Inventory(),
      GetBackend(DeviceType::kCuda).Inventory());
  if (!infos.ok()) return infos.status();

  auto made = std::make_unique<Table>();
  made->infos = *std::move(infos);
  for (const DeviceInfo& info : made->infos) {
    try {
      made->entries.push_back(MakeEntry(info, options));
    } catch (const std::runtime_error& error) {
      return absl::ResourceExhaustedError(error.what());
    }
    made->by_name[static_cast<int>(info.device.type())][info.device.index()] =
        made->entries.back().get();
  }
  table.store(made.release(), std::memory_order_release);
  std::atexit(StopStreams);
  return absl::OkStatus();
}

const std::vector<DeviceInfo>& Devices() { return GetTable().infos; }

bool HasDevice(Device device) {
  const int index = device.index();
  return index >= 0 && index < kMaxDevices &&
         GetTable().by_name[static_cast<int>(device.type())][index] != nullptr;
}

int RanksOfDevices() {
  int ranks = 0;
  for (const DeviceInfo& info : Devices()) {
    ranks = std::max(ranks, info.device.index() + 1);
  }
  return ranks;
}

const DeviceInfo& GetDeviceInfo(Device device) { return GetEntry(device).info; }

Stream& DefaultStream(Device device) {
  return *GetEntry(device).default_stream;
}

Stream& NewStream(Device device) {
  return NewStream(device,
                   GetEntry(device).stream_options.max_queued_operations);
}

Stream& NewStream(Device device, std::int64_t max_queued_operations) {
  Entry& entry = GetEntry(device);
  const absl::Status right = CheckQueueBound(max_queued_operations);
  if (!right.ok()) {
    throw std::invalid_argument(
        absl::StrCat("[new_stream] ", std::string(right.message())));
  }
  StreamOptions options = entry.stream_options;
  options.max_queued_operations = max_queued_operations;
  MutexLock lock(entry.making);
  return AddStream(entry, options);
}

Stream& NewStreamBeside(Device device) {
  Entry& entry = GetEntry(device);
  MutexLock lock(entry.making);
  return AddStreamBeside(entry);
}

Stream& CopyStream(Stream& receiver) {
  const auto ready = [&receiver] {
    Stream* const made = receiver.copy_stream();
    return made != nullptr && &made->receiver() == &receiver ? made : nullptr;
  };
  if (internal::enqueue_mode) return receiver;
  if (Stream* const made = ready()) return *made;
  Entry& entry = GetEntry(receiver.device());
  MutexLock lock(entry.making);
  if (Stream* const made = ready()) return *made;
  Stream& made = AddStreamBeside(entry);
  receiver.SetCopyStream(made);
  return made;
}

Stream& ReadStream(Device device) {
  Entry& entry = GetEntry(device);
  if (Stream* made = entry.read_stream.load(std::memory_order_acquire)) {
    return *made;
  }
  MutexLock lock(entry.making);
  if (entry.read_stream.load(std::memory_order_relaxed) == nullptr) {
    entry.read_stream.store(&AddStream(entry, entry.stream_options),
                            std::memory_order_release);
  }
  return *entry.read_stream.load(std::memory_order_relaxed);
}

DeviceMemory& Memory(Device device) { return *GetEntry(device).memory; }

DeviceMemory& PinnedMemory(Device device) { return *GetEntry(device).pinned; }

Stream& CurrentStream(Device device) {
  Entry& entry = GetEntry(device);
  Stream* current =
      current_streams[static_cast<int>(device.type())][device.index()];
  return current != nullptr ? *current : *entry.default_stream;
}

VirtualTimingScope::VirtualTimingScope(const VirtualTiming& timing) {
  CheckTiming(timing);
  AwaitVirtualDevices();
  timing_ = std::make_unique<internal::ActiveTiming>(timing);
  internal::active_timing.store(timing_.get(), std::memory_order_release);
}

VirtualTimingScope::~VirtualTimingScope() {
  AwaitVirtualDevices();
  internal::active_timing.store(nullptr, std::memory_order_release);
}

double VirtualPace() {
  const internal::ActiveTiming* const timing = internal::active_timing.load();
  return timing == nullptr ? 0 : timing->pace;
}

StreamGuard::StreamGuard(Stream& stream)
    // Throws if the stream's device is not in the table.
    : device_(GetEntry(stream.device()).info.device),
      previous_(std::exchange(
          current_streams[static_cast<int>(device_.type())][device_.index()],
          &stream)) {}

StreamGuard::~StreamGuard() {
  current_streams[static_cast<int>(device_.type())][device_.index()] =
      previous_;
}

void Synchronize(Device device, SourceLocation noticed_at) {
  const internal::WaitScope scope("synchronize", noticed_at);
  std::exception_ptr first;
  ForEachStream(GetEntry(device), [&](Stream& stream) {
    try {
      stream.Synchronize(noticed_at);
    } catch (const AsyncError&) {
      if (first == nullptr) first = std::current_exception();
    }
  });
  if (first != nullptr) std::rethrow_exception(first);
}

Device TryGpu(int i) {
  const Device gpu(DeviceType::kCuda, i);
  if (HasDevice(gpu)) return gpu;
  const Device cpu(DeviceType::kCpu, 0);
  return HasDevice(cpu) ? cpu : Devices()[0].device;
}

absl::Status RequireGpus(int count) {
  std::set<int> gpus;
  for (const DeviceInfo& info : Devices()) {
    if (info.device.type() == DeviceType::kCuda &&
        info.kind != DeviceKind::kModelled) {
      gpus.insert(info.physical_index);
    }
  }
  if (static_cast<int>(gpus.size()) >= count) return absl::OkStatus();
  std::vector<std::string> names;
  for (const DeviceInfo& info : Devices()) {
    names.push_back(absl::StrCat(info.device.ToString(), " (",
                                 Translated(DeviceKindName(info.kind)), ")"));
  }
  const std::string devices = absl::StrJoin(names, ", ");
  const DeviceInventory& cuda = GetBackend(DeviceType::kCuda).Inventory();
  const std::string why =
      cuda.devices.empty() || cuda.modelled
          ? cuda.why_none
          : Say("This machine has %d. Ask for fewer with "
                "--require_gpus, or leave it out to run on shared "
                "ones.",
                cuda.devices.size());
  return absl::NotFoundError(
      count == 1
          ? Say("%d GPU required. %s The devices are %s.", count, why, devices)
          : Say("%d GPUs required. %s The devices are %s.", count, why,
                devices));
}

}  // namespace d2l
