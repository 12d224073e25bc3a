// The memory requests of a block's warps. A request is the accesses of a warp's
// lanes at one place of the source: each lane's first access, then each lane's
// second, and so on. This is an approximation in a loop that lanes leave out,
// or run different numbers of times.
//
// Not thread-safe.

#ifndef D2L_COMMON_KERNELS_CUDA_FAKE_WARP_REQUESTS_H_
#define D2L_COMMON_KERNELS_CUDA_FAKE_WARP_REQUESTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "common/kernels/cuda/fake/check.h"

namespace d2l::kernels::cuda::internal {

class WarpRequests {
 public:
  void Add(unsigned thread, const AccessKind& kind, const void* address) {
    std::vector<Warp>& warps = kinds_[kind];
    const std::size_t number = thread / warpSize, lane = thread % warpSize;
    if (warps.size() <= number) warps.resize(number + 1);
    auto& [times, requests] = warps[number];
    const std::size_t time = times[lane]++;
    if (requests.size() <= time) requests.resize(time + 1);
    requests[time][lane] = reinterpret_cast<std::uintptr_t>(address);
  }

  // Adds the block's requests to its kernel's, and forgets them.
  void AddTo(Site kernel, AllRequests& all) {
    for (const auto& [kind, warps] : kinds_) {
      Requests& sum = all[{kernel, kind}];
      std::tie(std::ignore, sum.shared, sum.writes, sum.bytes) = kind;
      for (const Warp& warp : warps) {
        for (const Request& request : warp.requests) Count(request, sum);
      }
    }
    kinds_.clear();
  }

 private:
  // Each lane's address; 0 if the lane takes no part.
  using Request = std::array<std::uintptr_t, warpSize>;
  struct Warp {
    std::array<std::size_t, warpSize> times{};  // how often each lane was there
    std::vector<Request> requests;
  };

  // The different pieces of memory, of `size` bytes, that the lanes touch with
  // `bytes` bytes each.
  static std::set<std::uintptr_t> Pieces(absl::Span<const std::uintptr_t> lanes,
                                         int bytes, int size) {
    std::set<std::uintptr_t> pieces;
    for (const std::uintptr_t a : lanes) {
      if (a == 0) continue;
      const std::uintptr_t last = (a + bytes - 1) / size;
      for (std::uintptr_t p = a / size; p <= last; ++p) pieces.insert(p);
    }
    return pieces;
  }

  static void Count(const Request& request, Requests& to) {
    const auto starts = Pieces(request, 1, 1);
    if (++to.requests == 1) {
      const int unit = to.shared ? kBanks * kWordBytes : kSectorBytes;
      const std::uintptr_t begin = *starts.begin() / unit * unit;
      for (const std::uintptr_t a : request) {
        to.first.push_back(a == 0 ? -1 : static_cast<std::int64_t>(a - begin));
      }
    }
    to.lanes += warpSize - std::count(request.begin(), request.end(), 0);
    if (!to.shared) {
      to.sectors += Pieces(request, to.bytes, kSectorBytes).size();
      to.ideal_sectors +=
          (starts.size() * to.bytes + kSectorBytes - 1) / kSectorBytes;
      return;
    }
    // A pass serves half of a warp if a lane has 8 bytes, a quarter if it has
    // 16, and one word of each bank.
    const int pass = warpSize * 4 / std::max(4, to.bytes);
    for (int begin = 0; begin < warpSize; begin += pass) {
      std::array<int, kBanks> words{};
      for (const std::uintptr_t word :
           Pieces({&request[begin], std::size_t(pass)}, to.bytes, kWordBytes)) {
        ++words[word % kBanks];
      }
      to.conflicts +=
          std::max(1, *std::max_element(words.begin(), words.end())) - 1;
    }
  }

  std::map<AccessKind, std::vector<Warp>> kinds_;
};

}  // namespace d2l::kernels::cuda::internal

#endif  // D2L_COMMON_KERNELS_CUDA_FAKE_WARP_REQUESTS_H_
