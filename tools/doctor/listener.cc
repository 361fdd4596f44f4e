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

Listener::Connection::Connection(port::TcpStream stream)
    : control(std::move(stream)), last_received(now()) {
  control.stream().keep_calls_apart();
}

Listener::Endpoint Listener::open_any_endpoint() {
  auto claim = port::claim_port();
  if (!claim.ok()) {
    throw kit::Failure(
        fmt::format("no port as programs on weft have them: {}", claim.error().to_string()));
  }
  return {claim->number, std::move(claim->tcp), ProbeSocket{std::move(claim->udp)}};
}

Listener::Endpoint Listener::open_endpoint(uint16_t number) {
  int family = AF_INET6;
  auto udp = port::bind_udp(port::Address::any(family, number));
  if (!udp.ok() && udp.error().code != EADDRINUSE) {
    family = AF_INET;  // a host without IPv6
    udp = port::bind_udp(port::Address::any(family, number));
  }
  if (!udp.ok()) no_port(number, udp.error());
  auto tcp = port::TcpListener::listen(port::Address::any(family, number), kBacklog);
  if (!tcp.ok()) no_port(number, tcp.error());
  return {number, std::move(*tcp), ProbeSocket{std::move(*udp)}};
}

Listener::Listener(uint16_t number, Log log)
    : log_(std::move(log)),
      endpoints_{number == 0 ? open_any_endpoint() : open_endpoint(number), open_any_endpoint()} {}

int Listener::time_left(Time end) const {
  // Often enough to notice idle connections.
  constexpr auto kLook = std::chrono::seconds{1};
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(end - now(), kLook));
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

void Listener::run(int stop, std::chrono::seconds lifetime) {
  const Time end = now() + lifetime;
  std::vector<pollfd> watched;
  while (now() < end) {
    watched.assign({{stop, POLLIN, 0}});
    // Further connections wait in the kernel's backlog.
    const bool room = connections_.size() < kMostConnections;
    for (const Endpoint& endpoint : endpoints_) {
      watched.push_back({endpoint.udp.fd(), POLLIN, 0});
      watched.push_back({room ? endpoint.tcp.fd() : -1, POLLIN, 0});
    }
    const size_t first_connection = watched.size();
    for (const Connection& c : connections_) {
      // A client that does not read its replies may send no more requests.
      const short events = c.control.unsent() ? POLLOUT : POLLIN;
      watched.push_back({c.control.fd(), events, 0});
    }
    if (poll(watched.data(), watched.size(), time_left(end)) < 0 && errno != EINTR) {
      throw kit::Failure(fmt::format("poll: {}", std::strerror(errno)));
    }
    if (watched[0].revents != 0) return;
    // Datagrams first: a request over TCP is about those that were sent before it.
    for (Endpoint& endpoint : endpoints_) receive_datagrams(endpoint);
    size_t i = first_connection;
    for (auto c = connections_.begin(); c != connections_.end(); ++i) {
      const bool stays =
          serve(*c, watched[i].revents != 0) && now() - c->last_received < kIdleTimeout;
      if (stays) {
        ++c;
      } else {
        // The kernel would retransmit a segment that vanishes for minutes. A control connection is
        // closed in order: the client may still have to read why.
        if (c->token != 0) c->control.stream().reset();
        c = connections_.erase(c);
      }
    }
    for (size_t d = 0; d < endpoints_.size(); ++d) {
      if (watched[2 + 2 * d].revents != 0) accept_connections(endpoints_[d]);
    }
  }
}

void Listener::accept_connections(Endpoint& endpoint) {
  while (connections_.size() < kMostConnections) {
    auto stream = endpoint.tcp.accept();
    if (!stream) return;
    connections_.emplace_back(std::move(*stream));
  }
}

void Listener::receive_datagrams(Endpoint& endpoint) {
  endpoint.udp.receive([&](const ProbeSocket::Received& datagram) {
    if (Session* session = session_of(datagram.probe.token))
      session->handle(datagram, endpoint.udp);
  });
}

Session* Listener::session_of(uint64_t token) {
  for (Connection& c : connections_) {
    if (c.session && c.session->token() == token) return &*c.session;
  }
  return nullptr;
}

