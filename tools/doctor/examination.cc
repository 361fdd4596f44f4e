#include "doctor/examination.h"

#include <charconv>
#include <set>

#include "doctor/consultation.h"
#include "doctor/segment_trials.h"
#include "doctor/session.h"
#include "doctor/size_search.h"
#include "doctor/udp_end.h"
#include "port/udp_bind.h"

namespace weft::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// What may still be on its way when an answer over TCP has arrived that was sent behind it.
constexpr auto kOvertaken = 150ms;
constexpr unsigned kHails = 5;
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

// The examination's own end of UDP.
class Datagrams {
 public:
  Datagrams(Consultation& consultation, const port::Address& to)
      : consultation_(consultation), to_(to), token_(from_hex(consultation.token())) {
    const port::Address own = consultation.own();
    port::Address at = own;
    at.set_port(0);
    auto fd = port::bind_udp(at);
    if (!fd.ok()) throw kit::Failure("no UDP socket: " + fd.error().to_string());
    end_ = UdpEnd{std::move(*fd)};
    peer_ = {.address = to.gid(), .port = to.port(), .interface = to.scope(), .from = own.gid()};
  }

  // Finds out whether small datagrams pass, and gets the cookie.
  void hail(PathFacts& facts);
  // Is a hail to this port answered? The last question: the peer sends from that port afterwards.
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
  UdpEnd::Sent send(uint32_t round, uint32_t id, size_t size, bool fragments = false,
                    uint8_t tos = 0) {
    return end_.send({.token = token_, .round = round, .id = id}, size, peer_, fragments, tos);
  }
  // Takes in what has come, for as long, until `enough`.
  template <class F>
  void listen(std::chrono::milliseconds time, F&& enough);
  void took(const UdpEnd::Came& datagram);
  // What the peer has heard of a round; waits for what was overtaken, unless it is `all`.
  nlohmann::json heard(uint32_t all);
  nlohmann::json have_sent(const nlohmann::json& what, uint32_t all);
  unsigned tries(const DatagramFacts& way) const {
    return way.lost * 50 > way.sent ? kTriesWithLoss : kTries;
  }
  void find_size_there(PathFacts& facts);
  void find_size_back(PathFacts& facts);

  Consultation& consultation_;
  const port::Address to_;
  const uint64_t token_;
  UdpEnd end_;
  UdpEnd::To peer_;
  uint32_t round_ = 0;
  // What came here.
  std::optional<Probe> hail_answer_;
  bool hailed_ = false;
  Ids ids_;  // of the round `round_`
  std::optional<uint8_t> tos_;
};

void Datagrams::took(const UdpEnd::Came& datagram) {
  const Probe& p = datagram.probe;
  if (p.token != token_) return;
  if (p.kind == Probe::Kind::hail) hailed_ = true;
  if (p.kind == Probe::Kind::hail_answer && p.round == round_) hail_answer_ = p;
  if (p.kind == Probe::Kind::probe && p.round == round_) {
    ids_.insert(p.id);
    tos_ = datagram.tos;
  }
}

template <class F>
void Datagrams::listen(std::chrono::milliseconds time, F&& enough) {
  const auto until = Clock::now() + time;
  for (;;) {
    end_.receive([&](const UdpEnd::Came& datagram) { took(datagram); });
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    if (enough() || left.count() <= 0) return;
    (void)wait_readable(end_.fd(), left);
  }
}

void Datagrams::hail(PathFacts& facts) {
  ++round_;
  nlohmann::json heard;
  for (unsigned i = 0; i < kHails && !hail_answer_; ++i) {
    (void)end_.send({.kind = Probe::Kind::hail, .token = token_, .round = round_, .id = i},
                    kProbeHeader, peer_);
    // Its answer comes over TCP behind that to the hail.
    heard = consultation_.ask({{"ask", "heard"}});
    listen(kOvertaken, [&] { return hail_answer_.has_value(); });
  }
  there(facts).passes = heard.at("hails").get<uint32_t>() > 0;
  facts.own_udp = port::Address::from_gid(peer_.from, end_.port()).to_string();
  if (hail_answer_) {
    back(facts).passes = true;
    facts.own_udp_seen =
        port::Address::from_gid(hail_answer_->seen, hail_answer_->seen_port).to_string();
    return;
  }
  // Back alone, perhaps.
  consultation_.ask({{"ask", "hail"}, {"port", end_.port()}});
  listen(2 * kOvertaken, [&] { return hailed_; });
  back(facts).passes = hailed_;
}

