#include "wdp/rd_request.h"

#include <gtest/gtest.h>

#include "tests/support/host.h"
#include "wire/rdmap_messages.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using wire::Opcode;
using wire::WdpData;
using wire::WdpResponse;
using work::Operation;
using work::SendWqe;
using work::Status;

const UdDestination kTo{.qpn = Qpn{2}, .q_key = QKey{0x11223344}};
constexpr QKey kOwnKey{0x55667788};
constexpr RdSegment kSecond{
    .didx = 2, .sidx = 1, .msn = Msn{7}, .offset = 400, .stride = 400, .opens = true};

struct RdRequestTest : ::testing::Test {
  SendWqe& post(Operation operation, uint32_t length = 1000) {
    return host.post({.operation = operation,
                      .solicited = true,
                      .remote_stag = Stag{0x77},
                      .remote_to = TaggedOffset{5000},
                      .immediate = 0x01020304,
                      .compare_add = 11,
                      .swap = 22},
                     {{local.address + 3, length, local.lkey}});
  }
  WdpData header(const SendWqe& w, const RdSegment& segment = kSecond) {
    return request_header(w, segment, kTo, kOwnKey);
  }

  test::Host host;
  Buffer memory = test::pattern_bytes(2000, 3);
  work::LocalSegment local = test::segment(host, memory);
};

TEST_F(RdRequestTest, ASegmentSaysItsPlaceInTheMessage) {
  const WdpData d = header(post(Operation::write));
  EXPECT_EQ(d.didx, 2);
  EXPECT_EQ(d.sidx, 1);
  EXPECT_EQ(d.msn, Msn{7});
  EXPECT_EQ(d.mo, MessageOffset{400});
  EXPECT_EQ(d.mlen, 1000U);
  EXPECT_EQ(d.stride, 400);
  EXPECT_TRUE(d.flow_open);
  EXPECT_TRUE(d.wants_response);
  EXPECT_FALSE(d.last);
  EXPECT_EQ(d.payload_size(), 400U);
  RdSegment third = kSecond;
  third.offset = 800;
  EXPECT_TRUE(header(post(Operation::write), third).last);
  EXPECT_EQ(header(post(Operation::write), third).payload_size(), 200U);
}

TEST_F(RdRequestTest, AWriteSaysWhereItsSegmentGoes) {
  const WdpData plain = header(post(Operation::write));
  EXPECT_EQ(plain.opcode, Opcode::write);
  EXPECT_EQ(plain.stag, Stag{0x77});
  EXPECT_EQ(plain.to, TaggedOffset{5400});
  EXPECT_FALSE(plain.flags.immediate);
  EXPECT_FALSE(plain.write_se) << "nobody hears of it";
  const WdpData immediate = header(post(Operation::write_immediate));
  EXPECT_EQ(immediate.opcode, Opcode::write);
  EXPECT_TRUE(immediate.write_se);
  EXPECT_TRUE(immediate.flags.immediate);
  EXPECT_EQ(immediate.imm_or_read, 0x01020304U);
}

TEST_F(RdRequestTest, ASendSaysTheKeyOfItsDestination) {
  const WdpData d = header(post(Operation::send_immediate));
  EXPECT_EQ(d.opcode, Opcode::send_se);
  EXPECT_EQ(d.q_key(), QKey{0x11223344});
  EXPECT_EQ(d.imm_or_read, 0x01020304U);
  UdDestination to = kTo;
  to.q_key = QKey{0x80000000};
  EXPECT_EQ(request_header(post(Operation::send), kSecond, to, kOwnKey).q_key(), kOwnKey);
}

TEST_F(RdRequestTest, TheSegmentsPayloadIsItsPartOfTheRequests) {
  SendWqe& w = post(Operation::send);
  Buffer out(400);
  ASSERT_TRUE(write_request(host, w, header(w), out.data()));
  EXPECT_TRUE(std::equal(out.begin(), out.end(), memory.begin() + 403));
}

TEST_F(RdRequestTest, MemoryThatIsGoneHasNoPayload) {
  SendWqe& w = post(Operation::send);
  host.regions.clear();
  Buffer out(400);
  EXPECT_FALSE(write_request(host, w, header(w), out.data()));
}

TEST_F(RdRequestTest, AReadIsOneSegmentWithItsRange) {
  SendWqe& w = post(Operation::read);
  const WdpData d = header(w, {.didx = 2, .sidx = 1, .stride = 400});
  EXPECT_EQ(d.opcode, Opcode::read_request);
  EXPECT_TRUE(d.last);
  EXPECT_EQ(d.mlen, 1000U);
  EXPECT_EQ(d.stag, Stag{0x77});
  EXPECT_EQ(d.to, TaggedOffset{5000});
  Buffer out(wire::WdpReadRange::kSize);
  ASSERT_TRUE(write_request(host, w, d, out.data()));
  EXPECT_EQ(wire::WdpReadRange::parse(out.data()).length, 1000U);
}

