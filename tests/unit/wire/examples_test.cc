// The worked examples E1 to E10 of docs/spec/examples.md: each is decoded, looked at field by
// field, and encoded again from those fields, byte for byte and CRC included.

#include <gtest/gtest.h>

#include "tests/support/fpdu.h"
#include "tests/support/spec_example.h"
#include "wire/ddp_header.h"
#include "wire/mpa_start.h"
#include "wire/rdmap_messages.h"
#include "wire/terminate.h"

namespace weft::wire {
namespace {

using test::Buffer;
using test::make_fpdu;
using test::split_fpdu;
using test::to_hex;
using Kind = MpaStart::Kind;

// --- E1, E2: start-up frames

struct Start {
  MpaStart frame;
  MpaEnhanced block;
  Bytes rest;
};
Start parse_start(Kind kind, Bytes bytes) {
  const auto frame = MpaStart::parse(kind, bytes.data());
  EXPECT_TRUE(frame.ok());
  if (!frame.ok()) return {};
  Start s{*frame, {}, bytes.subspan(MpaStart::kSize)};
  EXPECT_EQ(s.rest.size(), s.frame.private_data_length);
  if (s.frame.enhanced) {
    s.block = MpaEnhanced::parse(s.rest.data());
    s.rest = s.rest.subspan(MpaEnhanced::kSize);
  }
  return s;
}
Buffer encode_start(const Start& s) {
  Buffer b(MpaStart::kSize + (s.frame.enhanced ? MpaEnhanced::kSize : 0));
  s.frame.encode(b.data());
  if (s.frame.enhanced) s.block.encode(b.data() + MpaStart::kSize);
  b.insert(b.end(), s.rest.begin(), s.rest.end());
  return b;
}

TEST(ExampleE1, RequestOfSiw) {
  const Buffer b = test::example("E1 Request");
  const Start s = parse_start(Kind::request, b);
  EXPECT_TRUE(s.frame.enhanced);
  EXPECT_FALSE(s.frame.crc || s.frame.markers || s.frame.extension_requested);
  EXPECT_EQ(s.frame.revision, 2);
  EXPECT_EQ(s.block.ird, 1);
  EXPECT_EQ(s.block.ord, 1);
  EXPECT_EQ(to_hex(encode_start(s)), to_hex(b));
}

TEST(ExampleE2, RequestAndReplyWithCrc) {
  const Buffer request = test::example("E2 Request");
  const Buffer reply = test::example("E2 Reply");
  const Start q = parse_start(Kind::request, request);
  const Start r = parse_start(Kind::reply, reply);
  EXPECT_TRUE(q.frame.crc && q.frame.enhanced);
  EXPECT_TRUE(r.frame.crc && r.frame.enhanced);
  EXPECT_FALSE(r.frame.rejected);
  EXPECT_EQ(to_hex(encode_start(q)), to_hex(request));
  EXPECT_EQ(to_hex(encode_start(r)), to_hex(reply));
}

TEST(ExampleE2, PeerToPeerBlocks) {
  struct Row {
    const char* name;
    bool write, read;
  };
  for (const Row& row : {Row{"E2 block Write or Read", true, true},
                         Row{"E2 block Write", true, false}, Row{"E2 block Read", false, true}}) {
    const Buffer block = test::example(row.name);
    const MpaEnhanced e = MpaEnhanced::parse(block.data());
    EXPECT_TRUE(e.peer_to_peer);
    EXPECT_FALSE(e.rtr_fpdu);
    EXPECT_EQ(e.rtr_write, row.write);
    EXPECT_EQ(e.rtr_read, row.read);
    Buffer again(MpaEnhanced::kSize);
    MpaEnhanced{
        .peer_to_peer = true, .rtr_write = row.write, .rtr_read = row.read, .ird = 1, .ord = 1}
        .encode(again.data());
    EXPECT_EQ(to_hex(again), to_hex(block));
  }
}

TEST(ExampleE2, MarkersAreRefused) {
  const Buffer request = test::example("E2 marker Request");
  const Buffer reply = test::example("E2 marker refusal");
  const Start q = parse_start(Kind::request, request);
  const Start r = parse_start(Kind::reply, reply);
  EXPECT_TRUE(q.frame.markers);
  EXPECT_TRUE(r.frame.rejected);
  EXPECT_FALSE(r.frame.markers);
  EXPECT_EQ(r.block.ird, 0);
  EXPECT_EQ(r.block.ord, 0);
  EXPECT_EQ(to_hex(encode_start(q)), to_hex(request));
  EXPECT_EQ(to_hex(encode_start(r)), to_hex(reply));
}

TEST(ExampleE2, Revision1) {
  const Buffer request = test::example("E2 Rev 1 Request");
  const Buffer reply = test::example("E2 Rev 1 Reply");
  const Start q = parse_start(Kind::request, request);
  const Start r = parse_start(Kind::reply, reply);
  EXPECT_EQ(q.frame.revision, 1);
  EXPECT_FALSE(q.frame.enhanced);
  EXPECT_EQ(to_hex(q.rest), to_hex(test::from_text("hello weft")));
  EXPECT_EQ(r.frame.private_data_length, 0);
  EXPECT_EQ(to_hex(encode_start(q)), to_hex(request));
  EXPECT_EQ(to_hex(encode_start(r)), to_hex(reply));
}

// --- E3 to E10: FPDUs

// Takes the FPDU apart and checks its CRC field, which stands least significant byte first.
Bytes ulpdu_of(Bytes frame) {
  const test::SplitFpdu f = split_fpdu(frame);
  EXPECT_EQ(f.crc_field, f.crc);
  return f.ulpdu;
}

Buffer tagged_fpdu(const TaggedHeader& h, Bytes payload, Bytes pad = {}) {
  Buffer ulpdu(TaggedHeader::kSize);
  h.encode(ulpdu.data());
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return make_fpdu(ulpdu, pad);
}
Buffer untagged_fpdu(const UntaggedHeader& h, Bytes payload) {
  Buffer ulpdu(UntaggedHeader::kSize);
  h.encode(ulpdu.data());
  ulpdu.insert(ulpdu.end(), payload.begin(), payload.end());
  return make_fpdu(ulpdu);
}
template <class Message>
Buffer encoded(const Message& m) {
  Buffer b(Message::kSize);
  m.encode(b.data());
  return b;
}

void expect_control(const Control& c, Opcode opcode) {
  EXPECT_TRUE(c.last);
  EXPECT_FALSE(c.ack_wanted);
  EXPECT_EQ(c.tagged, is_tagged(opcode));
  EXPECT_EQ(c.opcode, opcode);
  EXPECT_EQ(c.ddp_version, kDdpVersion);
  EXPECT_EQ(c.rdmap_version, kRdmapVersion);
}
void expect_untagged(const UntaggedHeader& h, Opcode opcode, QueueNumber qn) {
  expect_control(h.control, opcode);
  EXPECT_EQ(h.ulp_word, 0U);
  EXPECT_EQ(h.qn, qn);
  EXPECT_EQ(h.msn, Msn{1});
  EXPECT_EQ(h.mo, MessageOffset{0});
}
UntaggedHeader untagged(Opcode opcode, QueueNumber qn) {
  UntaggedHeader h;
  h.control = {.last = true, .opcode = opcode};
  h.qn = qn;
  h.msn = Msn{1};
  return h;
}
TaggedHeader tagged(Opcode opcode, uint32_t stag, uint64_t to) {
  TaggedHeader h;
  h.control.last = true;
  h.control.opcode = opcode;
  h.stag = Stag{stag};
  h.to = TaggedOffset{to};
  return h;
}

TEST(ExampleE3, Send) {
  const Buffer frame = test::example("E3 Send");
  const Bytes ulpdu = ulpdu_of(frame);
  ASSERT_EQ(ulpdu.size(), 34U);
  expect_untagged(UntaggedHeader::parse(ulpdu.data()), Opcode::send, kSendQueue);
  const Bytes payload = ulpdu.subspan(UntaggedHeader::kSize);
  EXPECT_EQ(payload.size(), 16U);
  EXPECT_EQ(to_hex(untagged_fpdu(untagged(Opcode::send, kSendQueue), payload)), to_hex(frame));
}

TEST(ExampleE4, ReadRequestOfSiw) {
  const Buffer frame = test::example("E4 Read Request");
  const Bytes ulpdu = ulpdu_of(frame);
  ASSERT_EQ(ulpdu.size(), min_ulpdu(Opcode::read_request));
  expect_untagged(UntaggedHeader::parse(ulpdu.data()), Opcode::read_request, kReadRequestQueue);
  const ReadRequest r = ReadRequest::parse(ulpdu.data() + UntaggedHeader::kSize);
  EXPECT_EQ(r.sink_stag, Stag{0x815b1000});
  EXPECT_EQ(r.sink_to, TaggedOffset{0x7f1cf4000e00});
  EXPECT_EQ(r.size, 64U);
  EXPECT_EQ(r.source_stag, Stag{0x11223344});
  EXPECT_EQ(r.source_to, TaggedOffset{0x7f0000001000});
  const ReadRequest same{Stag{0x815b1000}, TaggedOffset{0x7f1cf4000e00}, 64, Stag{0x11223344},
                         TaggedOffset{0x7f0000001000}};
  EXPECT_EQ(to_hex(untagged_fpdu(untagged(Opcode::read_request, kReadRequestQueue), encoded(same))),
            to_hex(frame));
}

TEST(ExampleE5, ReadResponse) {
  const Buffer frame = test::example("E5 Read Response");
  const Bytes ulpdu = ulpdu_of(frame);
  ASSERT_EQ(ulpdu.size(), 78U);
  const TaggedHeader h = TaggedHeader::parse(ulpdu.data());
  expect_control(h.control, Opcode::read_response);
  EXPECT_EQ(h.stag, Stag{0x815b1000});
  EXPECT_EQ(h.to, TaggedOffset{0x7f1cf4000e00});
  EXPECT_EQ(to_hex(tagged_fpdu(tagged(Opcode::read_response, 0x815b1000, 0x7f1cf4000e00),
                               test::from_text(test::rping_payload()))),
            to_hex(frame));
}

TEST(ExampleE6, WriteOfSiw) {
  const Buffer frame = test::example("E6 Write");
  const Bytes ulpdu = ulpdu_of(frame);
  ASSERT_EQ(ulpdu.size(), 78U);
  const TaggedHeader h = TaggedHeader::parse(ulpdu.data());
  expect_control(h.control, Opcode::write);
  EXPECT_EQ(h.stag, Stag{0x55667788});
  EXPECT_EQ(h.to, TaggedOffset{0x7f0000008000});
  EXPECT_EQ(to_hex(tagged_fpdu(tagged(Opcode::write, 0x55667788, 0x7f0000008000),
                               test::from_text(test::rping_payload()))),
            to_hex(frame));
}

TEST(ExampleE7, WriteOfSiwWithDirtyPad) {
  const Buffer frame = test::example("E7 Write");
  const test::SplitFpdu f = split_fpdu(frame);
  EXPECT_EQ(f.crc_field, f.crc);
  ASSERT_EQ(f.ulpdu.size(), 43U);
  EXPECT_EQ(to_hex(f.pad), "00 10 00");
  const TaggedHeader h = TaggedHeader::parse(f.ulpdu.data());
  expect_control(h.control, Opcode::write);
  const Bytes payload = f.ulpdu.subspan(TaggedHeader::kSize);
  EXPECT_EQ(payload.size(), 29U);
  const TaggedHeader same = tagged(Opcode::write, 0x55667788, 0x7f0000008000);
  EXPECT_EQ(to_hex(tagged_fpdu(same, payload, f.pad)), to_hex(frame));

  // The CRC covers the pad: weft's zeros make another one, and everything before is the same.
  const Buffer clean = tagged_fpdu(same, payload);
  EXPECT_EQ(to_hex(Bytes{clean}.first(45)), to_hex(Bytes{frame}.first(45)));
  EXPECT_EQ(to_hex(split_fpdu(clean).pad), "00 00 00");
  EXPECT_NE(split_fpdu(clean).crc, f.crc);
}

// E8: the payload of the Terminate in `frame`.
Bytes terminate_of(Bytes frame) {
  const Bytes ulpdu = ulpdu_of(frame);
  EXPECT_GE(ulpdu.size(), min_ulpdu(Opcode::terminate));
  expect_untagged(UntaggedHeader::parse(ulpdu.data()), Opcode::terminate, kTerminateQueue);
  return ulpdu.subspan(UntaggedHeader::kSize);
}
Buffer encoded_terminate(const Terminate& t) {
  Buffer b(Terminate::kMaxSize);
  b.resize(t.encode(b.data()));
  return untagged_fpdu(untagged(Opcode::terminate, kTerminateQueue), b);
}

// The Send that both Terminates of E8 are about.
void expect_the_send_to_blame(const Terminate& t) {
  ASSERT_EQ(t.ddp_header_size, UntaggedHeader::kSize);
  expect_untagged(UntaggedHeader::parse(t.ddp_header.data()), Opcode::send, kSendQueue);
  EXPECT_EQ(t.rdmap_header_size, 0);
}

TEST(ExampleE8, WeftTerminatesASendWithoutABuffer) {
  const Buffer frame = test::example("E8 weft no buffer");
  for (const bool extension : {false, true}) {
    const Terminate t = Terminate::parse(terminate_of(frame), extension, true);
    EXPECT_EQ(t.error, term::kUntaggedNoBuffer);
    EXPECT_TRUE(t.has_segment_length);
    EXPECT_EQ(t.segment_length, 34) << "ULPDU_Length of the Send";
    expect_the_send_to_blame(t);
  }
  Terminate same;
  same.error = term::kUntaggedNoBuffer;
  same.has_segment_length = true;
  same.segment_length = 34;
  same.ddp_header_size = UntaggedHeader::kSize;
  untagged(Opcode::send, kSendQueue).encode(same.ddp_header.data());
  EXPECT_EQ(to_hex(encoded_terminate(same)), to_hex(frame));
}

TEST(ExampleE8, SiwTerminatesASendWithoutABuffer) {
  const Buffer frame = test::example("E8 siw no buffer");
  const Terminate t = Terminate::parse(terminate_of(frame), false, true);
  EXPECT_EQ(t.error, term::kUntaggedNoBuffer);
  EXPECT_EQ(t.segment_length, 0x40) << "siw counts the payload alone";
  expect_the_send_to_blame(t);
  // Said again by weft it differs in three places only: nibbles, header bits, segment length.
  Terminate same = t;
  same.segment_length = 34;
  EXPECT_EQ(to_hex(encoded_terminate(same)), to_hex(test::example("E8 weft no buffer")));
}

TEST(ExampleE8, SiwTerminatesForABadCrc) {
  const Terminate t = Terminate::parse(terminate_of(test::example("E8 siw bad CRC")), false, true);
  EXPECT_EQ(t.error, term::kMpaCrc);
  EXPECT_FALSE(t.has_segment_length);
  EXPECT_EQ(t.ddp_header_size, 0);
}

TEST(ExampleE8, SiwTerminatesForOpcode8) {
  const Terminate t = Terminate::parse(terminate_of(test::example("E8 siw opcode 8")), false, true);
  EXPECT_EQ(t.error, term::kOperationUnexpectedOpcode);
  EXPECT_EQ(t.ddp_header_size, 0);
}

TEST(ExampleE8, SiwTerminatesAReadOfABadStag) {
  const Buffer frame = test::example("E8 siw bad Read STag");
  const Terminate t = Terminate::parse(terminate_of(frame), false, true);
  EXPECT_EQ(t.error, term::kProtectionInvalidStag);
  ASSERT_EQ(t.ddp_header_size, UntaggedHeader::kSize);
  const UntaggedHeader h = UntaggedHeader::parse(t.ddp_header.data());
  expect_control(h.control, Opcode::read_request);
  EXPECT_EQ(h.msn, Msn{0x40}) << "siw puts the read size where the MSN belongs";
  ASSERT_EQ(t.rdmap_header_size, ReadRequest::kSize);
  const ReadRequest r = ReadRequest::parse(t.rdmap_header.data());
  EXPECT_EQ(r.sink_stag, Stag{0x111});
  EXPECT_EQ(r.size, 0x40U);
  EXPECT_EQ(r.source_stag, Stag{0xdeadbe00});
  EXPECT_EQ(r.source_to, TaggedOffset{0x1000});
}

TEST(ExampleE9, WriteAndImmediate) {
  const Buffer write = test::example("E9 Write");
  Bytes ulpdu = ulpdu_of(write);
  ASSERT_EQ(ulpdu.size(), 22U);
  const TaggedHeader h = TaggedHeader::parse(ulpdu.data());
  expect_control(h.control, Opcode::write);
  EXPECT_EQ(h.stag, Stag{0x55667700});
  EXPECT_EQ(h.to, TaggedOffset{0x1000});
  EXPECT_EQ(
      to_hex(tagged_fpdu(tagged(Opcode::write, 0x55667700, 0x1000), test::from_text("weftdata"))),
      to_hex(write));

  const Buffer immediate = test::example("E9 Immediate");
  ulpdu = ulpdu_of(immediate);
  ASSERT_EQ(ulpdu.size(), min_ulpdu(Opcode::immediate));
  expect_untagged(UntaggedHeader::parse(ulpdu.data()), Opcode::immediate, kSendQueue);
  EXPECT_EQ(Immediate::parse(ulpdu.data() + UntaggedHeader::kSize).value, 0x01020304U);
  EXPECT_EQ(to_hex(untagged_fpdu(untagged(Opcode::immediate, kSendQueue),
                                 encoded(Immediate{0x01020304}))),
            to_hex(immediate));
}

TEST(ExampleE10, AtomicRequestAndResponse) {
  const Buffer request = test::example("E10 Atomic Request");
  Bytes ulpdu = ulpdu_of(request);
  ASSERT_EQ(ulpdu.size(), min_ulpdu(Opcode::atomic_request));
  expect_untagged(UntaggedHeader::parse(ulpdu.data()), Opcode::atomic_request, kReadRequestQueue);
  const AtomicRequest a = AtomicRequest::parse(ulpdu.data() + UntaggedHeader::kSize);
  EXPECT_EQ(a.code, AtomicRequest::Code::compare_swap);
  EXPECT_EQ(a.request_id, 0x77U);
  EXPECT_EQ(a.stag, Stag{0x55667700});
  EXPECT_EQ(a.to, TaggedOffset{0x2000});
  EXPECT_EQ(a.add_swap, 0x1111U);
  EXPECT_EQ(a.add_swap_mask, UINT64_MAX);
  EXPECT_EQ(a.compare, 0x2222U);
  EXPECT_EQ(a.compare_mask, UINT64_MAX);
  const AtomicRequest same{AtomicRequest::Code::compare_swap,
                           0x77,
                           Stag{0x55667700},
                           TaggedOffset{0x2000},
                           0x1111,
                           UINT64_MAX,
                           0x2222,
                           UINT64_MAX};
  EXPECT_EQ(
      to_hex(untagged_fpdu(untagged(Opcode::atomic_request, kReadRequestQueue), encoded(same))),
      to_hex(request));

  const Buffer response = test::example("E10 Atomic Response");
  ulpdu = ulpdu_of(response);
  ASSERT_EQ(ulpdu.size(), min_ulpdu(Opcode::atomic_response));
  expect_untagged(UntaggedHeader::parse(ulpdu.data()), Opcode::atomic_response,
                  kAtomicResponseQueue);
  const AtomicResponse r = AtomicResponse::parse(ulpdu.data() + UntaggedHeader::kSize);
  EXPECT_EQ(r.request_id, 0x77U);
  EXPECT_EQ(r.original, 0x2222U);
  EXPECT_EQ(to_hex(untagged_fpdu(untagged(Opcode::atomic_response, kAtomicResponseQueue),
                                 encoded(AtomicResponse{0x77, 0x2222}))),
            to_hex(response));
}

}  // namespace
}  // namespace weft::wire
