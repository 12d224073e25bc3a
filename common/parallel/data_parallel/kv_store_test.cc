#include "common/parallel/data_parallel/kv_store.h"

#include <string>
#include <vector>

#include "common/device/device_table.h"
#include "common/device/failure.h"
#include "common/device/testing/testing.h"
#include "common/ops/ops.h"
#include "common/ops/testing/testing.h"
#include "gtest/gtest.h"

namespace d2l {
namespace {

class KvStoreTest : public DeviceTest {};
INSTANTIATE_FOR_ALL_DEVICES(KvStoreTest);

TEST_P(KvStoreTest, PushAddsInOrderAndPullCopies) {
  const Device other = OtherDevice(device());
  KvStore store(device());
  const Tensor initial = RandomTensor({3, 2}, other);
  store.Init("w", initial);
  const std::vector<double> first = ValuesOf(initial);
  FillInPlace(initial, 7);  // the store has a copy
  std::vector<Tensor> out = {Zeros({3, 2}, device()), Zeros({3, 2}, other)};
  store.Pull("w", out);
  for (const Tensor& x : out) EXPECT_EQ(ValuesOf(x), first);

  const Tensor a = RandomTensor({3, 2}, other);
  const Tensor b = RandomTensor({3, 2}, device());
  const Tensor c = RandomTensor({3, 2}, other);
  store.Push("w", {a, b, c});
  store.Pull("w", out);
  const Tensor sum = To(a, device()) + b + To(c, device());
  for (const Tensor& x : out) EXPECT_EQ(ValuesOf(x), ValuesOf(sum));
  // One device alone: the value replaces what was there, and is a copy.
  store.Push("w", {b});
  const std::vector<double> last = ValuesOf(b);
  FillInPlace(b, 7);
  store.Pull("w", out);
  for (const Tensor& x : out) EXPECT_EQ(ValuesOf(x), last);
}

TEST_P(KvStoreTest, AnUpdaterCombines) {
  KvStore store(device(), [](const std::string& key, const Tensor& sum,
                             const Tensor& stored) {
    EXPECT_EQ(key, "w");
    CopyTo(stored - sum * 0.5, stored);
  });
  store.Init("w", Full({4}, 10, device()));
  for (int step = 0; step < 2; ++step) {
    store.Push("w", {Full({4}, 1, device()), Full({4}, 3, device())});
  }
  const Tensor out = Zeros({4}, device());
  store.Pull("w", {out});
  EXPECT_EQ(ToVector<float>(out), std::vector<float>(4, 6));
}

TEST(KvStore, AFailedValueFailsWhatIsPulled) {
  const Device cpu(DeviceType::kCpu, 0);
  KvStore store(cpu);
  store.Init("w", Ones({2}, cpu));
  const Tensor index = FromVector<std::int64_t>({9, 0}, {2}, cpu);
  const Tensor out = Zeros({2}, cpu);
  EXPECT_THROW(
      {
        store.Push("w", {IndexSelect(Ones({2}, cpu), 0, index)});
        store.Pull("w", {out});
        ToVector<float>(out);
      },
      AsyncError);
  // If the device is fast enough, Push throws, and then Synchronize again.
  try {
    Synchronize(cpu);
  } catch (const AsyncError&) {
  }
  store.Push("w", {Full({2}, 5, cpu)});
  store.Pull("w", {out});
  EXPECT_EQ(ToVector<float>(out), std::vector<float>(2, 5));
}

TEST(KvStore, RefusesWhatItDoesNotHold) {
  const Device cpu(DeviceType::kCpu, 0);
  KvStore store(cpu);
  const Tensor x = Ones({2}, cpu);
  EXPECT_REFUSED("[pull] no key \"w\"; there are: none; make it with Init",
                 store.Pull("w", {x}));
  store.Init("w", x);
  store.Init("b", x);
  EXPECT_REFUSED("[push] no key \"v\"; there are: b, w; make it with Init",
                 store.Push("v", {x}));
  EXPECT_REFUSED("[init] the key \"w\" is there already; change it with Push",
                 store.Init("w", x));
  EXPECT_REFUSED("[push] a tensor for each device wanted; got none",
                 store.Push("w", {}));
  EXPECT_REFUSED(
      "[pull] under \"w\" is a float32 tensor of shape (2) on cpu:0; "
      "got a float32 tensor of shape (3) on cpu:0",
      store.Pull("w", {Ones({3}, cpu)}));
}

}  // namespace
}  // namespace d2l
