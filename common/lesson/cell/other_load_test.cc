#include "common/lesson/cell/other_load.h"

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <thread>
#include <vector>

#include "common/base/machine.h"

namespace d2l {
namespace {

TEST(OtherLoad, DisturbsWhereCoresAreShort) {
  EXPECT_FALSE((OtherLoad{0.2, 2}.Disturbs(3)));
  EXPECT_TRUE((OtherLoad{0.4, 2}.Disturbs(3)));
  EXPECT_TRUE((OtherLoad{0.4, 2}.Disturbs(2)));
  EXPECT_FALSE((OtherLoad{0.4, 8}.Disturbs(3)));
  EXPECT_TRUE((OtherLoad{5.5, 8}.Disturbs(3)));
  EXPECT_EQ((OtherLoad{1.44, 2}.Text()), "Other programs used 1.4 of 2 cores.");
  EXPECT_EQ((OtherLoad{0.5, 1}.Text()), "Other programs used 0.5 of 1 core.");
}

TEST(LoadWatch, DoesNotCountItself) {
  const LoadWatch watch;
  const std::clock_t before = std::clock();
  // Every core is busy for 300 ms, the length of the measurement.
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + std::chrono::milliseconds(300);
  std::vector<std::thread> threads;
  for (int i = 0; i < UsableCores(); ++i) {
    threads.emplace_back([end] {
      while (std::chrono::steady_clock::now() < end) {
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::optional<OtherLoad> load = watch.Seen();
  const double own = static_cast<double>(std::clock() - before) /
                     static_cast<double>(CLOCKS_PER_SEC);
  const std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  if (!load) GTEST_SKIP() << "/proc/stat says nothing here";
  EXPECT_GE(load->of, 1);
  EXPECT_GE(load->cores, 0);
  // If its own time counted as other load, the sum would exceed the cores.
  EXPECT_LE(load->cores + own / seconds.count(), load->of + 0.4);
}

TEST(LoadWatch, NothingIsSeenInNoTime) {
  const LoadWatch watch;
  const std::optional<OtherLoad> load = watch.Seen();
  EXPECT_TRUE(!load || load->cores == 0);
}

}  // namespace
}  // namespace d2l
