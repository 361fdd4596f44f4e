#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit/internet.h"
#include "port/fd.h"
#include "stream/outlet.h"

namespace weft::stream {
namespace {

constexpr Shape kShape{.format = Format::raw, .payload = 1024};

// A receiver of TCP streams that reads when it is told to.
class SlowReceiver {
 public:
  SlowReceiver() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // Before the connection: it is the window's bound.
    const int little = 4096;
    ::setsockopt(listener_.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    sockaddr_in any = kit::address_of("127.0.0.1", 0);
    EXPECT_EQ(::bind(listener_.get(), kit::generic(any), sizeof any), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    socklen_t size = sizeof any;
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
    port_ = ntohs(any.sin_port);
  }
  uint16_t port() const { return port_; }
  void accept() { fd_ = port::Fd{::accept(listener_.get(), nullptr, nullptr)}; }
  // What comes up to `size` bytes in all; fewer when the stream ends before.
  std::vector<std::byte> read(size_t size) {
    std::vector<std::byte> all(size);
    size_t n = 0;
    while (n < size) {
      const ssize_t some = ::recv(fd_.get(), all.data() + n, size - n, 0);
      if (some <= 0) break;
      n += static_cast<size_t>(some);
    }
    all.resize(n);
    return all;
  }

 private:
  port::Fd listener_;
  port::Fd fd_;
  uint16_t port_ = 0;
};

// "All has left" is the word of this host's kernel alone. The receiver is told of the end when
// nothing is under way.
TEST(TcpOutlet, WhatHasLeftHasNotArrivedBeforeTheReceiverHasIt) {
  SlowReceiver receiver;
  const auto outlet =
      make_tcp_outlet({.transport = Transport::tcp, .shape = kShape, .address = "127.0.0.1"});
  outlet->connect({{"ends", {{{"port", receiver.port()}}}}});
  receiver.accept();
  EXPECT_EQ(receiver.read(4).size(), 4U) << "the number of the stream";
  const size_t size = kShape.packet_bytes();
  constexpr uint32_t kPackets = 40;  // more than the window, less than this side's buffer
  ASSERT_GE(outlet->room(0, 0, kPackets), kPackets);
  for (uint32_t i = 0; i < kPackets; ++i) {
    std::byte* packet = outlet->slot(0, i);
    for (size_t k = 0; k < size; ++k) packet[k] = static_cast<std::byte>(i * 31 + k * 7 + (k >> 8));
  }
  outlet->send(0, 0, kPackets, true);
  outlet->end();
  ASSERT_TRUE(outlet->progress()) << "the kernel has it";
  EXPECT_FALSE(outlet->arrived());
  const auto all = receiver.read(kPackets * size);
  ASSERT_EQ(all.size(), kPackets * size);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t k = i % size;
    ASSERT_EQ(all[i], static_cast<std::byte>(i / size * 31 + k * 7 + (k >> 8))) << i;
  }
  // The last acknowledgement may wait for a while.
  for (int i = 0; i < 1000 && !outlet->arrived(); ++i) usleep(10'000);
  EXPECT_TRUE(outlet->arrived());
}

}  // namespace
}  // namespace weft::stream
