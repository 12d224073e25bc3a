// The two devices of this chapter, and sentences on why they, or the streams of
// one, gain less than expected.
//
//   const Timings t = cell.TimeInterleaved(
//       {{"one by one", Both(), one_by_one}, {"both", Both(), run_both}});
//   const Timing& both = t["both"];
//   cell.Claim("Two devices are {} as fast as one after the other.",
//              Faster(both, t["one by one"], kGain),
//              WhyNoGain(both.enqueue.value.median, both, gain));
//
// Sentences are made from the device table and from measurements; they claim
// no cause that was not measured.
//
// The thread that runs the cell calls these functions.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_TWO_DEVICES_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_TWO_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/d2l.h"
#include "common/lesson/cell/cell.h"

namespace d2l {

// A gain must be at least this factor: a smaller one may be noise, though both
// times come from the same repeat.
inline constexpr double kGain = 1.1;

// The course's GPU1 and GPU2: the first two devices of the table. If there is
// only one, both are that one; then nothing can run in parallel.
Device First();
Device Second();
// Both devices, or the only one.
std::vector<Device> Both();
// The devices without repetition.
std::vector<Device> Distinct(std::vector<Device> devices);

// Checks that `got` is x @ x.
void CheckSquare(Cell& cell, const std::string& what, const Tensor& x,
                 const Tensor& got);

// Reports how many times as long b takes as a, repeat by repeat.
Figure Speedup(Cell& cell, const Timing& a, const Timing& b);

// Claims that, of three alternatives, the second (all for one device, then all
// for the other) loses a part of what the third (in turn) gains over the first
// (one after the other), while its calls wait for room in a queue. Reports the
// wait and the loss. calls: how many seconds the calls for the first device
// took, the warm-up first; requests: how many they take if there is room.
void ClaimHeldUp(Cell& cell, const Timings& t, const Judgement& gain,
                 const std::vector<double>& calls, double requests);

// Prints how much faster than one after the other the second of these can be,
// if the other device gets its first product when the first one has done all
// but the `queued` products for which there is room; and how much it is.
void PrintPrediction(const Timings& t, int products, std::int64_t queued);

// Says that there is only one device; `fact` if there are two.
std::string OneDeviceOr(const std::string& fact);
// Why two devices, or four streams of one, gain little. calls: how many seconds
// the calls take.
std::string WhyNoGain(double calls, const Timing& both, const Judgement& gain);
std::string WhyNoStreamGains(const Timing& four, const Judgement& gain);
// Why four streams gain although each large product should fill the device.
std::string WhyNotFull(const Timing& one, const Timing& four, int products);
// Why copies beside products gain little.
std::string WhyNoCopyBeside(const Timing& products, const Timing& copies);
// "The calls take 99 % of the time, to pinned memory 1 %."
std::string CallsTake(const Timing& pageable, const Timing& pinned);
// "On average 1.43 streams worked at the same time."
std::string AtWork(const Timeline& timeline);

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_TWO_DEVICES_H_
