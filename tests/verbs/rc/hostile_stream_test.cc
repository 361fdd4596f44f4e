// A peer that says anything in every part of the stream, over real sockets. Afterwards the adapter
// is as good as new: it takes the next connection, has lost neither descriptor nor thread, and no
// byte was written that the peer had no right to.

#include <sys/mman.h>

#include <array>
#include <fstream>
#include <functional>

#include "tests/verbs/raw_target.h"

namespace weft::test {
namespace {

using wire::Opcode;

using HostileStream = HostilePeer;

// Where in the stream the bytes come that do not belong there.
enum class Point : uint8_t { first, between, in_length, in_header, in_payload, placed, in_send };
constexpr std::array kPoints = {Point::first,     Point::between,    Point::in_length,
                                Point::in_header, Point::in_payload, Point::placed,
                                Point::in_send};

void bring_to(Point point, Target& t, RawPeer& peer) {
  const Buffer write = make_fpdu(tagged({.stag = t.stag(), .to = t.to()}, pattern(300, 5)));
  switch (point) {
    case Point::first:
      return;
    case Point::between:
      return peer.says(write);
    case Point::in_length:
      return peer.says(Bytes{write}.first(1));
    case Point::in_header:
      return peer.says(Bytes{write}.first(10));
    case Point::in_payload:
      return peer.says(Bytes{write}.first(100));
    case Point::placed:
      // Large enough to be received straight to its place.
      return peer.says(
          Bytes{make_fpdu(tagged({.stag = t.stag(), .to = t.to()}, pattern(40'000, 5)))}.first(
              30'000));
    case Point::in_send:
      return peer.says_ulpdu(untagged({.last = false}, pattern(200, 6)));
  }
}

struct Bad {
  const char* name;
  std::function<void(Target&, RawPeer&, SeededRandom&)> say;
};
const Bad kBad[] = {
    {"nothing more", [](Target&, RawPeer&, SeededRandom&) {}},
    {"random bytes",
     [](Target&, RawPeer& p, SeededRandom& r) { p.says(random_bytes(r, 1 + r.next() % 5000)); }},
    {"a good header and random bytes",
     [](Target& t, RawPeer& p, SeededRandom& r) {
       Buffer u = tagged({.stag = t.stag(), .to = t.to()}, random_bytes(r, 50'000));
       Buffer frame = make_fpdu(u);
       frame.back() ^= std::byte{1};
       p.says(frame);
     }},
    {"the largest length",
     [](Target&, RawPeer& p, SeededRandom&) { p.says(Buffer(70'000, std::byte{0xff})); }},
    {"zeros", [](Target&, RawPeer& p, SeededRandom&) { p.says(Buffer(5000)); }},
    {"a wrong key",
     [](Target& t, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(tagged({.stag = Stag{t.mr->rkey ^ 0x55}, .to = t.to()}, pattern(100, 1)));
     }},
    {"one byte before the region",
     [](Target& t, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(tagged({.stag = t.stag(), .to = t.to() - 1}, pattern(100, 1)));
     }},
    {"one byte past the region",
     [](Target& t, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(
           tagged({.stag = t.stag(), .to = t.to() + Target::kRegion - 99}, pattern(100, 1)));
     }},
    {"a large one past the region",
     [](Target& t, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(
           tagged({.stag = t.stag(), .to = t.to() + Target::kRegion - 39'999}, pattern(40'000, 1)));
     }},
    {"memory that is not for it",
     [](Target& t, RawPeer& p, SeededRandom&) {
       const auto to = reinterpret_cast<uintptr_t>(t.inbox.data()) + 1024;
       p.says_ulpdu(tagged({.stag = Stag{t.inbox_mr->rkey}, .to = to}, pattern(100, 1)));
     }},
    {"a Send longer than its receive",
     [](Target&, RawPeer& p, SeededRandom&) { p.says_ulpdu(untagged({}, pattern(1025, 1))); }},
    {"reads beyond the region and the IRD",
     [](Target& t, RawPeer& p, SeededRandom&) {
       for (uint32_t msn = 1; msn <= 2U * kSomeReads; ++msn) {
         p.says_ulpdu(read_request(
             msn, {.sink_stag = Stag{5},
                   .size = static_cast<uint32_t>(Target::kRegion) + (msn == 8 ? 1U : 0U),
                   .source_stag = t.stag(),
                   .source_to = TaggedOffset{t.to()}}));
       }
     }},
    {"a response that nobody asked for",
     [](Target& t, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(
           tagged({.op = Opcode::read_response, .stag = t.stag(), .to = t.to()}, pattern(100, 1)));
     }},
    {"an atomic on a misaligned word",
     [](Target& t, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(atomic_request(1, {.stag = t.stag(), .to = TaggedOffset{t.to() | 1}}));
     }},
    {"a Terminate that is cut off",
     [](Target&, RawPeer& p, SeededRandom&) {
       p.says_ulpdu(untagged({.op = Opcode::terminate, .qn = 2}, Buffer(3)));
     }},
    {"good messages in random disorder",
     [](Target& t, RawPeer& p, SeededRandom& r) {
       for (int i = 0; i < 30; ++i) {
         Buffer u =
             r.next() % 2 == 0
                 ? tagged({.stag = t.stag(), .to = t.to() + r.next() % Target::kRegion},
                          random_bytes(r, r.next() % 3000))
                 : untagged({.msn = static_cast<uint32_t>(r.next() % 3), .last = r.next() % 2 == 0},
                            random_bytes(r, r.next() % 600));
         if (r.next() % 4 == 0) u[r.next() % u.size()] ^= static_cast<std::byte>(r.next());
         p.says_ulpdu(u);
       }
     }},
};

// spec/errors 4, spec/rdmap 5: in each case the stream ends within bounded time and no request is
// left over.
TEST_F(HostileStream, anything_at_every_point_of_the_stream) {
  SeededRandom random{13};
  for (const Point point : kPoints) {
    for (const Bad& bad : kBad) {
      SCOPED_TRACE(std::string(bad.name) + " at point " + std::to_string(static_cast<int>(point)));
      QpPtr q = t.waiting_qp();
      RawPeer peer = t.open(q);
      bring_to(point, t, peer);
      bad.say(t, peer, random);
      peer.fin();
      ASSERT_TRUE(peer.hears_the_end()) << "the connection does not end";
      t.expect_guards();
      // The one receive comes back once: with a message, or when the queue pair goes to error.
      ibv_qp_attr error{};
      error.qp_state = IBV_QPS_ERR;
      ASSERT_EQ(ibv_modify_qp(q.get(), &error, IBV_QP_STATE), 0);
      EXPECT_EQ(collect(t.cq.get(), 1).size(), 1U);
      q.reset();
      ibv_wc more;
      EXPECT_EQ(ibv_poll_cq(t.cq.get(), 1, &more), 0);
    }
  }
}

TEST_F(HostileStream, resets_at_every_point_of_the_stream) {
  for (const Point point : kPoints) {
    const QpPtr q = t.waiting_qp();
    RawPeer peer = t.open(q);
    bring_to(point, t, peer);
    peer.reset();
    t.expect_guards();
  }
  ibv_wc more[16];
  while (ibv_poll_cq(t.cq.get(), 16, more) > 0) {
  }
}

// --- peers that do not take what they get

size_t own_memory() {
  std::ifstream status{"/proc/self/status"};
  std::string word;
  size_t kib = 0;
  while (status >> word && word != "RssAnon:") {
  }
  status >> kib;
  return kib * 1024;
}

// As much as is allowed, four times what one Read can have. It is made as TCP takes it.
TEST_F(HostileStream, reads_of_4_gib_that_are_not_taken) {
  constexpr size_t kSize = size_t{1} << 32;
  void* memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  {
    const MrPtr mr = t.adapter.reg(memory, kSize, IBV_ACCESS_REMOTE_READ);
    const QpPtr q = t.waiting_qp();
    RawPeer peer = t.open(q);
    const size_t before = own_memory();
    for (uint32_t msn = 1; msn <= kSomeReads; ++msn) {
      peer.says_ulpdu(
          read_request(msn, {.size = 0xffff'ffff,
                             .source_stag = Stag{mr->rkey},
                             .source_to = TaggedOffset{reinterpret_cast<uintptr_t>(memory)}}));
    }
    peer.stops_reading();
    EXPECT_LT(own_memory(), before + (size_t{16} << 20));
    t.expect_good_connection();
    // It is the answer that waits there.
    const Frame first = parse_ulpdu(Bytes{peer.hears_fpdu()}.subspan(wire::kFpduLengthSize));
    EXPECT_EQ(first.op(), Opcode::read_response);
  }
  munmap(memory, kSize);
}

// What it is sent stays in between; others are served, and closing does not wait for it.
TEST_F(HostileStream, a_peer_that_stops_reading) {
  QpPtr q = t.waiting_qp();
  const RawPeer peer = t.open(q);
  Buffer large(size_t{64} << 20);
  const MrPtr mr = t.adapter.reg(large.data(), large.size());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.rkey = 1;
  ASSERT_EQ(post_send(q.get(), wr, {sge(large.data(), large.size(), mr.get())}), 0);
  peer.stops_reading();
  EXPECT_LT(peer.unread(), large.size());
  t.expect_good_connection();
  q.reset();
  for (int i = 0; i < 500 && !peer.is_reset(); ++i) usleep(10'000);
  EXPECT_TRUE(peer.is_reset()) << "it is waited for without end";
}

}  // namespace
}  // namespace weft::test
