#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

#include "abi/rsockets/receive_window.h"
#include "abi/rsockets/send_window.h"

namespace weft::rsockets {
namespace {

constexpr Target kFirst{0x1000, 7, 100};

TEST(RsocketsSendWindow, SendsNothingBeforeThePeerIsKnown) {
  SendWindow w{64, 4};
  EXPECT_EQ(w.sendable(), 0u);
  EXPECT_FALSE(w.may_send_message());
  w.open(2, kFirst);
  EXPECT_EQ(w.sendable(), 64u) << "the send buffer is smaller than the peer's";
}

TEST(RsocketsSendWindow, AMessageEndsWithThePeersPiece) {
  SendWindow w{1000, 10};
  w.open(10, kFirst);
  w.grant({0x9000, 8, 50});
  EXPECT_FALSE(w.has_room_for_grant());
  EXPECT_EQ(w.sendable(), 100u);
  const auto first = w.take(60);
  EXPECT_EQ(first.address, 0x1000u);
  EXPECT_EQ(first.key, 7u);
  EXPECT_EQ(w.sendable(), 40u);
  EXPECT_EQ(w.take(40).address, 0x1000u + 60);
  EXPECT_TRUE(w.has_room_for_grant());
  EXPECT_EQ(w.sendable(), 50u);
  EXPECT_EQ(w.take(1).address, 0x9000u);
  EXPECT_EQ(w.take(1).key, 8u);
}

TEST(RsocketsSendWindow, BytesWrapAroundTheSendBuffer) {
  SendWindow w{64, 10};
  w.open(10, {0x1000, 7, 1000});
  (void)w.take(50);
  EXPECT_EQ(w.sendable(), 14u);
  w.completed(50);
  const auto p = w.take(30);
  EXPECT_EQ(p.offset, 50u);
  EXPECT_EQ(p.until_end, 14u);
  EXPECT_EQ(p.from_start, 16u);
}

// The limit is a number of 16 bits, not a number of messages.
TEST(RsocketsSendWindow, CreditsCountAcrossSixteenBits) {
  SendWindow w{64, 1};
  w.open(1, {0, 7, 1u << 30});
  for (uint32_t sent = 0; sent < 70'000; ++sent) {
    ASSERT_EQ(w.sendable(), 64u) << sent;
    (void)w.take(1);
    EXPECT_EQ(w.sendable(), 0u);
    w.completed(1);
    ASSERT_EQ(w.sendable(), 0u) << "no credit, after " << sent;
    w.set_limit(static_cast<uint16_t>(sent + 2));
  }
}

TEST(RsocketsSendWindow, RequestsUnderWayAreBounded) {
  SendWindow w{64, 2};
  w.open(100, kFirst);
  (void)w.take(1);
  w.take_message();
  EXPECT_EQ(w.sendable(), 0u);
  EXPECT_EQ(w.writable(), 0u);
  EXPECT_FALSE(w.all_completed(2));
  w.completed(1);
  w.completed(0);
  EXPECT_TRUE(w.all_completed(2));
  EXPECT_EQ(w.sendable(), 64u);
}

// What is written to mapped memory costs no credit and nothing of the peer's buffer.
TEST(RsocketsSendWindow, MappedWritesTakeTheSendBufferAlone) {
  SendWindow w{64, 3};
  w.open(1, kFirst);
  const auto p = w.take_for(10, 0x5000, 9);
  EXPECT_EQ(p.address, 0x5000u);
  EXPECT_EQ(p.key, 9u);
  EXPECT_EQ(w.writable(), 54u);
  const auto next = w.take(5);
  EXPECT_EQ(next.address, 0x1000u);
  EXPECT_EQ(next.offset, 10u);
}

TEST(RsocketsReceiveWindow, TakesWhatWasGrantedAndNoMore) {
  ReceiveWindow w{128, 8};
  EXPECT_TRUE(w.received(60));
  EXPECT_FALSE(w.received(5)) << "more than the first half";
  EXPECT_FALSE(w.received(0)) << "nobody says that nothing came";
  EXPECT_TRUE(w.received(4));
  const auto news = w.take_news();
  ASSERT_TRUE(news.half);
  EXPECT_EQ(*news.half, 64u);
  EXPECT_TRUE(w.received(64));
  EXPECT_FALSE(w.received(1));
}

TEST(RsocketsReceiveWindow, NoMessageGoesBeyondAHalf) {
  ReceiveWindow w{128, 8};
  (void)w.take_news();
  EXPECT_TRUE(w.received(60));
  EXPECT_FALSE(w.received(5)) << "both halves are granted, and lie apart for the peer";
  EXPECT_TRUE(w.received(4));
  EXPECT_TRUE(w.received(64));
}

TEST(RsocketsReceiveWindow, MessagesThatNobodyReadsAreBounded) {
  ReceiveWindow w{128, 4};
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(w.received(1));
  EXPECT_FALSE(w.received(1)) << "more messages than there were credits";
}

TEST(RsocketsReceiveWindow, AHalfIsGrantedWhenItIsRead) {
  ReceiveWindow w{128, 100};
  (void)w.take_news();
  EXPECT_TRUE(w.received(64));
  w.read(63);
  EXPECT_FALSE(w.has_half());
  w.read(1);
  const auto news = w.take_news();
  ASSERT_TRUE(news.half);
  EXPECT_EQ(*news.half, 0u);
  EXPECT_FALSE(w.has_half());
}

TEST(RsocketsReceiveWindow, CreditsComeBackAfterHalfOfThem) {
  ReceiveWindow w{1 << 16, 8};
  (void)w.take_news();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(w.received(2));
    w.read(2);
    EXPECT_FALSE(w.has_news());
  }
  EXPECT_TRUE(w.received(2));
  w.read(1);
  EXPECT_FALSE(w.has_news()) << "half of a message is none";
  w.read(1);
  EXPECT_TRUE(w.has_news());
  EXPECT_EQ(w.take_news().limit, 4 + 8);
  EXPECT_FALSE(w.has_news());
}

// Both windows against each other, with memory of their own: what goes in comes out, and nobody
// gets stuck.
TEST(RsocketsWindows, AStreamComesAsItWasSent) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 draw{seed};
    const uint32_t send_size = 16 + draw() % 200;
    const uint32_t receive_size = 2 * (8 + draw() % 100);
    const auto credits = static_cast<uint16_t>(2 + draw() % 20);
    const uint32_t slots = 1 + draw() % 20;
    SendWindow send{send_size, slots};
    ReceiveWindow receive{receive_size, credits};
    send.open(credits, {0, 1, receive_size / 2});
    std::vector<uint8_t> send_memory(send_size);
    std::vector<uint8_t> receive_memory(receive_size);
    std::deque<uint32_t> under_way;
    std::deque<ReceiveWindow::News> news;
    uint32_t sent = 0;
    uint32_t read = 0;
    uint32_t stuck = 0;
    while (read < 20'000) {
      ASSERT_LT(stuck, 1000u) << "seed " << seed << ", " << sent << " sent, " << read << " read";
      ++stuck;
      const uint32_t room = send.sendable();
      switch (draw() % 5) {
        case 0:
          if (room > 0) {
            const uint32_t n = 1 + draw() % room;
            const auto p = send.take(n);
            for (uint32_t i = 0; i < n; ++i) {
              send_memory[i < p.until_end ? p.offset + i : i - p.until_end] =
                  static_cast<uint8_t>((sent + i) * 131 >> 3);
            }
            for (uint32_t i = 0; i < n; ++i) {
              ASSERT_LT(p.address + i, receive_size);
              receive_memory[p.address + i] =
                  send_memory[i < p.until_end ? p.offset + i : i - p.until_end];
            }
            sent += n;
            under_way.push_back(n);
            ASSERT_TRUE(receive.received(n)) << "seed " << seed;
          }
          break;
        case 1:
          if (!under_way.empty()) {
            send.completed(under_way.front());
            under_way.pop_front();
          }
          break;
        case 2:
          if (receive.has_news()) news.push_back(receive.take_news());
          break;
        case 3:
          if (!news.empty()) {
            send.set_limit(news.front().limit);
            if (news.front().half) {
              ASSERT_TRUE(send.has_room_for_grant());
              send.grant({*news.front().half, 1, receive_size / 2});
            }
            news.pop_front();
          }
          break;
        default:
          if (receive.available() > 0) {
            const uint32_t n = 1 + draw() % receive.available();
            for (uint32_t i = 0; i < n; ++i) {
              const uint8_t got = receive_memory[(receive.offset() + i) % receive_size];
              ASSERT_EQ(got, static_cast<uint8_t>((read + i) * 131 >> 3))
                  << "seed " << seed << ", byte " << read + i;
            }
            receive.read(n);
            read += n;
            stuck = 0;
          }
      }
    }
  }
}

}  // namespace
}  // namespace weft::rsockets
