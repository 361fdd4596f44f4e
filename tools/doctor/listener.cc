#include "doctor/listener.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/number_in.h"
#include "base/random.h"
#include "doctor/local_port.h"
#include "kit/json_numbers.h"
#include "port/adapter_port.h"
#include "port/udp_bind.h"

namespace weft::doctor {
namespace {

constexpr int kBacklog = 64;
constexpr uint64_t kMostSegment = 1 << 20;

Time now() {
  return Time{} + std::chrono::steady_clock::now().time_since_epoch();
}

uint64_t random64() {
  SystemRandom random;
  return random.next() | 1;  // 0 is no token
}

uint64_t from_hex(const std::string& text) {
  return weft::number_in<uint64_t>(text, 16).value_or(0);
}

[[noreturn]] void no_port(uint16_t number, const port::SystemError& error) {
  std::string words = fmt::format("port {}: {}", number, error.to_string());
  if (error.code == EADDRINUSE) {
    words += fmt::format(". {}; choose another one with --port, on both sides",
                         check_local_port(number).sentence);
  }
  throw kit::Failure(words);
}

}  // namespace

Listener::Visitor::Visitor(port::TcpStream stream) : control(std::move(stream)), heard(now()) {
  control.stream().keep_calls_apart();
}

Listener::Door Listener::any_door() {
  auto claim = port::claim_port();
  if (!claim.ok()) {
    throw kit::Failure(
        fmt::format("no port as programs on weft have them: {}", claim.error().to_string()));
  }
  return {claim->number, std::move(claim->tcp), UdpEnd{std::move(claim->udp)}};
}

Listener::Door Listener::open_door(uint16_t number) {
  int family = AF_INET6;
  auto udp = port::bind_udp(port::Address::any(family, number));
  if (!udp.ok() && udp.error().code != EADDRINUSE) {
    family = AF_INET;  // a host without IPv6
    udp = port::bind_udp(port::Address::any(family, number));
  }
  if (!udp.ok()) no_port(number, udp.error());
  auto tcp = port::TcpListener::listen(port::Address::any(family, number), kBacklog);
  if (!tcp.ok()) no_port(number, tcp.error());
  return {number, std::move(*tcp), UdpEnd{std::move(*udp)}};
}

Listener::Listener(uint16_t number, Say say)
    : say_(std::move(say)), doors_{number == 0 ? any_door() : open_door(number), any_door()} {}

int Listener::time_left(Time end) const {
  // Often enough to see who has fallen silent.
  constexpr auto kLook = std::chrono::seconds{1};
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(end - now(), kLook));
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void Listener::run(int stop, std::chrono::seconds life) {
  const Time end = now() + life;
  std::vector<pollfd> watched;
  while (now() < end) {
    watched.assign({{stop, POLLIN, 0}});
    // Others wait in the kernel's queue.
    const bool room = visitors_.size() < kMostVisitors;
    for (const Door& door : doors_) {
      watched.push_back({door.udp.fd(), POLLIN, 0});
      watched.push_back({room ? door.tcp.fd() : -1, POLLIN, 0});
    }
    const size_t first_visitor = watched.size();
    for (const Visitor& v : visitors_) {
      // Who does not take answers is asked for no more questions.
      const short events = v.control.unsent() ? POLLOUT : POLLIN;
      watched.push_back({v.control.fd(), events, 0});
    }
    if (poll(watched.data(), watched.size(), time_left(end)) < 0 && errno != EINTR) {
      throw kit::Failure(fmt::format("poll: {}", std::strerror(errno)));
    }
    if (watched[0].revents != 0) return;
    // Datagrams first: a question over TCP is about those that were sent before it.
    for (Door& door : doors_) take_datagrams(door);
    size_t i = first_visitor;
    for (auto v = visitors_.begin(); v != visitors_.end(); ++i) {
      const bool stays = serve(*v, watched[i].revents != 0) && now() - v->heard < kSilence;
      if (stays) {
        ++v;
      } else {
        // A segment that vanishes would be sent again for minutes. Others may still have to read
        // why.
        if (v->token != 0) v->control.stream().reset();
        v = visitors_.erase(v);
      }
    }
    for (size_t d = 0; d < doors_.size(); ++d) {
      if (watched[2 + 2 * d].revents != 0) let_in(doors_[d]);
    }
  }
}

void Listener::let_in(Door& door) {
  while (visitors_.size() < kMostVisitors) {
    auto stream = door.tcp.accept();
    if (!stream) return;
    visitors_.emplace_back(std::move(*stream));
  }
}

void Listener::take_datagrams(Door& door) {
  door.udp.receive([&](const UdpEnd::Came& datagram) {
    if (Session* session = session_of(datagram.probe.token)) session->came(datagram, door.udp);
  });
}

Session* Listener::session_of(uint64_t token) {
  for (Visitor& v : visitors_) {
    if (v.session && v.session->token() == token) return &*v.session;
  }
  return nullptr;
}

// False: the connection is done with.
bool Listener::serve(Visitor& v, bool readable) {
  if (!v.control.flush()) return false;
  if (!readable) return true;
  v.heard = now();
  if (v.control.unsent()) return true;
  if (v.taking) return take_segment(v);
  try {
    return converse(v);
  } catch (const std::exception& problem) {
    say_(fmt::format("{}: {}", v.control.stream().peer().to_string(), problem.what()));
    return false;
  }
}

bool Listener::converse(Visitor& v) {
  const bool open = v.control.fetch();
  while (!v.taking) {
    const auto document = v.control.next();
    if (!document) break;
    if (v.session) {
      if (!v.control.send(answer(v, *document))) return false;
    } else if (document->contains("trial")) {
      begin_trial(v, *document);
    } else {
      introduce(v, *document);
    }
  }
  if (v.taking) return take_segment(v);
  if (!open && v.session) {
    say_(fmt::format("{} is done", v.control.stream().peer().to_string()));
  }
  return open;
}

void Listener::introduce(Visitor& v, const nlohmann::json& greeting) {
  const port::TcpStream& stream = v.control.stream();
  if (kit::number_at<uint32_t>(greeting, "weft_doctor") != kDoctorVersion) {
    v.control.send({{"error", "another version of weft doctor"}, {"weft_doctor", kDoctorVersion}});
    throw kit::Failure("another version of weft doctor");
  }
  const auto sessions = std::count_if(visitors_.begin(), visitors_.end(),
                                      [](const Visitor& o) { return o.session.has_value(); });
  if (static_cast<size_t>(sessions) >= kMostSessions) {
    v.control.send({{"error", "too many examine this host at the same time"}});
    throw kit::Failure("too many examine this host at the same time");
  }
  v.session.emplace(random64(), random64());
  const port::Address local = stream.local();
  const uint32_t known = mtu_towards(stream.peer());
  v.control.send({{"weft_doctor", kDoctorVersion},
                  {"token", in_hex(v.session->token())},
                  {"you", stream.peer().to_string()},
                  {"me", local.to_string()},
                  {"program_port", program_port()},
                  {"mtu", std::max(known, interface_mtu(local.gid(), known))}});
  say_(fmt::format("{} examines the way to {}", stream.peer().to_string(), local.to_string()));
}

// A connection that belongs to a session, and carries one segment.
void Listener::begin_trial(Visitor& v, const nlohmann::json& request) {
  const uint64_t token = from_hex(request.at("trial").get<std::string>());
  if (v.token != 0 || session_of(token) == nullptr) throw kit::Failure("a trial without a session");
  v.token = token;
  v.id = kit::number_at<uint64_t>(request, "id");
  const bool gives = request.contains("give");
  uint64_t bytes = kit::number_at(request, gives ? "give" : "take", kMostSegment);
  if (!gives) {
    v.to_take = bytes;
    v.taking = true;
    v.taken = v.control.take_rest().size();
    v.control.send({{"ready", true}});
    return;
  }
  if (bytes == 0) bytes = segment_state(v.control.stream()).mss;
  v.control.send({{"giving", bytes}});
  v.control.send_text(std::string(bytes, 'w'));
}

bool Listener::take_segment(Visitor& v) {
  std::array<std::byte, 65'536> piece;
  const IoVec place{piece.data(), piece.size()};
  bool open = true;
  while (open) {
    const auto t = v.control.stream().receive({&place, 1});
    if (t.would_block) break;
    open = !t.end && t.error == 0;
    v.taken += t.bytes;
  }
  if (v.to_take != 0 && v.taken >= v.to_take) {
    open = v.control.send({{"taken", v.taken}}) && open;
    v.to_take = 0;
  }
  return open;
}

nlohmann::json Listener::answer(Visitor& v, const nlohmann::json& question) {
  if (question.at("ask") != "stream")
    return v.session->answer(question, v.control.stream(), doors_[0].udp);
  const uint64_t id = kit::number_at<uint64_t>(question, "id");
  for (const Visitor& o : visitors_) {
    if (o.token != v.session->token() || o.id != id) continue;
    const SegmentState state = segment_state(o.control.stream());
    return {{"retransmits", state.unacknowledged != 0 ? state.retransmits : 0},
            {"packet", state.packet}};
  }
  return {{"retransmits", 0}, {"packet", 0}};
}

}  // namespace weft::doctor
