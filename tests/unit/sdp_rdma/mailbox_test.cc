#include "sdp/rdma/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace weft::sdp {
namespace {

TEST(Mailbox, WhatIsPutIsTakenInOrderAndNoMoreThanFits) {
  Mailbox mail;
  EXPECT_TRUE(mail.empty());
  for (uint32_t round = 0; round < 3; ++round) {
    uint32_t put = 0;
    while (mail.put({.bytes = put})) ++put;
    EXPECT_EQ(put, Mailbox::kMost + 1) << "one more than a connection has, to say that it is over";
    for (uint32_t i = 0; i < put; ++i) EXPECT_EQ(mail.take().bytes, i);
    EXPECT_TRUE(mail.empty());
  }
}

TEST(Mailbox, OneThreadPutsWhileAnotherOneTakes) {
  constexpr uint32_t kCount = 20'000;
  Mailbox mail;
  std::thread other{[&] {
    for (uint32_t i = 0; i < kCount;) {
      if (mail.put({.bytes = i})) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  }};
  for (uint32_t i = 0; i < kCount;) {
    if (mail.empty()) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(mail.take().bytes, i++);
  }
  other.join();
}

}  // namespace
}  // namespace weft::sdp
