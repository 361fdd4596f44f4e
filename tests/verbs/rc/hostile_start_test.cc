// A peer that says anything instead of a Request or a Reply, over real sockets. Afterwards the
// adapter is as good as new: it takes the next connection, has lost neither descriptor nor thread,
// and no byte was written that the peer had no right to.

#include <algorithm>
#include <functional>

#include "tests/support/counted.h"
#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

using wire::MpaStart;
using wire::Opcode;
namespace term = wire::term;

using HostileStart = HostilePeer;

// --- a queue pair that waits for the Request

// spec/mpa 2.1: wrong key, revision 0 or above 2, PD_Length above 512: closed without a Reply.
// Other private data than WFRC: nobody waits for it.
TEST_F(HostileStart, requests_that_are_none) {
  const QpPtr q = t.waiting_qp();
  const Buffer good = t.request(q);
  const auto with = [&](size_t at, unsigned value) {
    Buffer b = good;
    b[at] = static_cast<std::byte>(value);
    return b;
  };
  Buffer too_long = with(18, 0x02);
  too_long[19] = std::byte{0x01};
  too_long.resize(MpaStart::kSize + 513);
  Buffer block_missing = good;
  block_missing[19] = std::byte{0x03};
  block_missing[18] = std::byte{0};
  block_missing.resize(MpaStart::kSize + 3);
  Buffer reply = good;
  std::memcpy(reply.data() + 7, "Rep", 3);
  Buffer glued = good;
  const Buffer rtr = make_fpdu(tagged({.stag = Stag{1}}));
  glued.insert(glued.end(), rtr.begin(), rtr.end());
  for (const Buffer& bytes : {with(0, 'm'), with(15, 'E'), with(17, 0), with(17, 3), with(17, 0xff),
                              with(18, 0xff), too_long, block_missing, reply, glued}) {
    RawPeer peer = t.dial(q);
    peer.says(bytes);
    const auto answer = peer.hears_the_end();
    ASSERT_TRUE(answer) << "not closed: " << to_hex(bytes);
    EXPECT_EQ(to_hex(*answer), "") << to_hex(bytes);
  }
  t.open(q);  // and the one that it waits for is taken
  t.expect_untouched();
}

// The block names another queue pair, or none: refused, with a Reply (spec/addressing 5.2).
TEST_F(HostileStart, requests_for_somebody_else) {
  const Counted refusals("bring_up_refused");
  const QpPtr q = t.waiting_qp();
  constexpr size_t kBlock = MpaStart::kSize + wire::MpaEnhanced::kSize;
  for (const size_t at : {kBlock, kBlock + 4, kBlock + 11, kBlock + 15}) {
    Buffer bytes = t.request(q);
    bytes[at] ^= std::byte{0x40};
    RawPeer peer = t.dial(q);
    peer.says(bytes);
    const auto answer = peer.hears_the_end();
    ASSERT_TRUE(answer) << at;
    if (answer->empty()) continue;
    ASSERT_GE(answer->size(), MpaStart::kSize);
    const auto start = MpaStart::parse(MpaStart::Kind::reply, answer->data());
    ASSERT_TRUE(start.ok());
    EXPECT_TRUE(start->rejected) << at;
  }
  refusals.expect({{"no_block", 1}, {"other_version", 1}, {"not_your_peer", 1}, {"no_such_qp", 1}});
  t.open(q);
  t.expect_untouched();
}

// spec/addressing 5.6: the address that TCP knows counts, and not the GID that the caller claims to
// have.
TEST_F(HostileStart, a_caller_with_the_gid_of_another) {
  ibv_gid expected{};  // ::ffff:127.0.0.2
  expected.raw[10] = expected.raw[11] = 0xff;
  expected.raw[12] = 127;
  expected.raw[15] = 2;
  const Counted refusals("bring_up_refused");
  const QpPtr q = t.qp();
  to_rtr(q.get(), kPeerQpn, expected, {.reads = kSomeReads});
  RawPeer peer = t.dial(q);
  peer.says(request_frame(expected, kPeerQpn, q->qp_num, 77));
  const auto answer = peer.hears_the_end();
  ASSERT_TRUE(answer);
  constexpr size_t kBlock = MpaStart::kSize + wire::MpaEnhanced::kSize;
  ASSERT_GT(answer->size(), kBlock);
  EXPECT_TRUE(MpaStart::parse(MpaStart::Kind::reply, answer->data())->rejected);
  const auto block = wire::Wfrc::parse(Bytes{*answer}.subspan(kBlock));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->code, wire::Wfrc::Code::not_your_peer);
  refusals.expect({{"not_your_peer", 1}});
  t.expect_untouched();
}

TEST_F(HostileStart, requests_cut_at_every_byte) {
  const QpPtr q = t.waiting_qp();
  const Buffer good = t.request(q);
  for (size_t n = 0; n < good.size(); ++n) {
    RawPeer peer = t.dial(q);
    peer.says(Bytes{good}.first(n));
    if (n % 3 == 0) peer.reset();
    if (n % 3 != 1) continue;
    peer.fin();
    const auto answer = peer.hears_the_end();
    ASSERT_TRUE(answer) << n;
    EXPECT_TRUE(answer->empty()) << n;
  }
  t.open(q);
  t.expect_untouched();
}

