#include "common/lesson/cell/host_library.h"

#include <cblas.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"

namespace d2l {
namespace {

// "", or why OpenBLAS cannot be used. It maps 128 MiB for each of its threads,
// and if the addresses run out it tries again for ever.
std::string TooFewAddresses() {
  const int threads = openblas_get_num_threads();
  const std::size_t bytes = (std::size_t{128} << 20) * threads;
  void* const probe = mmap(nullptr, bytes, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) {
    return absl::StrFormat(
        "[HostMatMul] OpenBLAS needs %d MiB of addresses for its %d threads, "
        "and the limit of this process leaves less. Raise it (ulimit -v), or "
        "set OPENBLAS_NUM_THREADS=1.",
        bytes >> 20, threads);
  }
  munmap(probe, bytes);
  return "";
}

// All threads of OpenBLAS but this one map their memory at the program's start,
// and the program's end waits for them.
[[maybe_unused]] const bool can_end = [] {
  const bool alone = openblas_get_num_threads() == 1;
  const std::string why = alone ? "" : TooFewAddresses();
  if (why.empty()) return true;
  std::cerr << "Error: " << why << "\n";
  _exit(1);
}();

bool PrepareOpenBlas() {
  const std::string why = TooFewAddresses();
  if (!why.empty()) throw std::runtime_error(why);
  openblas_set_num_threads(1);
  return true;
}

}  // namespace

std::vector<float> HostRandn(std::int64_t count) {
  if (count < 0) {
    throw std::invalid_argument(
        absl::StrFormat("[HostRandn] count is negative: %d", count));
  }
  static thread_local std::mt19937 generator;
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < result.size(); i += 2) {
    // A point in the unit disc, except its centre, gives two numbers.
    float x, y, square;
    do {
      x = uniform(generator);
      y = uniform(generator);
      square = x * x + y * y;
    } while (square >= 1 || square == 0);
    const float scale = std::sqrt(-2 * std::log(square) / square);
    result[i] = scale * x;
    if (i + 1 < result.size()) result[i + 1] = scale * y;
  }
  return result;
}

std::vector<float> HostMatMul(const std::vector<float>& a,
                              const std::vector<float>& b, int n) {
  const std::size_t size = static_cast<std::size_t>(n) * n;
  if (n < 0 || a.size() != size || b.size() != size) {
    throw std::invalid_argument(absl::StrFormat(
        "[HostMatMul] %d and %d elements, wanted two %d x %d matrices",
        a.size(), b.size(), n, n));
  }
  static const bool ready = PrepareOpenBlas();
  static_cast<void>(ready);
  std::vector<float> c(size);
  if (n == 0) return c;
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f,
              a.data(), n, b.data(), n, 0.0f, c.data(), n);
  return c;
}

}  // namespace d2l
