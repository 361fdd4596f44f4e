// Two connections and the wire between them, for tests: each side sends what it may, in any order
// that the test chooses.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "sdp/core/connection.h"

namespace weft::sdp::testing {

// Byte `i` of the stream that side `side` sends.
inline std::byte stream_byte(int side, uint64_t i) {
  return static_cast<std::byte>((i * 131 + (i >> 8) * 17 + static_cast<uint64_t>(side) * 91) &
                                0xff);
}

class Side {
 public:
  static constexpr uint16_t kBufs = 6;
  static constexpr uint32_t kReceive = 200;
  static constexpr uint8_t kAdverts = 2;

  explicit Side(int number)
      : number_(number),
        connection({.own_bufs = kBufs,
                    .peer_bufs = kBufs,
                    .own_receive_size = kReceive,
                    .peer_receive_size = kReceive,
                    .own_max_adverts = kAdverts,
                    .peer_max_adverts = kAdverts}) {}

  void send_controls() {
    while (const auto m = connection.next_control()) {
      out.emplace_back(m->bytes.begin(), m->bytes.begin() + m->length);
    }
  }
  bool send_data(uint32_t length) {
    if (!connection.data_may_go()) return false;
    std::vector<std::byte> m(Bsdh::kSize + length);
    for (uint32_t i = 0; i < length; ++i) m[Bsdh::kSize + i] = stream_byte(number_, sent + i);
    connection.send_data(m.data(), length, 0);
    sent += length;
    out.push_back(std::move(m));
    return true;
  }
  bool advertise(uint32_t length) {
    if (!connection.may_advertise()) return false;
    const auto m = connection.send_src_avail({length, 7, sent}, stream_byte(number_, sent));
    out.emplace_back(m.bytes.begin(), m.bytes.begin() + m.length);
    return true;
  }
  // Write ZCopy: this side advertises a buffer, or writes to one of the peer's.
  bool offer(uint32_t length) {
    if (!connection.may_send_sink_avail()) return false;
    const uint64_t to = 1'000'000 * ++offered_;
    const auto m = connection.send_sink_avail(length, 8, to);
    out.emplace_back(m.bytes.begin(), m.bytes.begin() + m.length);
    offers.push_back(to);
    return true;
  }
  bool write(uint32_t most) {
    if (!connection.may_write()) return false;
    const auto piece = connection.start_write(most);
    writes.push_back({piece.to, sent, piece.length});
    sent += piece.length;
    return true;
  }
  void collect() {
    if (const auto outcome = connection.take_outcome()) sent += outcome->bytes, ++outcomes;
    while (const auto written = connection.take_written()) {
      ASSERT_FALSE(offers.empty());
      if (*written > 0) {
        ASSERT_FALSE(peer->writes.empty());
        const Write write = peer->writes.front();
        peer->writes.pop_front();
        ASSERT_EQ(write.to, offers.front()) << "another buffer was written to";
        ASSERT_EQ(write.at, received) << "the Write is not in the stream's order";
        ASSERT_EQ(write.length, *written);
        received += *written;
      }
      offers.pop_front();
    }
  }

  // Takes a message that `from` sent. A side that has no receive for it is a failure of credits.
  void take(const std::vector<std::byte>& message) {
    ASSERT_GT(receives, 0) << "a message came without a credit";
    --receives;
    const auto in = connection.on_message(message);
    ASSERT_TRUE(in.ok()) << text(in.error());
    for (const std::byte b : in->payload) {
      ASSERT_EQ(b, stream_byte(1 - number_, received)) << "at " << received;
      ++received;
    }
    collect();
  }
  void repost() {
    for (; receives < kBufs; ++receives) connection.posted();
  }
  // Reads of what the peer advertised take the bytes as they are when they end.
  void start_read(uint32_t most) {
    if (connection.sink().available() == 0) return;
    const auto piece = connection.start_read(most);
    reads.push_back(piece);
  }
  void finish_read() {
    if (reads.empty()) return;
    ASSERT_EQ(reads.front().to, received) << "the buffer is not read in the stream's order";
    received += reads.front().length;
    connection.finish_read(reads.front().length);
    reads.pop_front();
  }

  const int number_;
  Connection connection;
  std::deque<std::vector<std::byte>> out;
  std::deque<Sink::Piece> reads;
  int receives = kBufs;
  uint64_t sent = 0;
  uint64_t received = 0;
  int outcomes = 0;
  struct Write {
    uint64_t to = 0;
    uint64_t at = 0;  // in the stream
    uint32_t length = 0;
  };
  Side* peer = nullptr;
  std::deque<uint64_t> offers;  // own buffers without an outcome
  std::deque<Write> writes;     // to the peer's buffers, that it has not heard of

 private:
  uint64_t offered_ = 0;
};

}  // namespace weft::sdp::testing
