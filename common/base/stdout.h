// CheckStdoutAtExit: a program whose output is lost does not report success.
//
//   int main() {
//     d2l::CheckStdoutAtExit();
//     std::cout << "…";  // > /dev/full: exit code 1, and a sentence on stderr
//   }

#ifndef D2L_COMMON_BASE_STDOUT_H_
#define D2L_COMMON_BASE_STDOUT_H_

namespace d2l {

// Whenever the program exits, by return from main or by exit(): flushes stdout,
// and if anything printed to it could not be written, says so on stderr and
// ends with exit code 1. Call it first in main, before anything opens a file:
// standard streams that are closed are opened so that their numbers are not
// given to files.
void CheckStdoutAtExit();

}  // namespace d2l

#endif  // D2L_COMMON_BASE_STDOUT_H_