bool Datagrams::port_answers(uint16_t port) {
  ++round_;
  UdpEnd::To to = peer_;
  to.port = port;
  hail_answer_.reset();
  for (unsigned i = 0; i < kHails && !hail_answer_; ++i) {
    (void)end_.send({.kind = Probe::Kind::hail, .token = token_, .round = round_, .id = i},
                    kProbeHeader, to);
    consultation_.ask({{"ask", "heard"}});
    listen(kOvertaken, [&] { return hail_answer_.has_value(); });
  }
  return hail_answer_.has_value();
}

nlohmann::json Datagrams::heard(uint32_t all) {
  const auto of_round = [&] {
    auto answer = consultation_.ask({{"ask", "heard"}});
    if (answer.at("round").get<uint32_t>() != round_) {
      answer = {{"round", round_}, {"count", 0}, {"ids", nlohmann::json::array()}, {"tos", 0}};
    }
    return answer;
  };
  auto answer = of_round();
  if (answer.at("count").get<uint32_t>() >= all) return answer;
  listen(kOvertaken, [] { return false; });
  return of_round();
}

// Asks for datagrams and waits for `all` of them.
nlohmann::json Datagrams::have_sent(const nlohmann::json& what, uint32_t all) {
  ++round_;
  ids_.clear();
  nlohmann::json question = what;
  question["ask"] = "send";
  question["cookie"] = in_hex(hail_answer_->cookie);
  question["round"] = round_;
  auto answer = consultation_.ask(question);
  listen(kOvertaken, [&] { return ids_.size() >= all; });
  return answer;
}

void Datagrams::look_for_losses(PathFacts& facts) {
  if (there(facts).passes) {
    ++round_;
    uint32_t sent = 0;
    for (uint32_t id = 0; id < kSeries; ++id) {
      if (send(round_, id, kSeriesSize) == UdpEnd::Sent::yes) ++sent;
      // The answer shows that the burst was taken from the socket.
      if ((id + 1) % kSeriesBurst == 0) consultation_.ask({{"ask", "heard"}});
    }
    const auto count = heard(sent).at("count").get<uint32_t>();
    there(facts).sent = sent;
    there(facts).lost = sent - std::min(sent, count);
  }
  if (!back(facts).passes || !hail_answer_) return;
  for (uint32_t i = 0; i < kSeries / kSeriesBurst; ++i) {
    const auto answer =
        have_sent({{"sizes", {kSeriesSize}}, {"times", kSeriesBurst}}, kSeriesBurst);
    const auto sent = answer.at("sent").get<uint32_t>();
    back(facts).sent += sent;
    back(facts).lost += sent - std::min<uint32_t>(sent, static_cast<uint32_t>(ids_.size()));
  }
}

void Datagrams::find_sizes(PathFacts& facts) {
  if (there(facts).passes) find_size_there(facts);
  if (back(facts).passes && hail_answer_) find_size_back(facts);
}

// The sizes are of IP packets, as an MTU is.
void Datagrams::find_size_there(PathFacts& facts) {
  DatagramFacts& d = there(facts);
  SizeSearch search(kProbeHeader + headers(), d.most, tries(d), kBurstBytes);
  for (;;) {
    const std::vector<uint32_t> sizes = search.next();
    if (sizes.empty()) break;
    ++round_;
    uint32_t sent = 0;
    for (uint32_t id = 0; id < sizes.size(); ++id) {
      const UdpEnd::Sent outcome = send(round_, id, sizes[id] - headers());
      if (outcome == UdpEnd::Sent::refused) search.refused(sizes[id]);
      if (outcome == UdpEnd::Sent::yes) ++sent;
    }
    const auto answer = heard(sent);
    for (const auto& id : answer.at("ids")) {
      if (id.get<uint32_t>() < sizes.size()) search.arrived(sizes[id.get<uint32_t>()]);
    }
    search.burst_over();
  }
  d.largest = search.passes();
}

