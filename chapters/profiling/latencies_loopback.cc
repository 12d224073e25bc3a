#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies_io.h"
#include "chapters/profiling/latencies_sampling.h"
#include "common/base/timer.h"

namespace d2l {
namespace {

// After so long without an answer there is none.
constexpr int kTimeoutSeconds = 5;

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {
    if (fd_ < 0) Throw("a socket");
  }
  ~Socket() { close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  int fd() const { return fd_; }

  template <typename T>
  void Set(int level, int option, const T& value) {
    Check(setsockopt(fd_, level, option, &value, sizeof(value)), "setsockopt");
  }
  // Nothing is held back to be sent together; no wait is for ever.
  void Configure() {
    Set(IPPROTO_TCP, TCP_NODELAY, 1);
    SetTimeout();
  }
  void SetTimeout() {
    timeval timeout = {};
    timeout.tv_sec = kTimeoutSeconds;
    Set(SOL_SOCKET, SO_RCVTIMEO, timeout);
    Set(SOL_SOCKET, SO_SNDTIMEO, timeout);
  }
  // False at the end of the connection.
  bool Send(char byte) { return send(fd_, &byte, 1, MSG_NOSIGNAL) == 1; }
  bool Receive(char* byte) { return recv(fd_, byte, 1, 0) == 1; }

  static void Check(int result, const char* what) {
    if (result != 0) Throw(what);
  }
  [[noreturn]] static void Throw(const char* what) {
    throw std::system_error(errno, std::generic_category(),
                            absl::StrCat(what, " on 127.0.0.1"));
  }

 private:
  const int fd_;
};

// Sends back what comes, on a thread of its own.
class Echo {
 public:
  Echo(Socket& socket, Socket& peer)
      : peer_(peer), thread_([&socket] {
          char byte = 0;
          while (socket.Receive(&byte) && socket.Send(byte)) {
          }
        }) {}
  ~Echo() {
    shutdown(peer_.fd(), SHUT_RDWR);  // which ends the loop
    thread_.join();
  }

 private:
  Socket& peer_;
  std::thread thread_;
};

}  // namespace

Measurement MeasureLoopback(const Budget& budget) try {
  Socket listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  listener.SetTimeout();
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);  // a free port
  sockaddr* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  Socket::Check(bind(listener.fd(), generic, length), "bind");
  Socket::Check(listen(listener.fd(), 1), "listen");
  Socket::Check(getsockname(listener.fd(), generic, &length), "getsockname");

  Socket client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  client.Configure();
  // The system makes the connection before it is accepted.
  Socket::Check(connect(client.fd(), generic, length), "connect");
  Socket server(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  server.Configure();

  const Echo echo(server, client);
  Measurement result;
  result.nanos = SampleNanos(budget, [&](std::int64_t n) {
    const Timer timer;
    for (std::int64_t i = 0; i < n; ++i) {
      const char sent = static_cast<char>('a' + i % 26);
      char received = 0;
      if (!client.Send(sent) || !client.Receive(&received) ||
          received != sent) {
        throw std::runtime_error("a byte sent to 127.0.0.1 did not come back");
      }
    }
    return timer.Nanos();
  });
  result.how =
      "a byte over TCP to a thread of this program and back, on 127.0.0.1 "
      "with TCP_NODELAY.";
  return result;
} catch (const std::exception& error) {
  return NotMeasured(absl::StrCat(error.what(), "."));
}

}  // namespace d2l
