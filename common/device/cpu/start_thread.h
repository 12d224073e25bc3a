// StartThread: a std::thread, with an error that names the remedy at a thread
// limit.

#ifndef D2L_COMMON_DEVICE_CPU_START_THREAD_H_
#define D2L_COMMON_DEVICE_CPU_START_THREAD_H_

#include <functional>
#include <string>
#include <thread>

namespace d2l {

// Throws std::runtime_error, with the limits on threads and what to do about
// them, if the system starts no thread. name: the thread's user, for the
// message.
std::thread StartThread(const std::string& name, std::function<void()> run);

}  // namespace d2l

#endif  // D2L_COMMON_DEVICE_CPU_START_THREAD_H_
