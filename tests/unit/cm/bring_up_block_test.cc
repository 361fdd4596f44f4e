#include "cm/bring_up_block.h"

#include "cm/passive_start.h"
#include "tests/unit/cm/started_pair.h"

namespace weft::cm {
namespace {

using stats::BringUpRefusal;
using wire::Wfrc;

// Answers each Request with the same refusal.
struct Refuses final : PassiveStartHandler {
  void request_came(engine::Token& token, PassiveStart& start,
                    const mpa::Responder::Request& request) override {
    refuse(token, start, *Wfrc::parse(request.private_data), Wfrc::Code::not_ready,
           BringUpRefusal::parked_too_many);
  }
  void start_gone(engine::Token&, PassiveStart&) override {}
};

using BringUpBlock = StartedTest;

// spec/addressing 5.2: the Reply carries the Request's block, with both ends changed over.
TEST_F(BringUpBlock, ARefusalSaysToWhomAndWhy) {
  Refuses refuses;
  {
    auto h = engine_->hold();
    PassiveStart::start(h.token(), refuses, std::move(started_.tcp));
  }
  const Wfrc request{.version = 7,
                     .source_qpn = Qpn{0x101},
                     .destination_qpn = Qpn{0x202},
                     .nonce = 77,
                     .source_gid = Gid::from_ipv4(0x7f000001),
                     .destination_gid = Gid::from_ipv4(0x7f000002)};
  auto frame = mpa::Initiator{{.peer_to_peer = true}}.request(encode(request));
  const IoVec all{frame.data(), frame.size()};
  ASSERT_EQ(peer_.send({&all, 1}).bytes, frame.size());
  const auto heard = all_that_comes();
  { auto h = engine_->hold(); }  // the engine's own thread may be inside the handler yet
  const size_t fixed = wire::MpaStart::kSize + wire::MpaEnhanced::kSize;
  ASSERT_EQ(heard.size(), fixed + Wfrc::kSize);
  const auto block = Wfrc::parse(Bytes{heard}.subspan(fixed));
  ASSERT_TRUE(block);
  EXPECT_EQ(block->version, Wfrc::kVersion) << "ours, whatever the Request's";
  EXPECT_EQ(block->code, Wfrc::Code::not_ready);
  EXPECT_EQ(block->source_qpn, request.destination_qpn);
  EXPECT_EQ(block->destination_qpn, request.source_qpn);
  EXPECT_EQ(block->source_gid, request.destination_gid);
  EXPECT_EQ(block->destination_gid, request.source_gid);
  EXPECT_EQ(block->nonce, request.nonce);
  const auto& refused = engine_->counters().bring_up_refused;
  EXPECT_EQ(refused[static_cast<size_t>(BringUpRefusal::parked_too_many)].value(), 1U);
}

}  // namespace
}  // namespace weft::cm
