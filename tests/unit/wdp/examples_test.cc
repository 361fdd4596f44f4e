// The conversation of docs/spec/examples-wdp.md, section 2: a handshake and a session say exactly
// those datagrams.

#include <gtest/gtest.h>

#include "tests/support/spec_example.h"
#include "wdp/handshake.h"
#include "wdp/request_gate.h"
#include "wdp/session_control.h"
#include "wire/term_errors.h"

namespace weft::wdp {
namespace {

using test::Buffer;
using test::example;
using test::to_hex;
using wire::RejReason;
using wire::WdpCtl;

const Qpn kCaller = make_qpn(40000, 2);
const Qpn kCallee = make_qpn(50000, 7);
const Endpoint kCallersPort{Gid::from_ipv4(0xc0000201), 40000};
const Endpoint kCalleesPort{Gid::from_ipv4(0xc0000202), 50000};
constexpr SessionToken kCallersToken{0x0a1b2c3d};
constexpr SessionToken kCalleesToken{0x51525354};

// Gives these numbers, and then zeros.
class Script final : public Random {
 public:
  explicit Script(std::vector<uint64_t> numbers) : numbers_(std::move(numbers)) {}
  uint64_t next() override { return at_ < numbers_.size() ? numbers_[at_++] : 0; }

 private:
  std::vector<uint64_t> numbers_;
  size_t at_ = 0;
};

// The one datagram that it says.
template <class Speaker, class... Now>
std::string said(Speaker& speaker, Now... now) {
  Train train;
  speaker.fill(train, now...);
  if (train.empty()) return "nothing";
  return to_hex({static_cast<const std::byte*>(train.pieces()[0].iov_base), train.bytes()});
}

std::string encoded(const WdpCtl& c) {
  Buffer b(c.size());
  c.encode(b.data());
  return to_hex(b);
}

Offer offer(Qpn own, SessionToken token, uint32_t first_psn) {
  return {.own_qpn = own,
          .token = token,
          .first_psn = Psn{first_psn},
          .ird = 16,
          .ord = 16,
          .max_payload = 1472,
          .features = {.immediate = true, .uc_read = true, .ka_stats = true}};
}

// The page's datagram, and what is read in it.
struct Heard {
  explicit Heard(const char* name) : bytes(example(name)), ctl(*WdpCtl::parse(bytes)) {}
  Buffer bytes;
  WdpCtl ctl;
};

TEST(WdpConversation, Handshake) {
  const Time now = Time::from_ns(1'000'000'000);
  Script xid{{0x5eed0002}};
  Handshake caller{xid};
  caller.connect(offer(kCaller, kCallersToken, 0x01020304), {.to = kCalleesPort}, kCallee, true,
                 now);
  EXPECT_EQ(said(caller), to_hex(example("REQ")));

  // The gate's first secret is 00 01 .. 0f.
  Script secrets{
      {byte_swap(uint64_t{0x0001020304050607}), byte_swap(uint64_t{0x08090a0b0c0d0e0f})}};
  RequestGate gate{secrets, now};
  const Heard request{"REQ"};
  const auto judged = gate.judge(request.ctl, kCallersPort, RequestGate::kMostHalfOpen, now);
  EXPECT_FALSE(judged.admitted);
  EXPECT_EQ(encoded(judged.answer), to_hex(example("COOKIE")));
  EXPECT_EQ(encoded(RequestGate::rejection(request.ctl, RejReason::not_ready)),
            to_hex(example("REJ")));
  Buffer other_version = request.bytes;
  other_version[0] = std::byte{0xd2};
  EXPECT_EQ(encoded(*gate.other_version(other_version, now)), to_hex(example("REJ version")));

  const Heard cookie{"COOKIE"};
  ASSERT_TRUE(caller.received(cookie.ctl, cookie.bytes.size(), now).ok());
  EXPECT_EQ(said(caller), to_hex(example("REQ with cookie")));

  const Heard again{"REQ with cookie"};
  EXPECT_TRUE(gate.judge(again.ctl, kCallersPort, RequestGate::kMostHalfOpen, now).validated);
  Script nothing{{}};
  Handshake callee{nothing};
  callee.requested(again.ctl, {.to = kCallersPort}, again.bytes.size(), true);
  callee.requested_again(again.bytes.size(), true, now);
  EXPECT_EQ(said(callee), to_hex(example("WAIT")));
  callee.accept(offer(kCallee, kCalleesToken, 0xfffffff0), now);
  EXPECT_EQ(said(callee), to_hex(example("REP")));

  const Heard reply{"REP"};
  ASSERT_TRUE(caller.received(reply.ctl, reply.bytes.size(), now).ok());
  EXPECT_EQ(said(caller), to_hex(example("RTU")));
  EXPECT_EQ(caller.state(), Handshake::State::established);
}

// What stands around a SessionControl.
struct Side {
  Side(const UcParameters& p, Random& random, Time now)
      : parameters(p), control(parameters, writer, rtt, counters, random, now) {}
  UcParameters parameters;
  UcWriter writer{parameters};
  Rtt rtt{Duration{0}};
  UcCounters counters;
  SessionControl control;
};

TEST(WdpConversation, Session) {
  const Time now = Time::from_ns(uint64_t{0x12345} * 1'000'000);
  Script probes{{0xabcd1234}};
  // It has sent 0x01020304 to 0x01020306.
  Side caller{{.path = {.to = kCalleesPort},
               .peer_token = kCalleesToken,
               .own_token = kCallersToken,
               .own_qpn = kCaller,
               .peer_qpn = kCallee,
               .first_psn = Psn{0x01020307},
               .probes_path = true},
              probes,
              now};
  Script nothing{{}};
  Side callee{{.path = {.to = kCallersPort},
               .peer_token = kCallersToken,
               .own_token = kCalleesToken,
               .own_qpn = kCallee,
               .peer_qpn = kCaller},
              nothing,
              now};
  PsnWindow psns{Psn{0x01020304}};
  for (const uint32_t psn : {0x01020304, 0x01020306}) {
    ASSERT_TRUE(psns.check(Psn{psn}).ok());
    psns.mark(Psn{psn});
  }
  callee.counters.datagrams_received = 3;
  callee.counters.drops.count(wire::WdpDrop::duplicate);
  const auto hears = [&](const char* name) {
    const Heard h{name};
    return callee.control.received(h.ctl, psns, now);
  };

  EXPECT_EQ(said(caller.control, now), to_hex(example("PROBE")));
  hears("PROBE");
  EXPECT_EQ(said(callee.control, now), to_hex(example("PROBEA")));

  caller.control.ask(now, false);
  EXPECT_EQ(said(caller.control, now), to_hex(example("KA")));
  hears("KA");
  EXPECT_EQ(said(callee.control, now), to_hex(example("KAA")));

  const Buffer err = example("ERR");
  Buffer refused(err.begin() + WdpCtl::kSize, err.end());
  refused.resize(refused.size() + 8);
  callee.control.report(wire::term::kTaggedBounds, *wire::WdpData::parse(refused));
  EXPECT_EQ(said(callee.control, now), to_hex(err));

  caller.control.disconnect(0, now);
  EXPECT_EQ(said(caller.control, now), to_hex(example("DREQ")));
  EXPECT_EQ(hears("DREQ"), SessionControl::Event::peer_leaves);
  EXPECT_EQ(said(callee.control, now), to_hex(example("DREP")));
}

// Section 2.8.
TEST(WdpConversation, ResolutionOfAUdQueuePair) {
  const Time now = Time::from_ns(1'000'000'000);
  Script xid{{0x5eed0002}};
  Handshake asker{xid};
  const Buffer question = test::from_text("who?!");
  asker.connect({.service = wire::CtlService::ud_resolution,
                 .own_qpn = kCaller,
                 .token = kCallersToken,
                 .private_data = question},
                {.to = {kCalleesPort.address, 7471}}, Qpn{}, false, now);
  EXPECT_EQ(said(asker), to_hex(example("UD question")));

  const Heard asked{"UD question"};
  Script nothing{{}};
  Handshake listener{nothing};
  listener.requested(asked.ctl, {.to = kCallersPort}, asked.bytes.size(), false);
  const Buffer answer = test::from_text("me");
  listener.accept({.own_qpn = kCallee, .first_psn = Psn{0x11111111}, .private_data = answer}, now);
  EXPECT_EQ(said(listener), to_hex(example("UD answer")));

  const Heard heard{"UD answer"};
  ASSERT_TRUE(asker.received(heard.ctl, heard.bytes.size(), now).ok());
  EXPECT_EQ(asker.state(), Handshake::State::established);
  EXPECT_EQ(asker.peer().q_key(), QKey{0x11111111});

  RequestGate gate{nothing, now};
  const Heard critical{"UD question with TLV"};
  const auto judged = gate.judge(critical.ctl, kCallersPort, 0, now);
  EXPECT_FALSE(judged.admitted);
  EXPECT_EQ(judged.answer.reason, static_cast<uint32_t>(RejReason::critical_tlv));
}

}  // namespace
}  // namespace weft::wdp
