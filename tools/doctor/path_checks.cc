#include "doctor/path_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace weft::doctor {
namespace {

// Of a hundred datagrams: from here on connections over UDP do not work as their programs expect.
constexpr uint32_t kManyLost = 10;

constexpr size_t index_of(Direction direction) {
  return static_cast<size_t>(direction);
}
const char* towards(Direction direction) {
  return direction == Direction::to_peer ? "to the peer" : "from the peer";
}
std::string named(const char* what, Direction direction) {
  return fmt::format("{}-{}", what, direction == Direction::to_peer ? "there" : "back");
}

// Names the interface whose MTU is too large, if it is this side's.
std::string mtu_remedy(const PathFacts& f, Direction direction, uint32_t carries) {
  const std::string device =
      direction == Direction::to_peer && !f.interface.empty() ? f.interface : "DEVICE";
  return fmt::format(
      "as root, on both hosts: ip link set dev {} mtu {}. Or have the firewalls on the way let "
      "ICMP pass that says 'fragmentation needed' (IPv6: 'packet too big'). For RC alone: sysctl "
      "-w net.ipv4.tcp_mtu_probing=1",
      device, carries);
}

// Does the sending kernel know by now that the path carries less than its interface?
bool told(const PathFacts& f, Direction direction) {
  const uint32_t known = f.known_mtu[index_of(direction)];
  const uint32_t most = f.datagrams[index_of(direction)].most;
  const SegmentFacts& s = f.segments[index_of(direction)];
  return (known != 0 && known < most) ||
         (s.outcome == SegmentFacts::Outcome::passed && s.after < s.full);
}

bool narrow(const DatagramFacts& d) {
  return d.passes && d.largest < d.most;
}

Finding check_answer(const PathFacts& f) {
  const std::string who = fmt::format("{} port {}", f.peer, f.port);
  if (f.failed.empty())
    return {Severity::ok, "listener", fmt::format("a doctor listens at {}", who), ""};
  return {Severity::untested, "listener",
          fmt::format("the doctor at {} answers no longer ({}): what is missing below was not "
                      "tested",
                      who, f.failed),
          "see that 'weft doctor --listen' still runs there, and start this command again"};
}

Finding check_translation(const PathFacts& f) {
  std::vector<std::string> changes;
  const auto compare = [&](const char* whose, const std::string& own, const std::string& seen,
                           const char* whom) {
    if (own.empty() || seen.empty() || own == seen) return;
    changes.push_back(fmt::format("{} {} is {} to {}", whose, own, seen, whom));
  };
  compare("this host's TCP", f.own, f.own_seen, "the peer");
  compare("this host's UDP", f.own_udp, f.own_udp_seen, "the peer");
  compare("the peer's", f.peer_own, f.dialed, "this host");
  if (changes.empty()) {
    return {Severity::ok, "address",
            fmt::format("each side has the address by which the other sees it ({} and {})", f.own,
                        f.dialed),
            ""};
  }
  return {
      Severity::problem, "address",
      fmt::format("something between the hosts translates addresses: {}", fmt::join(changes, "; ")),
      "programs that use rdma_cm go through (perftest -R). Those that tell each other GIDs need "
      "a way without translation, such as a tunnel; where only the side that dials is "
      "translated, WEFT_PEER_CHECK=gid at the other one is enough"};
}

Finding check_program_port(const PathFacts& f) {
  const char* remedy =
      "let TCP and UDP pass between the hosts on all ports of net.ipv4.ip_local_port_range, and on "
      "those that programs listen on";
  const std::string port =
      fmt::format("port {} of the peer, one of those that weft takes", f.program_port);
  if (f.program_tcp != 0 && !f.program_udp) {
    return {Severity::problem, "ports", fmt::format("neither TCP nor UDP passes to {}", port),
            remedy};
  }
  if (f.program_tcp != 0) {
    return {Severity::problem, "ports", fmt::format("TCP does not pass to {}", port), remedy};
  }
  if (!f.program_udp) {
    const bool at_all = f.datagrams[index_of(Direction::to_peer)].passes;
    return {at_all ? Severity::problem : Severity::note, "ports",
            fmt::format("TCP passes to {}; UDP does not", port), remedy};
  }
  return {Severity::ok, "ports", fmt::format("TCP and UDP pass to {}", port), ""};
}

Finding check_segments(const PathFacts& f, Direction direction) {
  using Outcome = SegmentFacts::Outcome;
  const SegmentFacts& s = f.segments[index_of(direction)];
  const std::string check = named("tcp", direction);
  switch (s.outcome) {
    case Outcome::passed:
      if (told(f, direction)) {
        return {Severity::ok, check,
                fmt::format("TCP {}: the path carries packets of {} bytes, the interface allows "
                            "{}; a router says so, and TCP heeds it",
                            towards(direction), s.after, f.datagrams[index_of(direction)].most),
                ""};
      }
      return {Severity::ok, check,
              fmt::format("TCP {}: full segments pass, packets of {} bytes", towards(direction),
                          s.full),
              ""};
    case Outcome::vanished:
      if (s.largest == 0) {
        return {Severity::problem, check,
                fmt::format("TCP {}: full segments (packets of {} bytes) vanish, and smaller ones, "
                            "too. Connections come up and hang with the first message",
                            towards(direction), s.full),
                "look for a firewall that drops packets with data, and at 'ip -s link' of the "
                "interfaces on the way"};
      }
      return {Severity::problem, check,
              fmt::format("TCP {}: full segments (packets of {} bytes) vanish, those of {} bytes "
                          "pass, and nobody says so. Connections come up and hang with the first "
                          "large message",
                          towards(direction), s.full, s.largest),
              mtu_remedy(f, direction, s.largest)};
    case Outcome::unclear:
      return {Severity::untested, check,
              fmt::format("TCP {}: a full segment was neither acknowledged nor seen to vanish",
                          towards(direction)),
              "try again when the hosts have less to do"};
    case Outcome::untested:
      break;
  }
  return {Severity::untested, check,
          fmt::format("TCP {}: segments were not tested", towards(direction)),
          "see 'listener' above"};
}

Finding check_datagrams(const PathFacts& f, Direction direction) {
  const DatagramFacts& d = f.datagrams[index_of(direction)];
  const std::string check = named("udp", direction);
  if (!d.passes) {
    return {Severity::problem, check,
            fmt::format("UDP {}: no datagram arrives. UC and UD cannot work; RC needs TCP alone",
                        towards(direction)),
            "a firewall on the way, or on one of the hosts, drops UDP: see 'nft list ruleset'. Let "
            "it pass on all ports of net.ipv4.ip_local_port_range"};
  }
  if (d.largest == 0) {
    return {Severity::untested, check,
            fmt::format("UDP {}: small datagrams pass; larger ones were not tested, for UDP to the "
                        "peer does not pass",
                        towards(direction)),
            "mend that first"};
  }
  if (!narrow(d)) {
    return {Severity::ok, check,
            fmt::format("UDP {}: packets of up to {} bytes pass, all that the interface allows",
                        towards(direction), d.largest),
            ""};
  }
  if (told(f, direction)) {
    return {Severity::note, check,
            fmt::format("UDP {}: packets of up to {} bytes pass, the interface allows {}. A router "
                        "says so, and UC finds it out; UD goes by the interface and loses larger "
                        "messages",
                        towards(direction), d.largest, d.most),
            mtu_remedy(f, direction, d.largest)};
  }
  return {Severity::problem, check,
          fmt::format("UDP {}: packets of more than {} bytes vanish, the interface allows {}, and "
                      "nobody says so. UD loses larger messages",
                      towards(direction), d.largest, d.most),
          mtu_remedy(f, direction, d.largest)};
}

Finding check_loss(const DatagramFacts& d, Direction direction) {
  const std::string check = named("loss", direction);
  if (d.lost == 0) {
    return {Severity::ok, check,
            fmt::format("UDP {}: {} of {} datagrams arrived", towards(direction), d.sent, d.sent),
            ""};
  }
  const double percent = 100.0 * d.lost / d.sent;
  return {percent >= kManyLost ? Severity::problem : Severity::note, check,
          fmt::format("UDP {}: {} of {} datagrams were lost ({:.1f} %). RC slows down; UC and UD "
                      "lose messages",
                      towards(direction), d.lost, d.sent, percent),
          "look at 'ip -s link' and 'nstat -az UdpRcvbufErrors' on both hosts, and at what else "
          "uses the way"};
}

Finding check_fragments(const PathFacts& f) {
  const DatagramFacts& there = f.datagrams[index_of(Direction::to_peer)];
  const DatagramFacts& back = f.datagrams[index_of(Direction::from_peer)];
  if (!there.fragments || !back.fragments) {
    return {Severity::untested, "fragments", "fragments of IP were not tested: see UDP above",
            "mend that first"};
  }
  if (*there.fragments && *back.fragments) {
    return {Severity::ok, "fragments", "datagrams that IP has to cut up arrive, both ways", ""};
  }
  return {Severity::note, "fragments",
          fmt::format("datagrams that IP has to cut up do not arrive ({})",
                      *there.fragments  ? "from the peer"
                      : *back.fragments ? "to the peer"
                                        : "either way"),
          "firewalls often drop fragments. Leave WEFT_UD_BIG off, and keep packets of 'weft stream "
          "--transport udp' below the MTU"};
}

Finding check_marks(const PathFacts& f) {
  const auto& there = f.datagrams[index_of(Direction::to_peer)].tos;
  const auto& back = f.datagrams[index_of(Direction::from_peer)].tos;
  if (!there || !back) {
    return {Severity::untested, "marks", "marks of packets (DSCP, ECN) were not tested",
            "see UDP above"};
  }
  if (*there == kMarks && *back == kMarks) {
    return {Severity::ok, "marks", "DSCP and ECN of packets arrive as they were sent", ""};
  }
  const auto words = [](uint8_t tos) { return fmt::format("DSCP {}, ECN {}", tos >> 2, tos & 3); };
  return {Severity::note, "marks",
          fmt::format("the way changes the marks of packets: {} arrives there as {}, here as {}",
                      words(kMarks), words(*there), words(*back)),
          "nothing, unless a program sets a type of service (rdma_cm's RDMA_OPTION_ID_TOS) and "
          "counts on it"};
}

}  // namespace

std::vector<Finding> check_path(const PathFacts& f) {
  std::vector<Finding> findings{check_answer(f)};
  if (f.own_seen.empty()) return findings;
  findings.push_back(check_translation(f));
  for (const Direction direction : {Direction::to_peer, Direction::from_peer})
    findings.push_back(check_segments(f, direction));
  if (!f.failed.empty()) return findings;
  findings.push_back(check_program_port(f));
  for (const Direction direction : {Direction::to_peer, Direction::from_peer}) {
    findings.push_back(check_datagrams(f, direction));
    const DatagramFacts& d = f.datagrams[index_of(direction)];
    if (d.passes && d.sent != 0) findings.push_back(check_loss(d, direction));
  }
  findings.push_back(check_fragments(f));
  findings.push_back(check_marks(f));
  return findings;
}

Finding path_not_tested(const std::string& peer, uint16_t port, const std::string& why) {
  return {Severity::untested, "path",
          fmt::format("no doctor answers at {} port {} ({}). Not tested: what the path carries "
                      "over TCP and UDP, whether UDP passes, losses, fragments, address "
                      "translation",
                      peer, port, why),
          "start 'weft doctor --listen' on the peer, then this command again"};
}

}  // namespace weft::doctor
