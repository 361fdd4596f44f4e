#include "doctor/path_probe.h"

#include <charconv>
#include <set>

#include "doctor/client.h"
#include "doctor/probe_socket.h"
#include "doctor/segment_tests.h"
#include "doctor/session.h"
#include "doctor/size_search.h"
#include "port/udp_bind.h"

namespace weft::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// How long a datagram may be late: behind a reply over TCP that was sent after it.
constexpr auto kLateness = 150ms;
constexpr unsigned kPings = 5;
constexpr auto kConnect = 5s;
// Datagrams that look for losses, in bursts that any socket takes in.
constexpr uint32_t kSeries = 256;
constexpr uint32_t kSeriesBurst = 32;
constexpr size_t kSeriesSize = 512;
// Bytes of a burst of probes: an ordinary user's socket has room for 212992, headers included.
constexpr uint32_t kBurstBytes = 100'000;
// So often a size has to be lost until it counts as too large: where few datagrams are lost, and
// where many are.
constexpr unsigned kTries = 3;
constexpr unsigned kTriesWithLoss = 8;
// A datagram that IP has to cut up is larger than the interface allows by this much.
constexpr uint32_t kAbove = 1000;

uint64_t from_hex(const std::string& text) {
  uint64_t number = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

// The tests by UDP.
class DatagramTests {
 public:
  DatagramTests(Client& client, const port::Address& to)
      : client_(client), to_(to), token_(from_hex(client.token())) {
    const port::Address local = client.local();
    port::Address at = local;
    at.set_port(0);
    auto fd = port::bind_udp(at);
    if (!fd.ok()) throw kit::Failure("no UDP socket: " + fd.error().to_string());
    socket_ = ProbeSocket{std::move(*fd)};
    peer_ = {.address = to.gid(), .port = to.port(), .interface = to.scope(), .local = local.gid()};
  }

  // Finds out whether small datagrams pass, and gets the cookie.
  void ping(PathFacts& facts);
  // Is a ping to this port answered? The last test: the peer sends from that port afterwards.
  bool port_answers(uint16_t port);
  void look_for_losses(PathFacts& facts);
  void find_sizes(PathFacts& facts);
  void try_fragments(PathFacts& facts);
  void look_at_marks(PathFacts& facts);

 private:
  using Ids = std::set<uint32_t>;

  uint32_t headers() const {
    return static_cast<uint32_t>(wire::udp_ip_headers(to_.gid().is_ipv4()));
  }
  DatagramFacts& there(PathFacts& facts) const { return facts.datagrams[0]; }
  DatagramFacts& back(PathFacts& facts) const { return facts.datagrams[1]; }
  ProbeSocket::Sent send(uint32_t round, uint32_t id, size_t size, bool fragments = false,
                         uint8_t tos = 0) {
    return socket_.send({.token = token_, .round = round, .id = id}, size, peer_, fragments, tos);
  }
  // Receives datagrams for so long, or until `enough`.
  template <class F>
  void receive(std::chrono::milliseconds time, F&& enough);
  void handle(const ProbeSocket::Received& datagram);
  // What the peer has received of this round. Waits for late datagrams if fewer than `all` arrived.
  nlohmann::json received_there(uint32_t all);
  // Makes the peer send, and waits for `all` datagrams.
  nlohmann::json make_peer_send(const nlohmann::json& what, uint32_t all);
  unsigned tries(const DatagramFacts& d) const {
    return d.lost * 50 > d.sent ? kTriesWithLoss : kTries;
  }
  void find_size_there(PathFacts& facts);
  void find_size_back(PathFacts& facts);

  Client& client_;
  const port::Address to_;
  const uint64_t token_;
  ProbeSocket socket_;
  ProbeSocket::Remote peer_;
  uint32_t round_ = 0;
  // What arrived here.
  std::optional<Probe> ping_reply_;
  bool pinged_ = false;
  Ids ids_;  // of the round `round_`
  std::optional<uint8_t> tos_;
};

void DatagramTests::handle(const ProbeSocket::Received& datagram) {
  const Probe& p = datagram.probe;
  if (p.token != token_) return;
  if (p.kind == Probe::Kind::ping) pinged_ = true;
  if (p.kind == Probe::Kind::ping_reply && p.round == round_) ping_reply_ = p;
  if (p.kind == Probe::Kind::probe && p.round == round_) {
    ids_.insert(p.id);
    tos_ = datagram.tos;
  }
}

template <class F>
void DatagramTests::receive(std::chrono::milliseconds time, F&& enough) {
  const auto until = Clock::now() + time;
  for (;;) {
    socket_.receive([&](const ProbeSocket::Received& datagram) { handle(datagram); });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (enough() || left.count() <= 0) return;
    (void)wait_readable(socket_.fd(), left);
  }
}

void DatagramTests::ping(PathFacts& facts) {
  ++round_;
  nlohmann::json received;
  for (unsigned i = 0; i < kPings && !ping_reply_; ++i) {
    (void)socket_.send({.kind = Probe::Kind::ping, .token = token_, .round = round_, .id = i},
                       kProbeHeader, peer_);
    // The reply over TCP comes behind the ping's.
    received = client_.request({{"ask", "heard"}});
    receive(kLateness, [&] { return ping_reply_.has_value(); });
  }
  there(facts).passes = received.at("hails").get<uint32_t>() > 0;
  facts.own_udp = port::Address::from_gid(peer_.local, socket_.port()).to_string();
  if (ping_reply_) {
    back(facts).passes = true;
    facts.own_udp_seen =
        port::Address::from_gid(ping_reply_->seen, ping_reply_->seen_port).to_string();
    return;
  }
  // Datagrams from the peer alone may pass.
  client_.request({{"ask", "hail"}, {"port", socket_.port()}});
  receive(2 * kLateness, [&] { return pinged_; });
  back(facts).passes = pinged_;
}

bool DatagramTests::port_answers(uint16_t port) {
  ++round_;
  ProbeSocket::Remote to = peer_;
  to.port = port;
  ping_reply_.reset();
  for (unsigned i = 0; i < kPings && !ping_reply_; ++i) {
    (void)socket_.send({.kind = Probe::Kind::ping, .token = token_, .round = round_, .id = i},
                       kProbeHeader, to);
    client_.request({{"ask", "heard"}});
    receive(kLateness, [&] { return ping_reply_.has_value(); });
  }
  return ping_reply_.has_value();
}

nlohmann::json DatagramTests::received_there(uint32_t all) {
  const auto of_round = [&] {
    auto reply = client_.request({{"ask", "heard"}});
    if (reply.at("round").get<uint32_t>() != round_) {
      reply = {{"round", round_}, {"count", 0}, {"ids", nlohmann::json::array()}, {"tos", 0}};
    }
    return reply;
  };
  auto reply = of_round();
  if (reply.at("count").get<uint32_t>() >= all) return reply;
  receive(kLateness, [] { return false; });
  return of_round();
}

nlohmann::json DatagramTests::make_peer_send(const nlohmann::json& what, uint32_t all) {
  ++round_;
  ids_.clear();
  nlohmann::json request = what;
  request["ask"] = "send";
  request["cookie"] = in_hex(ping_reply_->cookie);
  request["round"] = round_;
  auto reply = client_.request(request);
  receive(kLateness, [&] { return ids_.size() >= all; });
  return reply;
}

void DatagramTests::look_for_losses(PathFacts& facts) {
  if (there(facts).passes) {
    ++round_;
    uint32_t sent = 0;
    for (uint32_t id = 0; id < kSeries; ++id) {
      if (send(round_, id, kSeriesSize) == ProbeSocket::Sent::yes) ++sent;
      // The reply shows that the peer has read the burst from its socket.
      if ((id + 1) % kSeriesBurst == 0) client_.request({{"ask", "heard"}});
    }
    const auto count = received_there(sent).at("count").get<uint32_t>();
    there(facts).sent = sent;
    there(facts).lost = sent - std::min(sent, count);
  }
  if (!back(facts).passes || !ping_reply_) return;
  for (uint32_t i = 0; i < kSeries / kSeriesBurst; ++i) {
    const auto reply =
        make_peer_send({{"sizes", {kSeriesSize}}, {"times", kSeriesBurst}}, kSeriesBurst);
    const auto sent = reply.at("sent").get<uint32_t>();
    back(facts).sent += sent;
    back(facts).lost += sent - std::min<uint32_t>(sent, static_cast<uint32_t>(ids_.size()));
  }
}

void DatagramTests::find_sizes(PathFacts& facts) {
  if (there(facts).passes) find_size_there(facts);
  if (back(facts).passes && ping_reply_) find_size_back(facts);
}

// The sizes are of IP packets, as an MTU is.
void DatagramTests::find_size_there(PathFacts& facts) {
  DatagramFacts& d = there(facts);
  SizeSearch search(kProbeHeader + headers(), d.most, tries(d), kBurstBytes);
  for (;;) {
    const std::vector<uint32_t> sizes = search.next();
    if (sizes.empty()) break;
    ++round_;
    uint32_t sent = 0;
    for (uint32_t id = 0; id < sizes.size(); ++id) {
      const ProbeSocket::Sent outcome = send(round_, id, sizes[id] - headers());
      if (outcome == ProbeSocket::Sent::refused) search.refused(sizes[id]);
      if (outcome == ProbeSocket::Sent::yes) ++sent;
    }
    const auto reply = received_there(sent);
    for (const auto& id : reply.at("ids")) {
      if (id.get<uint32_t>() < sizes.size()) search.arrived(sizes[id.get<uint32_t>()]);
    }
    search.burst_over();
  }
  d.largest = search.passes();
}

void DatagramTests::find_size_back(PathFacts& facts) {
  DatagramFacts& d = back(facts);
  SizeSearch search(kProbeHeader + headers(), d.most, tries(d), kBurstBytes);
  for (;;) {
    const std::vector<uint32_t> sizes = search.next();
    if (sizes.empty()) break;
    auto payloads = nlohmann::json::array();
    for (const uint32_t size : sizes) payloads.push_back(size - headers());
    const auto reply = make_peer_send({{"sizes", payloads}}, static_cast<uint32_t>(sizes.size()));
    for (const auto& refused : reply.at("refused")) {
      search.refused(refused.get<uint32_t>() + headers());
    }
    for (const uint32_t id : ids_) {
      if (id < sizes.size()) search.arrived(sizes[id]);
    }
    search.burst_over();
  }
  d.largest = search.passes();
}

void DatagramTests::try_fragments(PathFacts& facts) {
  const auto size_of = [&](const DatagramFacts& d) {
    return std::min<size_t>(d.most + kAbove, kMostDatagram);
  };
  DatagramFacts& t = there(facts);
  DatagramFacts& b = back(facts);
  // Whole packets of the interface's size do not pass, so their fragments do not.
  if (t.passes && t.largest == t.most) {
    t.fragments = false;
    for (unsigned i = 0; i < tries(t) && !*t.fragments; ++i) {
      ++round_;
      (void)send(round_, 0, size_of(t), true);
      t.fragments = received_there(1).at("count").get<uint32_t>() > 0;
    }
  }
  if (b.passes && ping_reply_ && b.largest == b.most) {
    b.fragments = false;
    for (unsigned i = 0; i < tries(b) && !*b.fragments; ++i) {
      make_peer_send({{"sizes", {size_of(b)}}, {"fragments", true}}, 1);
      b.fragments = !ids_.empty();
    }
  }
}

void DatagramTests::look_at_marks(PathFacts& facts) {
  DatagramFacts& t = there(facts);
  DatagramFacts& b = back(facts);
  for (unsigned i = 0; t.passes && i < tries(t) && !t.tos; ++i) {
    ++round_;
    (void)send(round_, 0, kProbeHeader, false, kMarks);
    const auto reply = received_there(1);
    if (reply.at("count").get<uint32_t>() > 0) t.tos = reply.at("tos").get<uint8_t>();
  }
  for (unsigned i = 0; b.passes && ping_reply_ && i < tries(b) && !b.tos; ++i) {
    tos_.reset();
    make_peer_send({{"sizes", {kProbeHeader}}, {"tos", kMarks}}, 1);
    b.tos = tos_;
  }
}

void read_greeting(const Client& c, const port::Address& to, PathFacts& facts) {
  const nlohmann::json& greeting = c.greeting();
  facts.own = c.local().to_string();
  facts.own_seen = greeting.at("you");
  facts.peer_own = greeting.at("me");
  facts.dialed = to.to_string();
  facts.program_port = greeting.at("program_port");
  // The kernel's path MTU is larger than the interface's if the path leads to this host.
  constexpr uint32_t kMostPacket = 65'535;
  const uint32_t known = mtu_towards(to);
  const uint32_t own = std::max(known, interface_mtu(c.local().gid(), known));
  facts.datagrams[0].most = std::min(own, kMostPacket);
  facts.datagrams[1].most = std::min(greeting.at("mtu").get<uint32_t>(), kMostPacket);
}

void run_tests(Client& client, const port::Address& to, PathFacts& facts) {
  DatagramTests datagrams(client, to);
  datagrams.ping(facts);
  datagrams.look_for_losses(facts);
  datagrams.find_sizes(facts);
  for (const Direction direction : {Direction::to_peer, Direction::from_peer}) {
    const auto i = static_cast<size_t>(direction);
    facts.segments[i] = test_segments(client, to, direction, facts.datagrams[i].largest);
  }
  // By now the kernels have heard what routers say.
  facts.known_mtu = {mtu_towards(to), client.request({{"ask", "mtu"}}).at("mtu")};
  datagrams.try_fragments(facts);
  datagrams.look_at_marks(facts);
  port::Address program = to;
  program.set_port(facts.program_port);
  facts.program_tcp = try_connect(program, kConnect);
  facts.program_udp = datagrams.port_answers(facts.program_port);
}

}  // namespace

PathFacts probe_path(const port::Address& to, const std::string& interface) {
  PathFacts facts{.peer = to.gid().to_string(), .port = to.port(), .interface = interface};
  Client client(to, kConnect);
  try {
    read_greeting(client, to, facts);
    run_tests(client, to, facts);
  } catch (const nlohmann::json::exception&) {
    facts.failed = "its answers are those of another version";
  } catch (const kit::Failure& failed) {
    facts.failed = failed.what();
  }
  return facts;
}

}  // namespace weft::doctor
