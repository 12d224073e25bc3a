// Runs lessons: the body of main() of a lesson and of the course.
//
//   int main(int argc, char** argv) {
//     return d2l::LessonMain(argc, argv, d2l::Program::kLesson);
//   }
//
// The runner reads the flags (flags.h), makes the device table, and runs the
// cells of every linked lesson. For each it prints the text and the question,
// the code's output, the course's output, the verdicts and the conclusion
// (lesson.h); with
// --code the course's code and the C++ first, with --verbose the figures last.
//
// On a terminal a lesson with --cell shows the C++ that the cell teaches before
// the question, without --no_code; and without --no_predict it waits for a
// prediction before it runs a cell. No printed time includes this wait.
//
// If stderr is a terminal, it reports a cell that has taken two seconds, and
// again every ten: "2.4 (cell 4 of 8): 12 s ...".
//
// With --trace or --html the whole run is recorded (run_profile.h).
//
// A process that RunInFreshProcess started runs its probe, and nothing else:
// see fresh_process.h.
//
// SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT end the program at once; a shell
// reports 130 for Ctrl-C. Its output files stay as they were, and no temporary
// files remain. Nothing is coloured, and no line is overwritten.
//
// The exit code is 0 whatever the verdicts; 1 if a result is wrong, an error
// was thrown (it is printed in full, and the next cell runs), a flag is wrong,
// or a file or stdout cannot be written.

#ifndef D2L_COMMON_LESSON_RUN_RUNNER_H_
#define D2L_COMMON_LESSON_RUN_RUNNER_H_

namespace d2l {

// A lesson runs at the course's size and writes one JSON object; the course
// runs at the small size, writes a list, and ends with all verdicts.
enum class Program { kLesson, kCourse };

// Call it once; it returns the exit code.
int LessonMain(int argc, char** argv, Program program);

}  // namespace d2l

#endif  // D2L_COMMON_LESSON_RUN_RUNNER_H_
