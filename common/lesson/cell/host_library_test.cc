#include "common/lesson/cell/host_library.h"

#include <cblas.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "common/base/child_process.h"

namespace d2l {
namespace {

TEST(HostRandn, IsStandardNormal) {
  const int n = 200001;  // odd: the last pair gives one number
  const std::vector<float> x = HostRandn(n);
  ASSERT_EQ(x.size(), static_cast<std::size_t>(n));
  double sum = 0, squares = 0, fourth = 0;
  int within_one = 0;
  for (const float value : x) {
    const double v = value;
    sum += v;
    squares += v * v;
    fourth += v * v * v * v;
    if (std::abs(v) < 1) ++within_one;
  }
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(squares / n, 1, 0.02);
  EXPECT_NEAR(fourth / n, 3, 0.15);
  EXPECT_NEAR(static_cast<double>(within_one) / n, 0.6827, 0.005);
}

TEST(HostRandn, GoesOnAndRejectsNegativeCounts) {
  EXPECT_NE(HostRandn(3), HostRandn(3));
  EXPECT_TRUE(HostRandn(0).empty());
  EXPECT_THROW(HostRandn(-1), std::invalid_argument);
}

TEST(HostMatMul, IsTheProduct) {
  EXPECT_EQ(HostMatMul({1, 2, 3, 4}, {5, 6, 7, 8}, 2),
            (std::vector<float>{19, 22, 43, 50}));
  EXPECT_TRUE(HostMatMul({}, {}, 0).empty());
}

TEST(HostMatMul, AgreesWithTheDefinition) {
  const int n = 37;
  const std::vector<float> a = HostRandn(n * n);
  const std::vector<float> b = HostRandn(n * n);
  const std::vector<float> c = HostMatMul(a, b, n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) {
        sum += static_cast<double>(a[i * n + k]) * b[k * n + j];
      }
      EXPECT_NEAR(c[i * n + j], sum, 1e-4) << i << " " << j;
    }
  }
}

TEST(HostMatMul, RejectsSizesThatDoNotMatch) {
  EXPECT_THROW(HostMatMul({1, 2, 3, 4}, {1, 2, 3}, 2), std::invalid_argument);
  EXPECT_THROW(HostMatMul({1}, {1}, -1), std::invalid_argument);
}

// Gives this program 64 MiB of addresses more than it uses.
[[noreturn]] void MultiplyWithFewAddresses() {
  alarm(60);  // it may not try for ever
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max =
      pages * sysconf(_SC_PAGESIZE) + (std::int64_t{64} << 20);
  setrlimit(RLIMIT_AS, &limit);
  const int n = 512;
  try {
    HostMatMul(std::vector<float>(n * n), std::vector<float>(n * n), n);
  } catch (const std::runtime_error& error) {
    std::cerr << error.what() << std::endl;
  }
  std::_Exit(0);
}

TEST(HostMatMul, SaysThatThereAreTooFewAddresses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs all addresses";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(MultiplyWithFewAddresses(), testing::ExitedWithCode(0),
              "OpenBLAS needs .* MiB of addresses .*ulimit -v");
}

TEST(HostMatMul, AProgramWithTooFewAddressesSaysSoAndEnds) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs all addresses";
#endif
  if (openblas_get_num_threads() == 1) {
    GTEST_SKIP() << "its threads are this one, which needs nothing before use";
  }
  ProgramOptions options;
  options.time_limit = std::chrono::seconds(30);
  const ProgramResult r =
      RunProgram("sh",
                 {"-c", "ulimit -v 300000; exec $0 --gtest_filter=none",
                  std::filesystem::read_symlink("/proc/self/exe").string()},
                 {}, options);
  EXPECT_FALSE(r.timed_out);
  EXPECT_EQ(r.exit_code, 1) << r.output;
  EXPECT_THAT(r.output, testing::HasSubstr(" MiB of addresses for its "));
}

}  // namespace
}  // namespace d2l
