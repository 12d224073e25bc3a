// Cell: the cost of a message that does not depend on its bytes.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/hardware.h"
#include "common/lesson/cell/benchmark.h"
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {
namespace {

// Two connected ends on 127.0.0.1. Throws std::system_error, also if a message
// does not arrive within five seconds.
class Loopback {
 public:
  enum class Protocol { kTcp, kUdp };

  explicit Loopback(Protocol protocol);

  // Sends a message of `bytes` bytes, at most kLargest, in pieces of at most
  // `piece` from one end to the other, and then a byte back.
  void Exchange(int bytes, int piece);

  static constexpr int kLargest = 1 << 16;

 private:
  const std::pair<Descriptor, Descriptor> ends_;
  char message_[kLargest] = {};
};

// Returns the call's result. Throws if it failed.
int Check(ssize_t result, const char* call) {
  if (result >= 0) return static_cast<int>(result);
  throw std::system_error(errno, std::generic_category(),
                          absl::StrCat(call, " on 127.0.0.1"));
}

// A socket at a free port of 127.0.0.1. Those that it accepts have its options.
Descriptor BoundSocket(bool tcp) {
  const int type = tcp ? SOCK_STREAM : SOCK_DGRAM;
  Descriptor made(Check(socket(AF_INET, type | SOCK_CLOEXEC, 0), "a socket"));
  const auto set = [&](int level, int option, const auto& value) {
    Check(setsockopt(made.get(), level, option, &value, sizeof(value)),
          "setsockopt");
  };
  // What was sent waits here until it is received, by the same thread.
  set(SOL_SOCKET, SO_RCVBUF, 4 * Loopback::kLargest);
  set(SOL_SOCKET, SO_RCVTIMEO, timeval{5, 0});
  set(SOL_SOCKET, SO_SNDTIMEO, timeval{5, 0});
  if (tcp) set(IPPROTO_TCP, TCP_NODELAY, 1);  // each piece is sent at once
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Check(
      bind(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      "bind");
  return made;
}

void Connect(const Descriptor& from, const Descriptor& to) {
  sockaddr_in address = {};
  sockaddr* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  Check(getsockname(to.get(), generic, &length), "getsockname");
  Check(connect(from.get(), generic, length), "connect");
}

// Two sockets that are connected with each other.
std::pair<Descriptor, Descriptor> Connected(bool tcp) {
  Descriptor client = BoundSocket(tcp), server = BoundSocket(tcp);
  if (tcp) Check(listen(server.get(), 1), "listen");
  Connect(client, server);
  if (tcp) {  // the system has made the connection, and it is accepted
    const int end = accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC);
    return {std::move(client), Descriptor(Check(end, "accept"))};
  }
  Connect(server, client);
  return {std::move(client), std::move(server)};
}

Loopback::Loopback(Protocol protocol)
    : ends_(Connected(protocol == Protocol::kTcp)) {}

// %% d2l/hw-packets
// Sends a message in pieces. When all of them have arrived, a byte goes back.
void Loopback::Exchange(int bytes, int piece) {
  const int client = ends_.first.get(), server = ends_.second.get();
  for (int sent = 0; sent < bytes;) {
    const int part = std::min(piece, bytes - sent);
    sent += Check(send(client, message_, part, MSG_NOSIGNAL), "send");
  }
  for (int arrived = 0; arrived < bytes;) {
    arrived += Check(recv(server, message_, kLargest, 0), "recv");
  }
  Check(send(server, message_, 1, MSG_NOSIGNAL), "send");
  Check(recv(client, message_, 1, 0), "recv");
}
// %%

void ClaimBoth(Cell& cell, const Judgement& whole, const Judgement& pieces,
               const std::string& why) {
  cell.Claim("64 KiB take far less than 65,536 times as long as one byte: {}.",
             whole, why);
  cell.Claim("64 KiB take longer in pieces of 1 KiB than at once: {}.", pieces,
             why);
}

// %% d2l/hw-packets, measured
void Packets(Cell& cell) {
  try {
    Loopback tcp(Loopback::Protocol::kTcp), udp(Loopback::Protocol::kUdp);
    const int n = cell.BySize(4, 20, 100), all = 1 << 16;
    const auto send = [n](Loopback& by, int bytes, int piece, int messages) {
      return Loop(n * messages,
                  [&by, bytes, piece] { by.Exchange(bytes, piece); });
    };
    std::vector<Timings> sweep;
    for (const int bytes : {1, 64, 1 << 10, 1 << 13, 1 << 16}) {
      const int piece = all / 2;  // a packet of UDP has less than 64 KiB
      cell.At("bytes in a message", bytes);
      sweep.push_back(
          cell.TimeInterleaved({{"TCP", {}, send(tcp, bytes, piece, 1)},
                                {"UDP", {}, send(udp, bytes, piece, 1)}}));
    }
    cell.AtNoPlace();
    PrintSweep(sweep, n, "time of a message");
    const Timings t = cell.TimeInterleaved(
        {{"one byte", {}, send(tcp, 1, 1, 1)},
         {"64 KiB at once", {}, send(tcp, all, all, 1)},
         {"in 64, one answer", {}, send(tcp, all, all / 64, 1)},
         {"in 64, each answered", {}, send(tcp, all / 64, all / 64, 64)}});
    const auto each = [&](int i) { return Each(t[i].completion, n); };
    ClaimBoth(
        cell,
        Below(RatioPerRepeat("64 KiB / 1 B", t[1].completion, t[0].completion),
              655),
        Both(Faster(t[1], t[3], kClearly), Faster(t[1], t[2], kClearly),
             "with one answer"),
        Say("A byte takes %s, 64 KiB %s at once, %s in pieces, and %s in "
            "pieces with one answer.",
            each(0), each(1), each(3), each(2)));
  } catch (const std::system_error& error) {
    const Judgement unknown = {Verdict::kInconclusive, "?",
                               Say("not measured")};
    ClaimBoth(cell, unknown, unknown,
              Say("The network of this machine does not do it: %s.",
                  std::string(error.what())));
  }
}
// %%
D2L_CELL("d2l/hw-packets", Packets);

// ---- Benchmarks, at the course's size.

MakeHostWork Exchanges(Loopback::Protocol protocol) {
  return [protocol] {
    return [loopback = std::make_shared<Loopback>(protocol)] {
      loopback->Exchange(1 << 10, 1 << 10);
    };
  };
}

[[maybe_unused]] const bool benchmarks[] = {
    BenchmarkHost("BM_d2l_hw_packets_Tcp_Host", 1,
                  Exchanges(Loopback::Protocol::kTcp)),
    BenchmarkHost("BM_d2l_hw_packets_Udp_Host", 1,
                  Exchanges(Loopback::Protocol::kUdp)),
};

}  // namespace
}  // namespace d2l::profiling
