// A profiler without memory counts what it cannot record. It listens in
// destructors, which may not throw.

#include <cstdlib>
#include <new>

#include "common/device/listener.h"
#include "common/profiler/collector.h"
#include "common/profiler/profile.h"
#include "common/profiler/profiler.h"
#include "gtest/gtest.h"

namespace {
thread_local bool no_memory = false;
}  // namespace

// Not inlined, lest the compiler take them for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* const memory = no_memory ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace d2l {
namespace {

TEST(ProfilerWithoutMemory, CountsWhatItCannotRecord) {
  ProfilerOptions options;
  options.profile_memory = true;
  Profiler profiler(options);
  constexpr int kRecords = 3000;  // more than fit where there is room already
  {
    const ProfileScope scope(profiler);
    internal::Collector& collector = internal::Collector::Get();
    MemoryRecord memory = {};
    memory.device = Device(DeviceType::kCpu, 0);
    no_memory = true;
    for (int i = 0; i < kRecords; ++i) {
      collector.OnMemory(memory);
      collector.OnWait({"synchronize", {}, 1, 2});
    }
    no_memory = false;
  }
  const Profile& profile = profiler.profile();
  EXPECT_EQ(profile.cut + static_cast<int>(profile.spans.size()), kRecords);
  EXPECT_LT(profile.spans.size(), kRecords);
}

}  // namespace
}  // namespace d2l