// False: the connection is done with.
bool Listener::serve(Connection& c, bool readable) {
  if (!c.control.flush()) return false;
  if (!readable) return true;
  c.last_received = now();
  if (c.control.unsent()) return true;
  if (c.receiving) return receive_segment(c);
  try {
    return handle_messages(c);
  } catch (const std::exception& problem) {
    log_(fmt::format("{}: {}", c.control.stream().peer().to_string(), problem.what()));
    return false;
  }
}

bool Listener::handle_messages(Connection& c) {
  const bool open = c.control.fetch();
  while (!c.receiving) {
    const auto document = c.control.next();
    if (!document) break;
    if (c.session) {
      if (!c.control.send(reply_to(c, *document))) return false;
    } else if (document->contains("trial")) {
      begin_segment_test(c, *document);
    } else {
      open_session(c, *document);
    }
  }
  if (c.receiving) return receive_segment(c);
  if (!open && c.session) {
    log_(fmt::format("{} is done", c.control.stream().peer().to_string()));
  }
  return open;
}

void Listener::open_session(Connection& c, const nlohmann::json& greeting) {
  const port::TcpStream& stream = c.control.stream();
  if (kit::number_at<uint32_t>(greeting, "weft_doctor") != kDoctorVersion) {
    c.control.send({{"error", "another version of weft doctor"}, {"weft_doctor", kDoctorVersion}});
    throw kit::Failure("another version of weft doctor");
  }
  const auto sessions = std::count_if(connections_.begin(), connections_.end(),
                                      [](const Connection& o) { return o.session.has_value(); });
  if (static_cast<size_t>(sessions) >= kMostSessions) {
    c.control.send({{"error", "too many examine this host at the same time"}});
    throw kit::Failure("too many examine this host at the same time");
  }
  c.session.emplace(random64(), random64());
  const port::Address local = stream.local();
  const uint32_t known = mtu_towards(stream.peer());
  c.control.send({{"weft_doctor", kDoctorVersion},
                  {"token", in_hex(c.session->token())},
                  {"you", stream.peer().to_string()},
                  {"me", local.to_string()},
                  {"program_port", program_port()},
                  {"mtu", std::max(known, interface_mtu(local.gid(), known))}});
  log_(fmt::format("{} examines the way to {}", stream.peer().to_string(), local.to_string()));
}

// A connection that belongs to a session, and carries one segment.
void Listener::begin_segment_test(Connection& c, const nlohmann::json& request) {
  const uint64_t token = from_hex(request.at("trial").get<std::string>());
  if (c.token != 0 || session_of(token) == nullptr)
    throw kit::Failure("a segment test without a session");
  c.token = token;
  c.id = kit::number_at<uint64_t>(request, "id");
  const bool gives = request.contains("give");
  uint64_t bytes = kit::number_at(request, gives ? "give" : "take", kMostSegment);
  if (!gives) {
    c.wanted = bytes;
    c.receiving = true;
    c.received = c.control.take_rest().size();
    c.control.send({{"ready", true}});
    return;
  }
  if (bytes == 0) bytes = segment_state(c.control.stream()).mss;
  c.control.send({{"giving", bytes}});
  c.control.send_text(std::string(bytes, 'w'));
}

bool Listener::receive_segment(Connection& c) {
  std::array<std::byte, 65'536> piece;
  const IoVec place{piece.data(), piece.size()};
  bool open = true;
  while (open) {
    const auto t = c.control.stream().receive({&place, 1});
    if (t.would_block) break;
    open = !t.end && t.error == 0;
    c.received += t.bytes;
  }
  if (c.wanted != 0 && c.received >= c.wanted) {
    open = c.control.send({{"taken", c.received}}) && open;
    c.wanted = 0;
  }
  return open;
}

nlohmann::json Listener::reply_to(Connection& c, const nlohmann::json& request) {
  if (request.at("ask") != "stream")
    return c.session->reply_to(request, c.control.stream(), endpoints_[0].udp);
  const uint64_t id = kit::number_at<uint64_t>(request, "id");
  for (const Connection& o : connections_) {
    if (o.token != c.session->token() || o.id != id) continue;
    const SegmentState state = segment_state(o.control.stream());
    return {{"retransmits", state.unacknowledged != 0 ? state.retransmits : 0},
            {"packet", state.packet}};
  }
  return {{"retransmits", 0}, {"packet", 0}};
}

}  // namespace weft::doctor
