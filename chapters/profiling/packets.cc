// Cell: the cost of a message that does not depend on its bytes.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <iostream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chapters/profiling/hardware.h"
#include "common/lesson/cell/cell.h"

namespace d2l::profiling {
namespace {

// Returns the call's result. Throws if it failed.
int Check(ssize_t result, const char* call) {
  if (result >= 0) return static_cast<int>(result);
  throw std::system_error(errno, std::generic_category(),
                          absl::StrCat(call, " on 127.0.0.1"));
}

template <typename T>
void SetOption(const Descriptor& socket, int level, int option,
               const T& value) {
  Check(setsockopt(socket.get(), level, option, &value, sizeof(value)),
        "setsockopt");
}

// Two sockets that are connected with each other.
std::pair<Descriptor, Descriptor> Connected(bool tcp) {
  const int type = (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC;
  const auto make = [&] {
    return Descriptor(Check(socket(AF_INET, type, 0), "a socket"));
  };
  Descriptor client = make(), server = make();
  sockaddr_in address = {};
  sockaddr* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  const auto bind_to_a_free_port = [&](const Descriptor& to) {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = 0;
    Check(bind(to.get(), generic, length), "bind");
    if (tcp) Check(listen(to.get(), 1), "listen");
    Check(getsockname(to.get(), generic, &length), "getsockname");
  };
  bind_to_a_free_port(server);
  // With TCP, the system makes the connection before it is accepted.
  Check(connect(client.get(), generic, length), "connect");
  if (tcp) {
    Descriptor accepted(
        Check(accept4(server.get(), nullptr, nullptr, SOCK_CLOEXEC), "accept"));
    // Written bytes are sent at once.
    SetOption(client, IPPROTO_TCP, TCP_NODELAY, 1);
    SetOption(accepted, IPPROTO_TCP, TCP_NODELAY, 1);
    return {std::move(client), std::move(accepted)};
  }
  Check(getsockname(client.get(), generic, &length), "getsockname");
  Check(connect(server.get(), generic, length), "connect");
  return {std::move(client), std::move(server)};
}

}  // namespace

Loopback::Loopback(Protocol protocol)
    : ends_(Connected(protocol == Protocol::kTcp)), message_(kLargest, 'a') {
  SetOption(ends_.first, SOL_SOCKET, SO_RCVTIMEO, timeval{5, 0});
  answering_ = std::thread([this] { Answer(); });
}

Loopback::~Loopback() {
  expected_ = 0;
  send(ends_.first.get(), message_.data(), 1, MSG_NOSIGNAL);
  shutdown(ends_.first.get(), SHUT_RDWR);
  shutdown(ends_.second.get(), SHUT_RDWR);
  answering_.join();
}

// %% d2l/hw-packets
// Sends a message in pieces, and waits for the one byte with which the other
// side, Loopback::Answer below, answers when all of them are there.
void Loopback::Exchange(int bytes, int piece) {
  const int socket = ends_.first.get();
  expected_ = bytes;
  for (int sent = 0; sent < bytes;) {
    const int part = std::min(piece, bytes - sent);
    sent += Check(send(socket, message_.data(), part, MSG_NOSIGNAL), "send");
  }
  char answer = 0;
  Check(recv(socket, &answer, 1, 0), "recv");
}
// %%

// The other side, which runs in its own thread.
void Loopback::Answer() {
  const int socket = ends_.second.get();
  std::vector<char> arrived(kLargest);
  int bytes = 0;
  while (true) {
    const auto got = recv(socket, arrived.data(), arrived.size(), 0);
    if (got <= 0 || expected_ == 0) return;  // the end
    bytes += static_cast<int>(got);
    if (bytes < expected_) continue;
    bytes = 0;
    send(socket, arrived.data(), 1, MSG_NOSIGNAL);
  }
}

namespace {

std::function<void()> Send(Loopback& by, int times, int bytes, int piece) {
  return Loop(times, [&by, bytes, piece] { by.Exchange(bytes, piece); });
}

// The time of a message by its bytes.
void SweepMessages(Cell& cell, Loopback& tcp, Loopback& udp, int times) {
  constexpr int kPiece = 1 << 15;  // a packet of UDP has less than 64 KiB
  for (const int bytes : {1, 64, 1 << 10, 1 << 13, 1 << 16}) {
    cell.At("bytes in a message", bytes);
    PrintAt(
        FormatBytes(bytes),
        cell.TimeInterleaved({{"TCP", {}, Send(tcp, times, bytes, kPiece)},
                              {"UDP", {}, Send(udp, times, bytes, kPiece)}}),
        times);
  }
  cell.AtNoPlace();
}

void JudgeMessages(Cell& cell, const Judgement& whole, const Judgement& pieces,
                   const std::string& why) {
  cell.Claim(
      "64 KiB take {} as long as one byte, which are 65,536 times as "
      "many.",
      whole, why);
  cell.Claim("In pieces of 1 KiB, 64 KiB take {} as long as at once.", pieces,
             why);
}

}  // namespace

// %% d2l/hw-packets, measured
// Send, SweepMessages and JudgeMessages stand above this cell.
void Packets(Cell& cell) {
  try {
    Loopback tcp(Loopback::Protocol::kTcp), udp(Loopback::Protocol::kUdp);
    const int times = cell.BySize(4, 20, 100), all = 1 << 16;
    SweepMessages(cell, tcp, udp, times);
    const Timings t = cell.TimeInterleaved(
        {{"one byte", {}, Send(tcp, times, 1, 1)},
         {"64 KiB at once", {}, Send(tcp, times, all, all)},
         {"in 64, one answer", {}, Send(tcp, times, all, all / 64)},
         {"in 64, each answered",
          {},
          Send(tcp, 64 * times, all / 64, all / 64)}});
    const auto each = [&](int i) { return Each(t[i].completion, times); };
    const double fixed = t[0].completion.value.median / times;
    const double whole = t[1].completion.value.median / times;
    std::cout << Say("Fitted, TCP: %s for a message, and %s for a KiB of it.\n",
                     FormatDuration(fixed),
                     FormatDuration(std::max(whole - fixed, 0.0) / 64));
    JudgeMessages(
        cell,
        Below(RatioPerRepeat("64 KiB / 1 B", t[1].completion, t[0].completion),
              655),
        Both(Faster(t[1], t[3], kClearly), Faster(t[1], t[2], kClearly),
             "with one answer"),
        Say("A byte takes %s, 64 KiB %s at once, %s in pieces, and %s in "
            "pieces with one answer.",
            each(0), each(1), each(3), each(2)));
  } catch (const std::system_error& error) {
    const Judgement unknown = {Verdict::kInconclusive, "?", error.what()};
    JudgeMessages(cell, unknown, unknown, "");
  }
}
// %%

}  // namespace d2l::profiling