void Datagrams::find_size_back(PathFacts& facts) {
  DatagramFacts& d = back(facts);
  SizeSearch search(kProbeHeader + headers(), d.most, tries(d), kBurstBytes);
  for (;;) {
    const std::vector<uint32_t> sizes = search.next();
    if (sizes.empty()) break;
    auto payloads = nlohmann::json::array();
    for (const uint32_t size : sizes) payloads.push_back(size - headers());
    const auto answer = have_sent({{"sizes", payloads}}, static_cast<uint32_t>(sizes.size()));
    for (const auto& refused : answer.at("refused")) {
      search.refused(refused.get<uint32_t>() + headers());
    }
    for (const uint32_t id : ids_) {
      if (id < sizes.size()) search.arrived(sizes[id]);
    }
    search.burst_over();
  }
  d.largest = search.passes();
}

void Datagrams::try_fragments(PathFacts& facts) {
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
      t.fragments = heard(1).at("count").get<uint32_t>() > 0;
    }
  }
  if (b.passes && hail_answer_ && b.largest == b.most) {
    b.fragments = false;
    for (unsigned i = 0; i < tries(b) && !*b.fragments; ++i) {
      have_sent({{"sizes", {size_of(b)}}, {"fragments", true}}, 1);
      b.fragments = !ids_.empty();
    }
  }
}

void Datagrams::look_at_marks(PathFacts& facts) {
  DatagramFacts& t = there(facts);
  DatagramFacts& b = back(facts);
  for (unsigned i = 0; t.passes && i < tries(t) && !t.tos; ++i) {
    ++round_;
    (void)send(round_, 0, kProbeHeader, false, kMarks);
    const auto answer = heard(1);
    if (answer.at("count").get<uint32_t>() > 0) t.tos = answer.at("tos").get<uint8_t>();
  }
  for (unsigned i = 0; b.passes && hail_answer_ && i < tries(b) && !b.tos; ++i) {
    tos_.reset();
    have_sent({{"sizes", {kProbeHeader}}, {"tos", kMarks}}, 1);
    b.tos = tos_;
  }
}

void meet(const Consultation& c, const port::Address& to, PathFacts& facts) {
  const nlohmann::json& greeting = c.greeting();
  facts.own = c.own().to_string();
  facts.own_seen = greeting.at("you");
  facts.peer_own = greeting.at("me");
  facts.dialed = to.to_string();
  facts.program_port = greeting.at("program_port");
  // What the kernel knows of the way is more than the interface's where that leads to itself.
  constexpr uint32_t kMostPacket = 65'535;
  const uint32_t known = mtu_towards(to);
  const uint32_t own = std::max(known, interface_mtu(c.own().gid(), known));
  facts.datagrams[0].most = std::min(own, kMostPacket);
  facts.datagrams[1].most = std::min(greeting.at("mtu").get<uint32_t>(), kMostPacket);
}

void examine_with(Consultation& consultation, const port::Address& to, PathFacts& facts) {
  Datagrams datagrams(consultation, to);
  datagrams.hail(facts);
  datagrams.look_for_losses(facts);
  datagrams.find_sizes(facts);
  for (const Way way : {Way::there, Way::back}) {
    const auto i = static_cast<size_t>(way);
    facts.segments[i] = try_segments(consultation, to, way, facts.datagrams[i].largest);
  }
  // By now the kernels have heard what routers say.
  facts.known_mtu = {mtu_towards(to), consultation.ask({{"ask", "mtu"}}).at("mtu")};
  datagrams.try_fragments(facts);
  datagrams.look_at_marks(facts);
  port::Address program = to;
  program.set_port(facts.program_port);
  facts.program_tcp = try_connect(program, kConnect);
  facts.program_udp = datagrams.port_answers(facts.program_port);
}

}  // namespace

PathFacts examine(const port::Address& to, const std::string& interface) {
  PathFacts facts{.peer = to.gid().to_string(), .port = to.port(), .interface = interface};
  Consultation consultation(to, kConnect);
  try {
    meet(consultation, to, facts);
    examine_with(consultation, to, facts);
  } catch (const nlohmann::json::exception&) {
    facts.failed = "its answers are those of another version";
  } catch (const kit::Failure& failed) {
    facts.failed = failed.what();
  }
  return facts;
}

}  // namespace weft::doctor
