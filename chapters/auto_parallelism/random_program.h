// Random programs on several streams, and whether their results are right.
//
//   std::mt19937_64 random(13);
//   const std::vector<Stream*> streams = TwoStreamsEach();
//   const std::vector<Step> program = RandomProgram(random, 30, streams);
//   Tally tally;
//   tally.Count(program, streams);
//   tally.Compare(Run(program, streams), Run(program, {streams[0]}));
//   tally.AllEqual(tally.Crossings());  // a verdict
//
// A program has value 0 from outside, on First(). Each of its steps makes the
// next value, or overwrites one in place. How a step waits for what it needs is
// left to its caller, the lesson.
//
// Values; not thread-safe.

#ifndef D2L_CHAPTERS_AUTO_PARALLELISM_RANDOM_PROGRAM_H_
#define D2L_CHAPTERS_AUTO_PARALLELISM_RANDOM_PROGRAM_H_

#include <random>
#include <string>
#include <vector>

#include "common/d2l.h"
#include "common/lesson/cell.h"

namespace d2l {

// One operation: which, on which values, where.
struct Step {
  int kind = 0;  // see Compute
  int a = 0, b = 0;
  int stream = 0;         // in the list of streams
  bool in_place = false;  // into a, which is at home on the stream's device
};

std::vector<Step> RandomProgram(std::mt19937_64& random, int steps,
                                const std::vector<Stream*>& streams);

// Of square matrices of numbers from -1 to 1, another such.
Tensor Compute(int kind, const Tensor& a, const Tensor& b);

// A value while a program runs.
struct Value {
  Tensor tensor;
  Event written = {};            // by the last step that did
  std::vector<Event> uses = {};  // by all steps that read or wrote it
};

// Two new streams on each device of the table.
std::vector<Stream*> TwoStreamsEach();

class Tally {
 public:
  // Where the inputs of a program's steps come from.
  void Count(const std::vector<Step>& program,
             const std::vector<Stream*>& streams);
  // Waits for all values; equal are those that have the same bits.
  void Compare(const std::vector<Value>& got,
               const std::vector<Value>& expected);

  // HOLDS if no values differed.
  Judgement AllEqual(const std::string& evidence) const;
  // What was counted, in words.
  std::string Crossings() const;

 private:
  int inputs_ = 0;
  int from_another_stream_ = 0;
  int from_another_device_ = 0;  // of these
  int values_ = 0;
  int wrong_ = 0;
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_AUTO_PARALLELISM_RANDOM_PROGRAM_H_