TEST_F(HostileStart, random_bytes_instead_of_a_request) {
  const QpPtr q = t.waiting_qp();
  SeededRandom random{11};
  for (int i = 0; i < 60; ++i) {
    Buffer bytes = random_bytes(random, 1 + random.next() % 2000);
    // Half of them look right at first.
    if (i % 2 == 0) {
      const Buffer good = t.request(q);
      std::copy_n(good.begin(), std::min<size_t>(bytes.size(), 16), bytes.begin());
    }
    RawPeer peer = t.dial(q);
    peer.says(bytes);
    peer.fin();
    ASSERT_TRUE(peer.hears_the_end()) << i;
  }
  t.open(q);
  t.expect_untouched();
}

// Those that say nothing hold no descriptor for longer than they live.
TEST_F(HostileStart, callers_that_say_nothing) {
  const QpPtr q = t.waiting_qp();
  std::vector<RawPeer> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(t.dial(q));
  t.open(q);
  t.expect_untouched();
}

// Part IV: what waits for a queue pair to be ready is bounded; the oldest goes, and is told so
// (spec/addressing 5.2).
// How many of them have an answer, as soon as there are so many.
size_t answered(std::vector<RawPeer>& peers, size_t expected) {
  size_t n = 0;
  for (int i = 0; i < 1000; ++i) {
    n = static_cast<size_t>(
        std::count_if(peers.begin(), peers.end(), [](RawPeer& p) { return p.has_news(); }));
    if (n >= expected) break;
    usleep(10'000);
  }
  return n;
}

// RFC 5042 6.4.1: a host that fills the places loses its own, and nobody else's.
TEST_F(HostileStart, a_crowd_of_parked_requests_drives_out_its_own_oldest) {
  constexpr size_t kMost = 256;
  constexpr size_t kMore = 20;
  Gid other;
  std::memcpy(other.raw.data(), t.gid.raw, sizeof t.gid.raw);
  if (!other.is_ipv4()) GTEST_SKIP() << "no IPv4 address on this host";
  other = Gid::from_ipv4(other.ipv4() == 0x7f000002 ? 0x7f000003 : 0x7f000002);
  ibv_gid from{};
  std::memcpy(from.raw, other.raw.data(), sizeof from.raw);
  const Counted refusals("bring_up_refused");
  QpPtr q = t.qp();
  RawPeer alone = RawPeer::connect(from, t.gid, static_cast<uint16_t>(q->qp_num >> 8));
  alone.says(t.request(q));
  usleep(100'000);  // most likely the first one that is parked
  std::vector<RawPeer> crowd;
  for (size_t i = 0; i < kMost - 1 + kMore; ++i) {
    crowd.push_back(t.dial(q));
    crowd.back().says(t.request(q));
  }
  EXPECT_EQ(answered(crowd, kMore), kMore);
  EXPECT_FALSE(alone.has_news());
  refusals.expect({{"parked_too_many", kMore}});
  q.reset();
  t.expect_untouched();
}

TEST_F(HostileStart, more_parked_requests_than_are_kept) {
  constexpr size_t kMost = 256;
  constexpr size_t kMore = 20;
  const Counted refusals("bring_up_refused");
  QpPtr q = t.qp();  // knows no peer yet
  std::vector<RawPeer> callers;
  for (size_t i = 0; i < kMost + kMore; ++i) {
    callers.push_back(t.dial(q));
    callers.back().says(t.request(q));
  }
  EXPECT_EQ(answered(callers, kMore), kMore);
  for (RawPeer& p : callers) {
    if (!p.has_news()) continue;
    const Buffer reply = p.hears(MpaStart::kSize);
    ASSERT_EQ(reply.size(), MpaStart::kSize);
    EXPECT_TRUE(MpaStart::parse(MpaStart::Kind::reply, reply.data())->rejected);
  }
  refusals.expect({{"parked_too_many", kMore}});
  q.reset();
  refusals.expect({{"parked_too_many", kMore}, {"qp_left", kMost}});
  t.expect_untouched();
}

// --- a queue pair that waits for the Reply

// Dials a listener, which answers `reply`; what it hears after that.
Buffer answer_to(Target& t, RawListener& listener, const std::function<Buffer(uint32_t)>& reply,
                 bool fin) {
  const QpPtr q = t.qp();
  const uint32_t peer_qpn = static_cast<uint32_t>(listener.port()) << 8 | 1;
  to_rtr(q.get(), peer_qpn, t.gid, {.reads = kSomeReads});
  to_rts(q.get(), {.reads = kSomeReads});
  // On a busy machine the queue pair before may have dialed once more as it went.
  std::optional<RawPeer> caller;
  Buffer start;
  for (int i = 0; i < 20 && start.empty(); ++i) {
    caller.emplace(listener.accept());
    start = caller->hears(MpaStart::kSize);
  }
  RawPeer& peer = *caller;
  EXPECT_EQ(start.size(), MpaStart::kSize);
  if (start.size() < MpaStart::kSize) return {};
  const auto request = MpaStart::parse(MpaStart::Kind::request, start.data());
  EXPECT_TRUE(request.ok());
  peer.hears(request->private_data_length);
  peer.says(reply(q->qp_num));
  if (fin) peer.fin();
  const auto answer = peer.hears_the_end();
  EXPECT_TRUE(answer) << "not closed";
  return answer.value_or(Buffer{});
}

// spec/mpa 2.1, 2.3, 2.4: Terminate, then close.
TEST_F(HostileStart, replies_that_cannot_be_lived_with) {
  RawListener listener(t.gid);
  const uint32_t own = static_cast<uint32_t>(listener.port()) << 8 | 1;
  const auto changed = [&](const std::function<void(Buffer&)>& change) {
    return [&, change](uint32_t qpn) {
      Buffer b = reply_frame(t.gid, own, qpn);
      change(b);
      return b;
    };
  };
  struct Row {
    std::function<Buffer(uint32_t)> reply;
    wire::TermError error;
  };
  const Row rows[] = {
      {changed([](Buffer& b) { b[8] = std::byte{'x'}; }), term::kMpaBadFrame},
      {changed([](Buffer& b) { std::memcpy(b.data() + 7, "Req", 3); }), term::kMpaBadFrame},
      {changed([](Buffer& b) { b[17] = std::byte{0}; }), term::kMpaBadFrame},
      {changed([](Buffer& b) { b[17] = std::byte{3}; }), term::kMpaBadFrame},
      {changed([](Buffer& b) { b[18] = std::byte{0x40}; }), term::kMpaBadFrame},
      {changed([](Buffer& b) {
         b[19] = std::byte{2};
         b.resize(22);
       }),
       term::kMpaBadFrame},
      // A without B, C or D.
      {changed([](Buffer& b) { b[22] &= std::byte{0x3f}; }), term::kMpaNoMatchingRtr},
      // ORD 129 in the block's last 14 bits. The last, for the queue pair tries again before this
      // connection is at its end.
      {changed([](Buffer& b) { b[23] = std::byte{129}; }), term::kMpaInsufficientIrd},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.error.to_string());
    const Buffer answer = answer_to(t, listener, row.reply, false);
    auto frames = parse_stream(answer);
    if (row.error == term::kMpaInsufficientIrd) {
      // spec/mpa 2.5.6: the RTR frame that the Reply names, and kicks, come before the end.
      ASSERT_GE(frames.size(), 2U);
      while (frames.size() > 1) {
        ASSERT_EQ(names({frames.front()}), "RDMA Write");
        ASSERT_TRUE(frames.front().payload.empty());
        frames.erase(frames.begin());
      }
    }
    ASSERT_EQ(names(frames), "Terminate");
    EXPECT_EQ(wire::Terminate::parse(frames[0].payload, true, false).error, row.error);
  }
}

TEST_F(HostileStart, replies_cut_or_random) {
  RawListener listener(t.gid);
  const uint32_t own = static_cast<uint32_t>(listener.port()) << 8 | 1;
  for (const size_t n : {0U, 1U, 15U, 16U, 19U, 20U, 23U, 24U, 60U, 87U}) {
    SCOPED_TRACE(n);
    const Buffer answer = answer_to(
        t, listener,
        [&](uint32_t qpn) {
          Buffer b = reply_frame(t.gid, own, qpn);
          b.resize(n);
          return b;
        },
        true);
    EXPECT_EQ(to_hex(answer), "");
  }
  SeededRandom random{12};
  for (int i = 0; i < 20; ++i) {
    answer_to(
        t, listener, [&](uint32_t) { return random_bytes(random, 20 + random.next() % 1000); },
        true);
  }
}

// spec/mpa 2.5.4: FPDUs that arrive with the Reply are taken.
TEST_F(HostileStart, a_reply_with_an_fpdu_behind_it) {
  RawListener listener(t.gid);
  const uint32_t own = static_cast<uint32_t>(listener.port()) << 8 | 1;
  const Buffer write = tagged({.stag = t.stag(), .to = t.to() + 5}, pattern(100, 8));
  const Buffer bad = tagged({.stag = Stag{t.mr->rkey ^ 1}, .to = t.to()}, pattern(8, 8));
  const Buffer answer = answer_to(
      t, listener,
      [&](uint32_t qpn) {
        return join({reply_frame(t.gid, own, qpn), make_fpdu(write), make_fpdu(bad)});
      },
      false);
  const auto frames = parse_stream(answer);
  ASSERT_FALSE(frames.empty());
  EXPECT_EQ(frames.back().op(), Opcode::terminate);
  const Buffer written = pattern(100, 8);
  EXPECT_TRUE(std::equal(written.begin(), written.end(), t.memory.begin() + Target::kAround + 5));
}

}  // namespace
}  // namespace weft::test
