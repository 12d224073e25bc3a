// The two devices of this chapter, and what is said of them: whether both
// together gain, and what explains it.
//
//   const std::vector<Timing> t = cell.TimeInterleaved(
//       {{"GPU1", {First()}, run1}, {"GPU2", {Second()}, run2},
//        {"both", Both(), run_both}});
//   cell.Claim("Both take less than the sum.",
//              Less(One(), Gain(cell, t[0], t[1], t[2]), kGain), PairFact());
//
// Sentences are made from the device table and from measurements; they claim
// no cause that was not measured.
//
// For the thread that runs the cell.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_TWO_DEVICES_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_TWO_DEVICES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/device/device.h"
#include "common/device/stream.h"
#include "common/lesson/cell.h"
#include "common/lesson/judge.h"

namespace d2l {

// A gain must be at least this: what is less may be noise, though both times
// come from the same repeat.
inline constexpr double kGain = 1.1;

// The course's GPU1 and GPU2: the first two devices of the table. If there is
// only one, both are that one; then nothing can run in parallel, and PairFact
// says so.
Device First();
Device Second();
// The two, or the one.
std::vector<Device> Both();
// The devices without repetition.
std::vector<Device> Distinct(std::vector<Device> devices);

// A new stream for each of the two, on which this many operations may be
// queued. A device that stands for both has one queue: then it is one stream,
// twice.
std::vector<Stream*> StreamsWithRoom(std::int64_t operations);

// "cpu:0 has 1 of the machine's 2 cores, …"
std::string DeviceFact(Device device);
// The same of two, by default First() and Second(), or that they are one.
std::string PairFact();
std::string PairFact(Device a, Device b);
// "Asking took 3 % of the time." Of work that its queues had room for.
std::string AskingFact(const Timing& timing);
// "The front end was held up for 99 % of the time, to pinned memory 1 %."
std::string HeldUpFact(const Timing& pageable, const Timing& pinned);
// "cpu:1 had 4096 of 20000 products left then." And if the two devices are one,
// that they are.
std::string LeftFact(Device device, std::int64_t left, int of);

// "Run on GPU1 time: 1.2626 sec", as the course's timer; for the completion.
void PrintTime(const std::string& prefix, const Timing& timing);

// A speed-up of 1x, to compare with.
Figure One();
// a / b, repeat by repeat, and reported. Of Timings, that of completion. Both
// come from one TimeInterleaved.
Figure Quotient(Cell& cell, const std::string& label, const Figure& a,
                const Figure& b);
Figure Quotient(Cell& cell, const std::string& label, const Timing& a,
                const Timing& b);
// How many times as long as `both` together the two take one after the other,
// reported. Of what could be gained, the sum less the longer one, it prints and
// reports the share that was.
Figure Gain(Cell& cell, const Timing& one, const Timing& two,
            const Timing& both);

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_TWO_DEVICES_H_
