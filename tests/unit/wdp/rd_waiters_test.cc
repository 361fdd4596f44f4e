#include "wdp/rd_waiters.h"

#include <gtest/gtest.h>

#include <array>

namespace weft::wdp {
namespace {

constexpr Time kStart = Time::from_ns(1'000'000'000);

struct RdWaitersTest : ::testing::Test {
  struct Client final : RdClient {
    void message_ended(uint64_t, End) override {}
    void has_room() override {
      ++told;
      if (again != nullptr) again->want_room(id);
    }
    void look_for_rest(Time) override {
      ++asked;
      if (again != nullptr) again->want_rest(id, kStart);
    }
    ClientId id = 0;
    RdWaiters* again = nullptr;  // waits on
    int told = 0;
    int asked = 0;
  };
  struct Shared final : RdShared {
    bool take(RdChannel&, const RdArrival&, Bytes) override { return true; }
    void answered(RdChannel&, const wire::WdpResponse&) override {}
    RdClient* client(ClientId id) override { return id == 0 ? nullptr : &clients[id]; }
    void waits(RdChannel&, uint8_t) override {}
    void refused(const Path&, Time) override {}
    const std::shared_ptr<RdBudget>& budget() override { return none; }
    void dropped(wire::WdpDrop) override {}
    void ended(RdChannel&) override {}
    std::shared_ptr<RdBudget> none;
    std::array<Client, 3> clients;
  };
  RdWaitersTest() {
    for (ClientId id = 1; id < 3; ++id) shared.clients[id].id = id;
  }

  Shared shared;
  RdWaiters waiters{shared};
  Client& one = shared.clients[1];
  Client& two = shared.clients[2];
};

TEST_F(RdWaitersTest, EachHearsOfRoomOnce) {
  EXPECT_FALSE(waiters.any_wants_room());
  waiters.want_room(1);
  waiters.want_room(2);
  waiters.want_room(1);
  waiters.want_room(0);  // it goes
  EXPECT_TRUE(waiters.any_wants_room());
  waiters.tell_of_room();
  waiters.tell_of_room();
  EXPECT_EQ(one.told, 1);
  EXPECT_EQ(two.told, 1);
}

TEST_F(RdWaitersTest, WhoWaitsOnIsToldTheNextTime) {
  one.again = &waiters;
  waiters.want_room(1);
  waiters.tell_of_room();
  EXPECT_EQ(one.told, 1);
  EXPECT_TRUE(waiters.any_wants_room());
  waiters.tell_of_room();
  EXPECT_EQ(one.told, 2);
}

TEST_F(RdWaitersTest, WhoMayRestIsAskedLater) {
  waiters.want_rest(1, kStart);
  waiters.want_rest(2, kStart + 1s);
  EXPECT_EQ(waiters.deadline(), kStart + kWindowRests) << "both at once";
  waiters.tick(kStart + kWindowRests - 1ns);
  EXPECT_EQ(one.asked, 0);
  waiters.tick(kStart + kWindowRests);
  EXPECT_EQ(one.asked, 1);
  EXPECT_EQ(two.asked, 1);
  EXPECT_TRUE(waiters.deadline().is_never());
}

TEST_F(RdWaitersTest, AndAgainWhereItDoesNot) {
  one.again = &waiters;
  waiters.want_rest(1, kStart);
  const Time now = kStart + kWindowRests;
  waiters.tick(now);
  EXPECT_EQ(waiters.deadline(), now + kWindowRests);
}

}  // namespace
}  // namespace weft::wdp
