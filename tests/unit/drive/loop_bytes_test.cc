#include "drive/loop_bytes.h"

#include <gtest/gtest.h>

#include "drive/stream_driver.h"
#include "engine/engine.h"
#include "tests/support/host.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
using test::Buffer;
using test::pattern_bytes;
using work::Operation;
using work::Status;

const port::Address kOwn = port::Address::from_gid(Gid::from_ipv4(INADDR_LOOPBACK), 40001);

Buffer take(const LoopBytes& loop, size_t most) {
  Buffer got(most);
  const IoVec place{got.data(), got.size()};
  got.resize(loop.receive({&place, 1}).bytes);
  return got;
}

TEST(LoopBytes, WhatIsSentComesBackInOrder) {
  LoopBytes loop{kOwn};
  EXPECT_FALSE(loop.readable());
  Buffer first = pattern_bytes(1000, 1);
  Buffer second = pattern_bytes(700, 2);
  const IoVec pieces[] = {{first.data(), first.size()}, {second.data(), second.size()}};
  EXPECT_EQ(loop.send(pieces).bytes, 1700U);
  EXPECT_TRUE(loop.readable());
  Buffer all = first;
  all.insert(all.end(), second.begin(), second.end());
  Buffer got = take(loop, 999);
  const Buffer rest = take(loop, 2000);
  got.insert(got.end(), rest.begin(), rest.end());
  EXPECT_EQ(got, all);
  EXPECT_FALSE(loop.readable());
  const IoVec place{got.data(), got.size()};
  EXPECT_TRUE(loop.receive({&place, 1}).would_block);
}

TEST(LoopBytes, TakesNoMoreThanSoMuch) {
  LoopBytes loop{kOwn};
  Buffer data = pattern_bytes(LoopBytes::kMost + 5000, 3);
  const IoVec piece{data.data(), data.size()};
  EXPECT_EQ(loop.send({&piece, 1}).bytes, LoopBytes::kMost);
  EXPECT_TRUE(loop.send({&piece, 1}).would_block);
  EXPECT_EQ(take(loop, 100), Buffer(data.begin(), data.begin() + 100));
  EXPECT_EQ(loop.send({&piece, 1}).bytes, 100U);
  loop.trim();
  EXPECT_EQ(take(loop, 10), Buffer(data.begin() + 100, data.begin() + 110)) << "it still waits";
}

TEST(LoopBytes, TheEndIsBehindTheBytes) {
  LoopBytes loop{kOwn};
  Buffer data = pattern_bytes(10, 4);
  const IoVec piece{data.data(), data.size()};
  EXPECT_EQ(loop.send({&piece, 1}).bytes, 10U);
  loop.shut_write();
  EXPECT_EQ(loop.send({&piece, 1}).error, EPIPE);
  EXPECT_EQ(take(loop, 20), data);
  EXPECT_TRUE(loop.readable());
  EXPECT_TRUE(loop.receive({&piece, 1}).end);
}

struct LoopOwner final : StreamOwner {
  void visited(Token&) override {}
  void driver_gone(Token&) override { gone = true; }
  bool gone = false;
};

// Of which no descriptor tells.
TEST(LoopBytes, AStreamIsItsOwnPeer) {
  auto engine = engine::Engine::create(0);
  ASSERT_TRUE(engine.ok());
  test::Host host;
  LoopOwner owner;
  Buffer from = pattern_bytes(3 << 20, 5);
  Buffer to(from.size());
  StreamDriver* driver = nullptr;
  {
    auto h = (*engine)->hold();
    auto bytes = std::make_unique<LoopBytes>(kOwn);
    LoopBytes& loop = *bytes;
    auto owned = std::make_unique<StreamDriver>(
        owner, std::move(bytes), host,
        rdmap::StreamConfig{.mpa = {.extension = true, .ird = 4, .ord = 4}, .initiator = true}, 1,
        h.token().now());
    driver = owned.get();
    (*engine)->add(h.token(), std::move(owned), -1, false, false);
    driver->goes_round(loop);
    driver->start(h.token(), {});
    host.post({.operation = Operation::write,
               .signaled = true,
               .remote_stag = host.add_region(to),
               .remote_to = test::address_of(to)},
              {test::segment(host, from)});
    driver->posted(h.token());
  }
  const auto until = [&](auto&& done) {
    for (const Time end = engine::Engine::clock() + 20s; engine::Engine::clock() < end;) {
      (*engine)->progress();
      const auto h = (*engine)->hold();
      if (done()) return true;
    }
    return false;
  };
  ASSERT_TRUE(until([&] { return !host.sent.empty(); }));
  EXPECT_EQ(host.sent[0].status, Status::success);
  EXPECT_TRUE(from == to);
  {
    auto h = (*engine)->hold();
    driver->stream().close(h.token().now());
    driver->settle(h.token());
  }
  EXPECT_TRUE(until([&] { return owner.gone; }));
}

}  // namespace
}  // namespace weft::drive
