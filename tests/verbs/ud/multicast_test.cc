// Groups by the verbs alone: whoever is attached hears what a queue pair of the host sends there
// (spec/wdp-ud 5). Over IPv4 or IPv6, as the first GID is.

#include <gtest/gtest.h>

#include "tests/verbs/ud/member.h"

namespace weft::test {
namespace {

TEST(Multicast, all_members_hear_it_until_they_leave) {
  Member sender;
  Member members[2];
  const ibv_gid g = any_group();
  for (const Member& m : members) {
    ASSERT_EQ(m.attach(g), 0);
    m.receive();
  }
  const AhPtr ah = sender.handle_to(g);
  sender.send(ah.get(), 3);
  EXPECT_TRUE(members[0].hears(3, sender.qp->qp_num));
  EXPECT_TRUE(members[1].hears(3, sender.qp->qp_num));
  ASSERT_EQ(members[1].detach(g), 0);
  members[0].receive();
  members[1].receive();
  sender.send(ah.get(), 5);
  EXPECT_TRUE(members[0].hears(5, sender.qp->qp_num));
  EXPECT_TRUE(members[1].silent());
}

TEST(Multicast, a_member_is_not_destroyed_before_it_leaves) {
  Member member;
  const ibv_gid g = any_group();
  ASSERT_EQ(member.attach(g), 0);
  EXPECT_EQ(ibv_destroy_qp(member.qp.get()), EBUSY);
  Member sender;
  member.receive();
  sender.send(sender.handle_to(g).get(), 3);
  EXPECT_TRUE(member.hears(3, sender.qp->qp_num)) << "as if nothing had been asked";
  ASSERT_EQ(member.detach(g), 0);
  EXPECT_EQ(ibv_destroy_qp(member.qp.release()), 0);
}

// ::ffff:g and ff0e::ffff:g are one IP group. So are ff11::g and ff12::g, whose scope is raised.
TEST(Multicast, a_group_of_two_names_is_heard_once_as_long_as_one_of_them_is_attached) {
  Member sender;
  Member member;
  ibv_gid names[2] = {any_group(), any_group()};
  names[1].raw[1] = 0x11;
  if (is_ipv4(own_gid(sender.a))) {
    for (const size_t i : {0, 1}) names[i] = ipv4_group(i == 1);
  }
  for (const ibv_gid& name : names) ASSERT_EQ(member.attach(name), 0);
  for (size_t i = 0; i < 6; ++i) member.receive(i);
  const AhPtr ah = sender.handle_to(names[0]);
  const uint32_t from = sender.qp->qp_num;
  // A second copy of the first would take the next receive.
  sender.send(ah.get(), 1);
  sender.send(ah.get(), 2);
  EXPECT_TRUE(member.hears(1, from, 0));
  EXPECT_TRUE(member.hears(2, from, 1));
  ASSERT_EQ(member.detach(names[0]), 0);
  EXPECT_EQ(member.detach(names[0]), EINVAL) << "it is not attached by this name any more";
  sender.send(ah.get(), 3);
  sender.send(ah.get(), 4);
  EXPECT_TRUE(member.hears(3, from, 2));
  EXPECT_TRUE(member.hears(4, from, 3));
  ASSERT_EQ(member.detach(names[1]), 0);
  // Somebody else shows that what is sent arrives.
  const Member witness;
  ASSERT_EQ(witness.attach(names[0]), 0);
  witness.receive();
  sender.send(ah.get(), 5);
  EXPECT_TRUE(witness.hears(5, from));
  EXPECT_TRUE(member.silent());
}

// spec/wdp-ud 5.2
TEST(Multicast, a_sender_that_is_a_member_hears_itself) {
  const ibv_gid g = any_group();
  Member a;
  Member b;
  for (const Member* m : {&a, &b}) {
    ASSERT_EQ(m->attach(g), 0);
    m->receive();
  }
  const AhPtr ah = a.handle_to(g);
  a.send(ah.get(), 1);
  const uint32_t own = a.qp->qp_num;
  EXPECT_TRUE(a.hears(1, own));
  EXPECT_TRUE(b.hears(1, own));
  // One that is no member does not.
  ASSERT_EQ(a.detach(g), 0);
  b.receive();
  a.receive();
  a.send(ah.get(), 2);
  EXPECT_TRUE(b.hears(2, own));
  EXPECT_TRUE(a.silent());
}

TEST(Multicast, a_sender_that_blocks_it_does_not_hear_itself) {
  const ibv_gid g = any_group();
  Member a{true, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};
  Member b{true, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB};
  for (const Member* m : {&a, &b}) {
    ASSERT_EQ(m->attach(g), 0);
    m->receive();
  }
  a.send(a.handle_to(g).get(), 1);
  EXPECT_TRUE(b.hears(1, a.qp->qp_num));
  b.send(b.handle_to(g).get(), 2);
  EXPECT_TRUE(a.hears(2, b.qp->qp_num)) << "and not its own";
  EXPECT_TRUE(b.silent());
}

// A queue pair stays attached whatever becomes of it, and hears where it can receive.
TEST(Multicast, members_hear_from_rtr_on_and_not_in_error) {
  const ibv_gid g = any_group();
  Member sender;
  const Member witness;
  const Member member(false);
  ASSERT_EQ(witness.attach(g), 0);
  ASSERT_EQ(member.attach(g), 0);
  const AhPtr ah = sender.handle_to(g);
  const uint32_t from = sender.qp->qp_num;
  const auto goes_out = [&](uint8_t seed) {
    witness.receive();
    sender.send(ah.get(), seed);
    return witness.hears(seed, from);
  };
  member.receive(0);
  EXPECT_TRUE(goes_out(1));
  EXPECT_TRUE(member.silent()) << "INIT";
  member.begin();
  EXPECT_TRUE(goes_out(2));
  EXPECT_TRUE(member.hears(2, from, 0));
  member.to_state(IBV_QPS_ERR);
  EXPECT_TRUE(goes_out(3));
  EXPECT_TRUE(member.silent()) << "error";
  member.to_state(IBV_QPS_RESET);
  member.to_state(IBV_QPS_INIT, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
  member.receive(1);
  member.receive(2);
  member.begin();
  EXPECT_TRUE(goes_out(4));
  EXPECT_TRUE(member.hears(4, from, 1)) << "and once";
  EXPECT_TRUE(goes_out(5));
  EXPECT_TRUE(member.hears(5, from, 2));
}

// Each takes its own last receive, and nobody's socket rests for it.
TEST(Multicast, who_has_no_receive_keeps_nobody_waiting) {
  const ibv_gid g = any_group();
  Member sender;
  const Member poor;
  const Member rich;
  ASSERT_EQ(poor.attach(g), 0);
  ASSERT_EQ(rich.attach(g), 0);
  poor.receive(0);
  for (size_t i = 0; i < Member::kRooms; ++i) rich.receive(i);
  const AhPtr ah = sender.handle_to(g);
  for (uint8_t i = 0; i < Member::kRooms; ++i) sender.send(ah.get(), i);
  for (uint8_t i = 0; i < Member::kRooms; ++i) EXPECT_TRUE(rich.hears(i, sender.qp->qp_num, i));
  EXPECT_TRUE(poor.hears(0, sender.qp->qp_num, 0));
  EXPECT_TRUE(poor.silent());
}

}  // namespace
}  // namespace weft::test
