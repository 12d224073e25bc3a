// Types of the exercise find_the_stall.

#ifndef D2L_CHAPTERS_PROFILING_EXERCISES_JUDGES_FIND_THE_STALL_H_
#define D2L_CHAPTERS_PROFILING_EXERCISES_JUDGES_FIND_THE_STALL_H_

namespace d2l {

// A bar of a timeline: of the front end, which enqueues work or waits, or of
// the device.
struct Bar {
  enum Row { kEnqueue, kWait, kDevice };

  Row row;
  int line;  // of the program: it enqueues, waits, or has enqueued this bar
  double begin, end;  // in milliseconds
};

}  // namespace d2l

#endif  // D2L_CHAPTERS_PROFILING_EXERCISES_JUDGES_FIND_THE_STALL_H_
