// Requests through a channel that are none, or for somebody else (spec/wdp-rd 7.5): each is counted
// and answered as on TCP. The caller is a socket with channels that the test serves.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <thread>

#include "mpa/startup.h"
#include "tests/support/counted.h"
#include "tests/support/rd_node.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"
#include "wdp/rd_stream.h"
#include "wire/wfrc.h"

namespace weft::test {
namespace {

using std::chrono::steady_clock;
using wire::Wfrc;

Time now() {
  return Time::from_ns(std::chrono::nanoseconds{steady_clock::now().time_since_epoch()}.count());
}

Gid gid_of(const ibv_gid& raw) {
  Gid g;
  std::memcpy(g.raw.data(), raw.raw, g.raw.size());
  return g;
}

sockaddr_in address_of(const wdp::Endpoint& e) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(e.port);
  std::memcpy(&a.sin_addr, e.address.raw.data() + 12, 4);
  return a;
}

// A socket with channels on an address of this host.
struct Stranger {
  explicit Stranger(const Gid& on)
      : fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), own{.address = on} {
    node.socket.channels().enable({.own_port = RdNode::kPort, .window = 1 << 20, .starts = true});
    const sockaddr_in a = address_of(own);
    check(bind(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0, "bind");
  }
  ~Stranger() { close(fd); }
  // Until that holds.
  void serve(const std::function<bool()>& until) {
    for (const auto end = steady_clock::now() + std::chrono::seconds{20}; !until();) {
      check(steady_clock::now() < end, "the other side answers");
      for (const auto& d : node.said(now())) {
        const sockaddr_in to = address_of(d.to);
        (void)sendto(fd, d.bytes.data(), d.bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                     sizeof to);
      }
      Buffer bytes(65536);
      sockaddr_in from{};
      socklen_t size = sizeof from;
      const ssize_t n = recvfrom(fd, bytes.data(), bytes.size(), MSG_DONTWAIT,
                                 reinterpret_cast<sockaddr*>(&from), &size);
      if (n > 0) {
        bytes.resize(static_cast<size_t>(n));
        node.hear(
            bytes,
            {.address = Gid::from_ipv4(ntohl(from.sin_addr.s_addr)), .port = ntohs(from.sin_port)},
            now());
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        node.tick(now());
      }
    }
  }
  const int fd;
  const wdp::Endpoint own;
  RdNode node{1, 1, now()};
};

// One Request of the stranger's.
struct Asked final : wdp::RdStreamOwner {
  Asked(Stranger& of, const wdp::Endpoint& at, uint8_t index)
      : from(of),
        offer{.qpn = make_qpn(RdNode::kPort, index), .session = 0x1000U + ++last, .room = 1472},
        stream(of.node.socket.channels(), *this, offer) {
    const wdp::Path path{.to = at, .from = of.own.address};
    stream.call(path);
    if (stream.needs_channel()) from.node.open(path, now());
    from.serve([this] {
      return stream.has_channel() && stream.channel()->state() == wdp::RdChannel::State::open;
    });
    check(stream.channel()->has_starts(), "connections begin there");
  }
  ~Asked() override { stream.leave(true); }
  void stream_changed() override {}
  void replied(Bytes bytes) override { reply.assign(bytes.begin(), bytes.end()); }
  void say(Qpn to, Bytes frame) { check(stream.request(to, frame), "there is room"); }
  // What comes back.
  mpa::Initiator::Outcome outcome(mpa::Initiator& initiator) {
    from.serve([this] { return !reply.empty(); });
    Bytes bytes{reply};
    auto o = initiator.received(bytes);
    check(o.has_value() && bytes.empty(), "a whole Reply");
    return std::move(*o);
  }