TEST_F(RdRequestTest, AnAtomicsOperandsAreItsPayload) {
  SendWqe& add = post(Operation::fetch_add, 8);
  EXPECT_EQ(message_length(add), uint32_t{wire::AtomicRequest::kSize});
  const WdpData d = header(add, {.msn = Msn{9}, .stride = 400});
  EXPECT_EQ(d.opcode, Opcode::atomic_request);
  EXPECT_TRUE(d.last);
  Buffer out(wire::AtomicRequest::kSize);
  ASSERT_TRUE(write_request(host, add, d, out.data()));
  const auto sum = wire::AtomicRequest::parse(out.data());
  EXPECT_EQ(sum.request_id, 9U);
  EXPECT_EQ(sum.add_swap, 11U);
  EXPECT_EQ(sum.add_swap_mask, 0U);
  ASSERT_TRUE(write_request(host, post(Operation::compare_swap, 8), d, out.data()));
  const auto swap = wire::AtomicRequest::parse(out.data());
  EXPECT_EQ(swap.compare, 11U);
  EXPECT_EQ(swap.add_swap, 22U);
  EXPECT_EQ(swap.add_swap_mask, ~uint64_t{0});
  EXPECT_EQ(swap.compare_mask, ~uint64_t{0});
}

TEST_F(RdRequestTest, AnEndSaysWhereTheMessageIsGivenUp) {
  const WdpData d = message_end(kSecond);
  EXPECT_TRUE(d.is_end());
  EXPECT_FALSE(d.is_response());
  EXPECT_EQ(d.msn, Msn{7});
  EXPECT_EQ(d.mo, MessageOffset{400});
  EXPECT_TRUE(d.flow_open);
  EXPECT_TRUE(d.last);
}

TEST_F(RdRequestTest, AnAnswerOfAReadGoesToItsPlace) {
  SendWqe& w = post(Operation::read);
  const WdpData d{
      .mo = MessageOffset{400}, .mlen = 1000, .opcode = Opcode::read_response, .imm_or_read = 7};
  const Buffer source = test::pattern_bytes(400, 9);
  EXPECT_EQ(answered_request(d, source), Msn{7});
  EXPECT_TRUE(answers(d, w));
  ASSERT_TRUE(place_answer(host, w, d, source));
  EXPECT_TRUE(std::equal(source.begin(), source.end(), memory.begin() + 403));
  EXPECT_EQ(memory[402], test::pattern_bytes(2000, 3)[402]);
  EXPECT_EQ(memory[803], test::pattern_bytes(2000, 3)[803]);
}

TEST_F(RdRequestTest, AnAnswerToAnotherRequestIsNone) {
  const WdpData read{.mlen = 1000, .opcode = Opcode::read_response};
  EXPECT_FALSE(answers(read, post(Operation::read, 999)));
  EXPECT_FALSE(answers(read, post(Operation::write)));
  EXPECT_FALSE(answers(read, post(Operation::fetch_add, 8)));
  const WdpData atomic{.opcode = Opcode::atomic_response};
  EXPECT_TRUE(answers(atomic, post(Operation::compare_swap, 8)));
  EXPECT_FALSE(answers(atomic, post(Operation::read)));
}

TEST_F(RdRequestTest, TheOriginalOfAnAtomicIsANumberOfThisHost) {
  SendWqe& w = post(Operation::fetch_add, 8);
  Buffer said(wire::AtomicResponse::kSize);
  wire::AtomicResponse{.request_id = 7, .original = 0x0102030405060708}.encode(said.data());
  const WdpData d{.opcode = Opcode::atomic_response};
  EXPECT_EQ(answered_request(d, said), Msn{7});
  ASSERT_TRUE(place_answer(host, w, d, said));
  uint64_t original = 0;
  std::memcpy(&original, memory.data() + 3, sizeof original);
  EXPECT_EQ(original, 0x0102030405060708U);
}

TEST_F(RdRequestTest, AnAnswerHasNoPlaceInMemoryThatIsGone) {
  SendWqe& w = post(Operation::read);
  host.regions.clear();
  const WdpData d{.mlen = 1000, .opcode = Opcode::read_response};
  EXPECT_FALSE(place_answer(host, w, d, test::pattern_bytes(400, 9)));
}

TEST_F(RdRequestTest, ARefusalIsTheRequestsStatus) {
  EXPECT_EQ(status_of(WdpResponse::Code::key), Status::remote_invalid_rd_request);
  EXPECT_EQ(status_of(WdpResponse::Code::not_ready), Status::remote_invalid_rd_request);
  EXPECT_EQ(status_of(WdpResponse::Code::length), Status::remote_invalid_request);
  EXPECT_EQ(status_of(WdpResponse::Code::access), Status::remote_access);
}

}  // namespace
}  // namespace weft::wdp
