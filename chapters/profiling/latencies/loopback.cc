#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "chapters/profiling/latencies/measure.h"
#include "common/base/console/language.h"

namespace d2l {
namespace {

// After so long without an answer there is none.
constexpr int kTimeoutSeconds = 5;

// What the call returned, unless it failed.
int Check(int result, const char* call) {
  if (result >= 0) return result;
  throw std::system_error(errno, std::generic_category(),
                          absl::StrCat(call, " on 127.0.0.1"));
}

template <typename T>
void SetOption(int fd, int level, int option, const T& value) {
  Check(setsockopt(fd, level, option, &value, sizeof(value)), "setsockopt");
}

// False at the end of the connection.
bool Send(int fd, char byte) { return send(fd, &byte, 1, MSG_NOSIGNAL) == 1; }
bool Receive(int fd, char* byte) { return recv(fd, byte, 1, 0) == 1; }

}  // namespace

Measurement MeasureLoopback(const Budget& budget) {
  const int listener =
      Check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "a socket");
  const absl::Cleanup close_listener = [&] { close(listener); };
  const int client =
      Check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "a socket");
  const absl::Cleanup close_client = [&] { close(client); };
  // Sends what is written at once, and waits for nothing for ever.
  SetOption(client, IPPROTO_TCP, TCP_NODELAY, 1);
  SetOption(client, SOL_SOCKET, SO_RCVTIMEO, timeval{kTimeoutSeconds, 0});
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);  // at a free port
  sockaddr* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  Check(bind(listener, generic, length), "bind");
  Check(listen(listener, 1), "listen");
  Check(getsockname(listener, generic, &length), "getsockname");
  // The system makes the connection before it is accepted.
  Check(connect(client, generic, length), "connect");
  const int server =
      Check(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC), "accept");
  const absl::Cleanup close_server = [&] { close(server); };
  SetOption(server, IPPROTO_TCP, TCP_NODELAY, 1);

  std::thread echo([&] {
    char byte = 0;
    while (Receive(server, &byte) && Send(server, byte)) {
    }
  });
  const absl::Cleanup end_echo = [&] {
    shutdown(client, SHUT_RDWR);  // which ends the loop
    echo.join();
  };
  char sent = 'a';
  return {
      SampleEach(budget,
                 [&] {
                   sent = sent == 'z' ? 'a' : static_cast<char>(sent + 1);
                   char received = 0;
                   if (!Send(client, sent) || !Receive(client, &received) ||
                       received != sent) {
                     throw std::runtime_error(
                         "a byte sent to 127.0.0.1 did not come back");
                   }
                 }),
      Say("a byte over TCP to a thread of this program and back, on 127.0.0.1 "
          "with TCP_NODELAY.")};
}

}  // namespace d2l
