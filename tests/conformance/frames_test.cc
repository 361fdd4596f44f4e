// The bytes that a stream sends, against the examples of docs/spec/examples.md, and what it ignores
// in those it receives.

#include "tests/conformance/peer.h"
#include "tests/support/spec_example.h"

namespace weft::conformance {
namespace {

using test::from_hex;
using test::ScriptPeer;
using test::to_hex;
using work::Operation;

// 16 bytes of a test's memory under the STag and the address that an example names.
struct Named {
  Named(test::Host& host, Stag stag, uint64_t iova, Buffer b) : memory(std::move(b)) {
    host.regions[stag] = {memory.data(), iova, memory.size(), 15};
  }
  Buffer memory;
};

Buffer rping_bytes() {
  return test::from_text(test::rping_payload());
}

// --- sending

TEST(Frames, SendAsSiwAcceptedIt) {
  // E3: its payload is rping's info record.
  ScriptPeer p(test::script_config(false));
  Named m(p.host, Stag{7}, 0, from_hex("00 00 7f 00 00 00 10 00 11 22 33 44 00 00 00 40"));
  p.host.post({.operation = Operation::send}, {{0, 16, Stag{7}}});
  EXPECT_EQ(to_hex(p.says_bytes()), to_hex(test::example("E3 Send")));
}

TEST(Frames, WriteAsSiwSendsIt) {
  // E6
  ScriptPeer p(test::script_config(false));
  Named m(p.host, Stag{7}, 0, rping_bytes());
  p.host.post({.operation = Operation::write,
               .remote_stag = Stag{0x55667788},
               .remote_to = TaggedOffset{0x7f0000008000}},
              {{0, 64, Stag{7}}});
  EXPECT_EQ(to_hex(p.says_bytes()), to_hex(test::example("E6 Write")));
}

TEST(Frames, ReadResponseAsSiwAcceptedIt) {
  // E4 is the request, E5 the answer.
  ScriptPeer p(test::script_config(false));
  Named m(p.host, Stag{0x11223344}, 0x7f0000001000, rping_bytes());
  p.hears_bytes(test::example("E4 Read Request"));
  EXPECT_EQ(to_hex(p.says_bytes()), to_hex(test::example("E5 Read Response")));
}

TEST(Frames, WriteWithImmediate) {
  // E9, but for AW on the Immediate: the Write alone is compared as a whole.
  ScriptPeer p;
  Named m(p.host, Stag{7}, 0, test::from_text("weftdata"));
  p.host.post({.operation = Operation::write_immediate,
               .remote_stag = Stag{0x55667700},
               .remote_to = TaggedOffset{0x1000},
               .immediate = 0x01020304},
              {{0, 8, Stag{7}}});
  const Buffer both = test::join({test::example("E9 Write"), test::example("E9 Immediate")});
  EXPECT_EQ(to_hex(p.says_bytes()), to_hex(both));
}

TEST(Frames, WriteWithImmediateArrives) {
  // E9
  ScriptPeer p;
  Named m(p.host, Stag{0x55667700}, 0x1000, Buffer(8));
  p.host.post_receive(4, {});
  p.hears_bytes(test::join({test::example("E9 Write"), test::example("E9 Immediate")}));
  EXPECT_EQ(m.memory, test::from_text("weftdata"));
  ASSERT_EQ(p.host.received.size(), 1U);
  EXPECT_EQ(p.host.received[0].arrival.immediate, 0x01020304U);
  EXPECT_EQ(p.host.received[0].arrival.length, 8U);
}

TEST(Frames, AtomicAndItsAnswer) {
  // E10: the old value is the one that was compared with, so it is swapped.
  ScriptPeer p;
  Buffer word(16);
  std::byte* aligned = word.data() + (8 - reinterpret_cast<uintptr_t>(word.data()) % 8) % 8;
  const uint64_t old_value = 0x2222;
  std::memcpy(aligned, &old_value, 8);
  p.host.regions[Stag{0x55667700}] = {aligned, 0x2000, 8, 15};
  p.hears_bytes(test::example("E10 Atomic Request"));
  EXPECT_EQ(to_hex(p.says_bytes()), to_hex(test::example("E10 Atomic Response")));
  uint64_t now = 0;
  std::memcpy(&now, aligned, 8);
  EXPECT_EQ(now, 0x1111U);
}

// spec/mpa 2.4: STag any but zero, TO 0, no payload.
TEST(Frames, TheRtrFrames) {
  const auto first_of = [](mpa::Rtr rtr) {
    rdmap::StreamConfig c = test::script_config(false);
    c.mpa.peer_to_peer = true;
    c.mpa.rtr = rtr;
    c.mpa.crc = false;
    ScriptPeer p(c);
    return to_hex(p.says_bytes());
  };
  EXPECT_EQ(first_of(mpa::Rtr::write),
            to_hex(from_hex("00 0e c1 40 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00")));
  EXPECT_EQ(first_of(mpa::Rtr::fpdu), to_hex(from_hex("00 00 00 00 00 00 00 00")));
  const std::string read = first_of(mpa::Rtr::read);
  // Sink STag apart, which is drawn.
  EXPECT_EQ(read.substr(0, 60),
            to_hex(from_hex("00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00")) + " ");
  EXPECT_EQ(
      read.substr(72),
      to_hex(from_hex(
          "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00")));
}

// spec/rdmap 4
TEST(Frames, DeliveredAndAw) {
  rdmap::StreamConfig c = test::script_config();
  c.mpa.crc = false;
  ScriptPeer p(c);
  p.hears(tagged({.stag = Stag{1}, .ack_wanted = true}));
  EXPECT_EQ(to_hex(p.says_bytes()),
            to_hex(from_hex("00 0e c1 4e 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00")));
  p.hears(untagged({}));
  EXPECT_EQ(to_hex(p.says_bytes()),
            to_hex(from_hex("00 0e c1 4e 00 00 01 0c 00 00 00 00 00 00 00 01 00 00 00 00")))
      << "0x100 and the code of min_rnr_timer: message 2 waits";
  Named m(p.host, Stag{7}, 0, Buffer(2));
  p.host.post({.operation = Operation::send, .signaled = true}, {{0, 2, Stag{7}}});
  EXPECT_EQ(
      to_hex(p.says_bytes()),
      to_hex(from_hex(
          "00 14 41 53 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00")))
      << "AW is bit 4 of the RDMAP control byte";
}

TEST(Frames, AwStandsOnTheLastSegmentAlone) {
  ScriptPeer p;
  Buffer data(200'000);
  p.host.post({.operation = Operation::write, .signaled = true}, {test::segment(p.host, data)});
  p.host.post({.operation = Operation::write_immediate, .signaled = true},
              {test::segment(p.host, data)});
  size_t asking = 0;
  for (const auto& f : p.says()) {
    asking += f.control.ack_wanted;
    if (f.control.ack_wanted) {
      EXPECT_TRUE(f.control.last);
    }
    if (f.op() == Opcode::immediate) {
      EXPECT_TRUE(f.control.ack_wanted);
    }
  }
  EXPECT_EQ(asking, 2U) << "the first Write, and the Immediate of the second";
}

// --- receiving

// RFC 5041 section 4, RFC 5040 section 4.1: reserved bits are ignored on receive.
TEST(Frames, ReservedBitsAreIgnored) {
  for (unsigned bit = 2; bit <= 5; ++bit) {
    Peer p;
    Buffer write = tagged({.stag = p.open, .to = p.to}, pattern_bytes(8, 3));
    Buffer send = untagged({}, pattern_bytes(8, 4));
    write[0] |= static_cast<std::byte>(1U << bit);
    send[0] |= static_cast<std::byte>(1U << bit);
    p.hears({write, send});
    EXPECT_FALSE(p.host.end) << "DDP bit " << bit;
    EXPECT_EQ(p.host.received.size(), 1U);
  }
  for (const unsigned bit : {4U, 5U}) {
    Peer p(false);
    Buffer write = tagged({.stag = p.open, .to = p.to}, pattern_bytes(8, 3));
    Buffer send = untagged({}, pattern_bytes(8, 4));
    write[1] |= static_cast<std::byte>(1U << bit);
    send[1] |= static_cast<std::byte>(1U << bit);
    p.hears({write, send});
    EXPECT_FALSE(p.host.end) << "RDMAP bit " << bit;
    EXPECT_EQ(test::names(p.says()), "") << "and mean nothing to a plain peer";
  }
}

// spec/rdmap 1.3: the word is for Invalidate STag and immediate; otherwise ignored.
TEST(Frames, TheUlpWordOfOtherOpcodesIsIgnored) {
  Peer p;
  p.hears(untagged({.word = 0xffffffff}, pattern_bytes(8, 4)));
  p.hears(test::join({Bytes{untagged({.op = Opcode::read_request, .qn = 1, .word = 0xffffffff})},
                      Bytes{test::encoded(wire::ReadRequest{})}}));
  EXPECT_FALSE(p.host.end);
  EXPECT_FALSE(p.host.received.at(0).arrival.has_immediate ||
               p.host.received.at(0).arrival.invalidated);
}

// spec/siw 3.2, spec/examples 7: siw's pad is not zero.
TEST(Frames, ThePadOfSiw) {
  ScriptPeer p(test::script_config(false));
  Named m(p.host, Stag{0x55667788}, 0x7f0000008000, Buffer(64));
  p.hears_bytes(test::example("E7 Write"));
  EXPECT_FALSE(p.host.end);
  EXPECT_EQ((Buffer{m.memory.begin(), m.memory.begin() + 28}),
            test::from_text("rdma-ping-0: ABCDEFGHIJKLMNO"));
}

TEST(Frames, EveryPadValueOfEveryLength) {
  for (size_t n = 0; n < 8; ++n) {
    for (const unsigned fill : {0x00U, 0xffU}) {
      Peer p;
      const Buffer u = untagged({}, pattern_bytes(n, 5));
      p.hears_bytes(
          test::make_fpdu(u, Buffer(wire::fpdu_pad(u.size()), static_cast<std::byte>(fill))));
      ASSERT_EQ(p.host.received.size(), 1U);
      EXPECT_EQ(p.host.received[0].arrival.length, n);
    }
  }
}

// spec/mpa 3.2: CRC off: the field is ignored.
TEST(Frames, WithoutCrcTheFieldIsIgnored) {
  rdmap::StreamConfig c = test::script_config();
  c.mpa.crc = false;
  ScriptPeer p(c);
  Buffer frame = test::make_fpdu(tagged({.stag = Stag{1}}));
  std::fill(frame.end() - 4, frame.end(), std::byte{0x77});
  p.hears_bytes(frame);
  EXPECT_FALSE(p.host.end);
}

TEST(Frames, TheLargestFpdu) {
  ScriptPeer p(test::script_config(false));
  Buffer memory(65'535 - 14);
  const Stag stag = p.host.add_region(memory);
  const Buffer data = pattern_bytes(memory.size(), 6);
  p.hears(tagged({.stag = stag, .to = test::address_of(memory).value()}, data));
  EXPECT_FALSE(p.host.end);
  EXPECT_TRUE(memory == data);
}

// spec/rdmap 1.4, last column: exactly the least size is enough.
TEST(Frames, TheLeastUlpduOfEachOpcode) {
  Peer p;
  for (uint64_t i = 0; i < 4; ++i) p.host.post_receive(i, {});
  p.hears({tagged({.stag = Peer::kUnknown}), untagged({.msn = 1}),
           untagged({.op = Opcode::send_se, .msn = 2}), test::immediate(3, 5),
           test::read_request(1, {.sink_stag = Stag{5}}), test::delivered(0)});
  EXPECT_FALSE(p.host.end);
  EXPECT_EQ(p.host.received.size(), 3U);
  EXPECT_EQ(test::names(p.says()), "RDMA Read Response");
  // 22 bytes of Terminate.
  p.hears(untagged({.op = Opcode::terminate, .qn = 2}, from_hex("20 06 00 00")));
  ASSERT_TRUE(p.host.end);
  EXPECT_EQ(p.host.end->error, (wire::TermError{wire::Layer::llp, 0, 6}));
}

}  // namespace
}  // namespace weft::conformance