  Stranger& from;
  const wire::RdOffer offer;
  wdp::RdStream stream;
  Buffer reply;
  inline static uint32_t last = 0;
};

// The queue pair waits for number 3 of the stranger's.
struct Scene {
  Scene() {
    to_rtr(qp.get(), peer.value(), gid);
    to_rts(qp.get());
  }
  Wfrc block() const {
    return {.source_qpn = peer,
            .destination_qpn = own,
            .nonce = 77,
            .source_gid = here,
            .destination_gid = here};
  }
  static std::vector<std::byte> bytes_of(const Wfrc& block) {
    std::vector<std::byte> bytes(Wfrc::kSize);
    block.encode(bytes.data());
    return bytes;
  }
  static void counts(const Counted& family, const Counted::Kinds& wanted, Stranger& stranger) {
    stranger.serve([&] { return family.grown() == wanted; });
  }
  // A Request with such private data for queue pair `to` is rejected with that code.
  void is_rejected(uint8_t index, Qpn to, Bytes private_data, const std::string& why,
                   std::optional<Wfrc::Code> code) {
    const Counted refused{"bring_up_refused"};
    Asked asked{stranger, at, index};
    mpa::Initiator initiator{mpa::Offer{.peer_to_peer = true}};
    asked.say(to, initiator.request(private_data, false, true));
    const auto outcome = asked.outcome(initiator);
    check(outcome.rejected.has_value(), "rejected");
    const auto block = Wfrc::parse(outcome.rejected->private_data);
    check(block.has_value() && (!code || block->code == *code), why.c_str());
    counts(refused, {{why, 1}}, stranger);
  }
  // What is no Request has no answer.
  void is_closed(Bytes frame, const std::string& why) {
    const Counted refused{"start_refused"};
    Asked asked{stranger, at, 3};
    asked.say(own, frame);
    counts(refused, {{why, 1}}, stranger);
    check(asked.reply.empty(), "nothing is said");
  }
  void is_accepted() {
    Asked asked{stranger, at, 3};
    mpa::Initiator initiator{mpa::Offer{.peer_to_peer = true}};
    asked.say(own, initiator.request(bytes_of(block()), false, true));
    const auto outcome = asked.outcome(initiator);
    check(outcome.accepted.has_value() && outcome.rd.has_value(), "accepted");
    check(outcome.rd->qpn == own && outcome.rd->session != 0, "where it is");
  }

  const Adapter a;
  const ibv_gid gid = own_gid(a);
  const Gid here = gid_of(gid);
  CqPtr cq = a.cq(16);
  QpPtr qp = make_qp(a, cq.get(), {.depth = 8});
  const Qpn own{qp->qp_num};
  const Qpn peer = make_qpn(RdNode::kPort, 3);
  const wdp::Endpoint at{.address = here, .port = port_of(own)};
  Stranger stranger{here};
};

void each_is_answered() {
  Scene s;
  const auto good = mpa::Initiator{mpa::Offer{.peer_to_peer = true}}.request(
      Scene::bytes_of(s.block()), false, true);
  s.is_closed(pattern_bytes<std::byte>(200, 3), "bad_key");
  auto of_another_revision = good;
  of_another_revision[17] = std::byte{3};  // RFC 5044 section 7.1.1: Rev
  s.is_closed(of_another_revision, "bad_revision");
  s.is_closed(Bytes{good}.first(good.size() - 1), "bytes_behind_request");
  auto longer = good;
  longer.push_back(std::byte{1});
  s.is_closed(longer, "bytes_behind_request");
  s.is_rejected(3, s.own, pattern_bytes<std::byte>(3, 5), "no_block", Wfrc::Code::bad_parameters);
  Wfrc block = s.block();
  block.destination_qpn = make_qpn(port_of(s.own), 253);
  s.is_rejected(3, s.own, Scene::bytes_of(block), "not_your_peer", Wfrc::Code::bad_parameters);
  s.is_rejected(3, block.destination_qpn, Scene::bytes_of(block), "no_such_qp",
                Wfrc::Code::no_such_qp);
  block = s.block();
  block.source_qpn = make_qpn(RdNode::kPort, 4);
  s.is_rejected(4, s.own, Scene::bytes_of(block), "not_your_peer", Wfrc::Code::not_your_peer);
  s.is_accepted();
  block = s.block();
  block.nonce = 78;
  s.is_rejected(3, s.own, Scene::bytes_of(block), "already_connected", Wfrc::Code::qp_in_error);
}

// By default whoever calls does so from the port in his number, which no other user can have.
void another_port_is_another_user() {
  Scene s;
  s.is_rejected(3, s.own, Scene::bytes_of(s.block()), "other_user", Wfrc::Code::not_your_peer);
}

class RcByUdpHostile : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(RcByUdpHostile, each_request_is_answered) {
  EXPECT_EXIT(with({{"WEFT_RC", "udp"}, {"WEFT_PEER_CHECK", "address"}}, each_is_answered),
              ::testing::ExitedWithCode(0), "");
}

TEST_F(RcByUdpHostile, a_request_from_another_port_is_another_users) {
  EXPECT_EXIT(with({{"WEFT_RC", "udp"}}, another_port_is_another_user),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
