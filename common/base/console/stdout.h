// CheckStdoutAtExit: makes a program fail if its output could not be written.
//
//   int main() {
//     d2l::CheckStdoutAtExit();
//     std::cout << "…";  // > /dev/full: exit code 1, and a sentence on stderr
//   }

#ifndef D2L_COMMON_BASE_CONSOLE_STDOUT_H_
#define D2L_COMMON_BASE_CONSOLE_STDOUT_H_

namespace d2l {

// At exit, by return from main or by exit(), flushes stdout; if any output
// could not be written, prints so on stderr and exits with code 1. Call it
// first in main, before anything opens a file: it opens closed standard streams
// so that files do not get their descriptors. A file that may not grow any
// larger (ulimit -f) is an error of writing from then on, and not the end of
// the program.
void CheckStdoutAtExit();

}  // namespace d2l

#endif  // D2L_COMMON_BASE_CONSOLE_STDOUT_H_
