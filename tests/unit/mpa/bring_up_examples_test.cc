// Bring-up by number, docs/spec/examples-wdp.md section 3: the frames are those that an Initiator
// and a Responder make of these fields.

#include "tests/unit/mpa/startup_fixture.h"
#include "wire/wfrc.h"

namespace weft::mpa {
namespace {

using wire::Wfrc;

Buffer encoded(const Wfrc& w) {
  Buffer b(Wfrc::kSize);
  w.encode(b.data());
  return b;
}

// Of the queue pair that calls.
constexpr Wfrc kRequest{.source_qpn = make_qpn(40000, 2),
                        .destination_qpn = make_qpn(50000, 7),
                        .sq_psn = 0x010203,
                        .rq_psn = 0x111213,
                        .nonce = 0x2122232425262728,
                        .source_gid = Gid::from_ipv4(0xc0000201),
                        .destination_gid = Gid::from_ipv4(0xc0000202)};

TEST(BringUpExamples, Request) {
  Initiator initiator({.peer_to_peer = true, .ird = 4, .ord = 16});
  EXPECT_EQ(to_hex(initiator.request(encoded(kRequest))), to_hex(test::example("WFRC Request")));
}

TEST(BringUpExamples, ReplyThatConnects) {
  Wfrc block = kRequest;
  std::swap(block.source_qpn, block.destination_qpn);
  std::swap(block.source_gid, block.destination_gid);
  std::swap(block.sq_psn, block.rq_psn);
  const auto a = accepting(test::example("WFRC Request"), {.peer_to_peer = true}, encoded(block));
  EXPECT_EQ(to_hex(a.reply.bytes), to_hex(test::example("WFRC Reply")));
  EXPECT_EQ(a.reply.parameters.rtr, Rtr::write);
  EXPECT_TRUE(a.reply.parameters.extension);
  // And what the caller reads in it.
  const auto o = answered({.peer_to_peer = true, .ird = 4, .ord = 16}, test::example("WFRC Reply"));
  ASSERT_TRUE(o.accepted);
  EXPECT_EQ(o.accepted->parameters.ird, 4);
  EXPECT_EQ(o.accepted->parameters.ord, 16);
  EXPECT_EQ(Wfrc::parse(o.accepted->private_data)->nonce, kRequest.nonce);
}

TEST(BringUpExamples, ReplyThatRefuses) {
  Wfrc block = kRequest;
  std::swap(block.source_qpn, block.destination_qpn);
  std::swap(block.source_gid, block.destination_gid);
  block.code = Wfrc::Code::role_conflict;
  Responder responder;
  const Buffer request = test::example("WFRC Request");
  Bytes bytes = request;
  ASSERT_TRUE(responder.received(bytes)->has_value());
  EXPECT_EQ(to_hex(responder.reject(encoded(block))), to_hex(test::example("WFRC refusal")));
  const auto o =
      answered({.peer_to_peer = true, .ird = 4, .ord = 16}, test::example("WFRC refusal"));
  ASSERT_TRUE(o.rejected);
  EXPECT_EQ(Wfrc::parse(o.rejected->private_data)->code, Wfrc::Code::role_conflict);
}

}  // namespace
}  // namespace weft::mpa
