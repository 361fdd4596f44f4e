#include "sdp/rdma/fabric.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "base/rdma_option.h"

namespace weft::sdp {
namespace {

constexpr int kResolve = 2000;                    // milliseconds for an address or a route
constexpr std::chrono::seconds kMostClosing{60};  // for a peer that takes nothing any more
constexpr std::chrono::seconds kMostLeaving{10};  // for a peer that does not end the connection
constexpr int kLookAtClosingMs = 1000;
constexpr uint8_t kReadsAtATime = 4;
// How often the loop looks at the connections of a program that works on them.
constexpr int kAttendMs = 1;
// Of a connection: both ends of the mirror, the shadow, and what the adapter has.
constexpr size_t kDescriptors = 4;

void put_address(const Address& address, std::array<std::byte, 16>& field) {
  if (address.any.sa_family == AF_INET) {
    std::memcpy(field.data() + 12, &address.v4.sin_addr, 4);
  } else {
    std::memcpy(field.data(), &address.v6.sin6_addr, 16);
  }
}

Address peer_of(rdma_cm_id* id) {
  Address address{};
  const sockaddr* from = rdma_get_peer_addr(id);
  std::memcpy(&address, from, from->sa_family == AF_INET ? sizeof address.v4 : sizeof address.v6);
  return address;
}

// The peer's own address is the one that the connection comes from; its port is in the Hello.
Address peer_of(const Hello& hello, rdma_cm_id* id) {
  Address address = peer_of(id);
  address.set_port(hello.port);
  return address;
}

bool comes_from(rdma_cm_id* id, const Address& from) {
  const sockaddr* own = rdma_get_local_addr(id);
  if (own->sa_family != from.any.sa_family) return false;
  if (own->sa_family == AF_INET) {
    const in_addr_t address = from.v4.sin_addr.s_addr;
    return address == htonl(INADDR_ANY) ||
           address == reinterpret_cast<const sockaddr_in*>(own)->sin_addr.s_addr;
  }
  const in6_addr& address = from.v6.sin6_addr;
  const in6_addr& at = reinterpret_cast<const sockaddr_in6*>(own)->sin6_addr;
  return IN6_IS_ADDR_UNSPECIFIED(&address) || IN6_ARE_ADDR_EQUAL(&address, &at) != 0;
}

rdma_conn_param parameters(const void* private_data, uint32_t length) {
  rdma_conn_param p{};
  p.private_data = private_data;
  p.private_data_len = static_cast<uint8_t>(length);
  p.responder_resources = kReadsAtATime;
  p.initiator_depth = kReadsAtATime;
  p.retry_count = 7;
  p.rnr_retry_count = 7;
  return p;
}

bool private_data_of(const rdma_cm_event& event, Bytes& data) {
  const auto& p = event.param.conn;
  data = {static_cast<const std::byte*>(p.private_data), p.private_data_len};
  return p.private_data != nullptr;
}

}  // namespace

struct Fabric::Attempt {
  rdma_cm_id* id = nullptr;
  Loop::Ready discard;  // of an attempt that comes to nothing
  Address from{};
  Address to{};
  uint32_t receive_bytes = 0;
  std::shared_ptr<Session> session;
  bool passive = false;
  Connected done;
};

struct Fabric::Listener {
  rdma_cm_id* id = nullptr;
  std::function<uint32_t()> receive_bytes;
  Accepted accepted;
};

Fabric::Fabric(Loop& loop, rdma_event_channel* channel, Broken broken)
    : loop_(loop), channel_(channel), broken_(std::move(broken)) {}

Fabric::~Fabric() = default;

std::unique_ptr<Fabric> Fabric::open(Loop& loop, Broken broken) {
  int count = 0;
  ibv_device** devices = ibv_get_device_list(&count);
  if (devices != nullptr) ibv_free_device_list(devices);
  if (devices == nullptr || count == 0) {
    errno = ENODEV;
    return nullptr;
  }
  rdma_event_channel* channel = rdma_create_event_channel();
  if (channel == nullptr) return nullptr;
  (void)::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  std::unique_ptr<Fabric> fabric{new Fabric(loop, channel, std::move(broken))};
  loop.post([f = fabric.get()] {
    (void)f->loop_.watch(f->channel_->fd, EPOLLIN, [f](uint32_t) { f->on_cm_event(); });
  });
  return fabric;
}

// By TCP a connection is one descriptor. A program that has many gets as many as it would without
// the library: SDP leaves half of them.
bool Fabric::has_room() const {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return true;
  return (sessions_.size() + 1) * kDescriptors <= limit.rlim_cur / 2;
}

void Fabric::connect(const Address& from, const Address& to, const ConnectOptions& options,
                     Connected done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->from = from;
  attempt->to = to;
  attempt->receive_bytes = options.receive_bytes;
  attempt->done = std::move(done);
  if (!has_room()) return attempt->done(nullptr, EMFILE);
  if (rdma_create_id(channel_, &attempt->id, nullptr, RDMA_PS_TCP) != 0) {
    return attempt->done(nullptr, errno);
  }
  rdma_cm_id* const id = attempt->id;
  // Of weft's adapter. Others do not know the option, and do not ask again either.
  int asks_again = options.no_fallback ? 1 : 0;
  (void)rdma_set_option(attempt->id, kWeftOptionLevel, kOptionAsksAgain, &asks_again,
                        sizeof asks_again);
  Address source = from;
  source.set_port(0);
  Address target = to;
  try {
    attempt->discard = Loop::ready([this, id] { discard(id); });
    attempts_[id] = attempt;
    loop_.later(options.milliseconds, [this, id, still = std::weak_ptr(attempt)] {
      if (!still.expired()) finish(id, ETIMEDOUT);
    });
  } catch (const std::bad_alloc&) {
    attempts_.erase(id);
    (void)rdma_destroy_id(id);
    return attempt->done(nullptr, ENOMEM);
  }
  if (rdma_resolve_addr(id, &source.any, &target.any, kResolve) != 0) finish(id, errno);
}

// The end of an attempt that came to nothing.
void Fabric::finish(const rdma_cm_id* id, int error) {
  const auto attempt = std::move(attempts_.at(id));
  attempts_.erase(id);
  // Not now: an event of the identifier may be under way, and it waits for that.
  loop_.post(std::move(attempt->discard));
  attempt->done(nullptr, error);
}

// An identifier of which nothing came.
void Fabric::discard(rdma_cm_id* id) {
  if (sessions_.contains(id)) return destroy_now(id);
  (void)rdma_destroy_id(id);
}

bool Fabric::open_device(Device& device, ibv_context* context) {
  ibv_device_attr attributes{};
  device.pd.reset(ibv_alloc_pd(context));
  device.channel.reset(ibv_create_comp_channel(context));
  if (!device.pd || !device.channel || ibv_query_device(context, &attributes) != 0) return false;
  device.largest_queue = static_cast<uint32_t>(attributes.max_cqe);
  ibv_comp_channel* channel = device.channel.get();
  (void)::fcntl(channel->fd, F_SETFL, O_NONBLOCK);
  return loop_.watch(channel->fd, EPOLLIN, [this, channel](uint32_t) { on_completions(channel); });
}

ibv_cq* Fabric::make_queue(ibv_context* device, uint32_t entries) {
  return ibv_create_cq(device, static_cast<int>(entries), nullptr,
                       devices_.at(device).channel.get(), 0);
}

bool Fabric::resize_queue(ibv_cq* queue, uint32_t entries) {
  return ibv_resize_cq(queue, static_cast<int>(entries)) == 0;
}

void Fabric::end_queue(ibv_cq* queue) {
  (void)ibv_destroy_cq(queue);
}

uint32_t Fabric::largest_queue(ibv_context* device) {
  return devices_.at(device).largest_queue;
}

std::shared_ptr<Session> Fabric::make_session(rdma_cm_id* id, uint32_t receive_bytes) {
  Device& device = devices_[id->verbs];
  if (device.largest_queue == 0 && !open_device(device, id->verbs)) {
    devices_.erase(id->verbs);
    return nullptr;
  }
  // Its memory goes with it, and does not wait for who only asks whether it is still there.
  const std::shared_ptr<Session> session{new Session(completions_)};
  // Not now, for it writes to a log, and the caller has locks.
  session->on_violation = [this, id](Violation violation) {
    loop_.post([this, peer = peer_of(id), violation] { broken_(peer, text(violation)); });
  };
  session->on_more_mail = [this, weak = std::weak_ptr(session)] {
    loop_.post([weak] {
      if (const auto still = weak.lock()) const std::lock_guard lock{still->lock};
    });
  };
  sessions_.insert_or_assign(id, Kept{session, Loop::ready([this, id] { destroy_now(id); })});
  // The identifier is the session's from here on, also when this fails.
  return session->create(id, device.pd.get(), receive_bytes) ? session : nullptr;
}

// False: the attempt has failed, errno says why.
bool Fabric::advance(Attempt& attempt, const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      // An adapter may not have the address that the program's socket is bound to.
      if (!comes_from(attempt.id, attempt.from)) {
        errno = EHOSTUNREACH;
        return false;
      }
      return rdma_resolve_route(attempt.id, kResolve) == 0;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
      attempt.session = make_session(attempt.id, attempt.receive_bytes);
      if (attempt.session == nullptr) return false;
      Hello hello = attempt.session->hello();
      hello.ip_version = attempt.to.any.sa_family == AF_INET ? 4 : 6;
      hello.port = attempt.from.port();
      put_address(attempt.from, hello.source);
      put_address(attempt.to, hello.destination);
      std::array<std::byte, Hello::kSize> bytes{};
      hello.encode(bytes.data());
      rdma_conn_param p = parameters(bytes.data(), bytes.size());
      return rdma_connect(attempt.id, &p) == 0;
    }
    case RDMA_CM_EVENT_ESTABLISHED: {
      if (!attempt.passive) {
        Bytes data;
        const auto ack = private_data_of(event, data) ? HelloAck::parse(data) : std::nullopt;
        if (!ack) {
          errno = EPROTO;
          return false;
        }
        attempt.session->open(ack->bufs, ack->receive_size, ack->max_adverts);
      }
      const auto ended = std::move(attempts_.at(attempt.id));
      attempts_.erase(ended->id);
      ended->done(ended->session, 0);
      return true;
    }
    default:
      errno = event.event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : EHOSTUNREACH;
      if (event.status == -ECONNREFUSED) errno = ECONNREFUSED;
      return false;
  }
}

Fabric::Listener* Fabric::listen(const Address& at, bool one_family, int backlog,
                                 std::function<uint32_t()> receive_bytes, Accepted accepted) {
  auto listener = std::make_unique<Listener>();
  listener->receive_bytes = std::move(receive_bytes);
  listener->accepted = std::move(accepted);
  if (rdma_create_id(channel_, &listener->id, nullptr, RDMA_PS_TCP) != 0) return nullptr;
  Address address = at;
  int alone = one_family ? 1 : 0;
  (void)rdma_set_option(listener->id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &alone, sizeof alone);
  int only_rc = 1;  // no UDP socket for each of the program's listeners
  (void)rdma_set_option(listener->id, kWeftOptionLevel, kOptionOnlyRc, &only_rc, sizeof only_rc);
  if (rdma_bind_addr(listener->id, &address.any) != 0 || rdma_listen(listener->id, backlog) != 0) {
    const int error = errno;
    (void)rdma_destroy_id(listener->id);
    errno = error;
    return nullptr;
  }
  const rdma_cm_id* id = listener->id;
  return (listeners_[id] = std::move(listener)).get();
}

// From a task of the loop's, where no event is under way that the end of the identifier would wait
// for.
void Fabric::forget(Listener* listener) {
  rdma_cm_id* id = listener->id;
  listeners_.erase(id);
  (void)rdma_destroy_id(id);
}

void Fabric::on_request(Listener& listener, const rdma_cm_event& event) {
  Bytes data;
  const auto hello = private_data_of(event, data) ? Hello::parse(data) : std::nullopt;
  rdma_cm_id* id = event.id;
  auto attempt = std::make_shared<Attempt>();
  attempt->id = id;
  attempt->discard = Loop::ready([this, id] { discard(id); });
  attempt->passive = true;
  if (hello && has_room()) attempt->session = make_session(id, listener.receive_bytes());
  if (attempt->session == nullptr || !accept(listener, *hello, attempt)) {
    attempts_.erase(id);
    (void)rdma_reject(id, nullptr, 0);
    loop_.post(std::move(attempt->discard));
  }
}

bool Fabric::accept(Listener& listener, const Hello& hello,
                    const std::shared_ptr<Attempt>& attempt) {
  attempt->done = [this, listening = listener.id, peer = peer_of(hello, attempt->id)](
                      const std::shared_ptr<Session>& session, int) {
    if (session == nullptr) return;
    const auto found = listeners_.find(listening);
    if (found == listeners_.end()) return close(session);
    found->second->accepted(session, peer);
  };
  attempts_[attempt->id] = attempt;
  std::array<std::byte, HelloAck::kSize> bytes{};
  attempt->session->hello_ack().encode(bytes.data());
  rdma_conn_param p = parameters(bytes.data(), bytes.size());
  attempt->session->open(hello.bufs, hello.receive_size, hello.max_adverts);
  return rdma_accept(attempt->id, &p) == 0;
}

void Fabric::on_event_of(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
    const auto listener = listeners_.find(event.listen_id);
    if (listener != listeners_.end()) return on_request(*listener->second, event);
    (void)rdma_reject(event.id, nullptr, 0);
    loop_.post([id = event.id] { (void)rdma_destroy_id(id); });
    return;
  }
  const auto attempt = attempts_.find(event.id);
  if (attempt != attempts_.end()) {
    if (!advance(*attempt->second, event)) finish(event.id, errno);
    return;
  }
  const auto found = sessions_.find(event.id);
  if (found == sessions_.end() || event.event != RDMA_CM_EVENT_DISCONNECTED) return;
  Session& session = *found->second.session;
  {
    const std::lock_guard lock{session.lock};
    session.on_disconnected();
  }
  if (session.abandoned()) close(found->second.session);
}

void Fabric::on_cm_event() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    // Private data is the event's, so it is looked at before the acknowledgement.
    const std::unique_ptr<rdma_cm_event, int (*)(rdma_cm_event*)> held{event, rdma_ack_cm_event};
    try {
      on_event_of(*event);
    } catch (const std::bad_alloc&) {
      give_up(*event);
      throw;
    }
  }
}

// There was no memory for it.
void Fabric::give_up(const rdma_cm_event& event) {
  const bool asks = event.event == RDMA_CM_EVENT_CONNECT_REQUEST;
  if (asks) (void)rdma_reject(event.id, nullptr, 0);
  if (attempts_.contains(event.id)) return finish(event.id, ENOMEM);
  const auto found = sessions_.find(event.id);
  if (found == sessions_.end()) return;
  if (asks) return destroy(found->second);
  const std::lock_guard lock{found->second.session->lock};
  found->second.session->abandon();
}

void Fabric::on_completions(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
  if (completions_.on_event()) attend();
}

void Fabric::attend() {
  try {
    loop_.later(kAttendMs, [this] {
      if (completions_.attend()) attend();
    });
  } catch (const std::bad_alloc&) {
    completions_.stop_attending();
    throw;
  }
}

void Fabric::keep_alive(const Session& session, Keepalive keepalive) {
  if (!sessions_.contains(session.id())) return;  // it has ended
  (void)rdma_set_option(session.id(), kWeftOptionLevel, kOptionKeepalive, &keepalive,
                        sizeof keepalive);
}

void Fabric::close(const std::shared_ptr<Session>& session) {
  const auto found = sessions_.find(session->id());
  if (found == sessions_.end() || std::exchange(found->second.closed, true)) return;
  Kept& kept = found->second;
  kept.sending = true;
  ++count_sending_;
  kept.until = Clock::now() + kMostClosing;
  {
    const std::lock_guard lock{session->lock};
    session->poll();
    // Behind an end it would be another error for the peer.
    if (!session->in().received().empty()) session->abort();
    session->out().end_sending();
    session->want(false);
    session->on_news = [this, id = session->id()] {
      loop_.post([this, id] {
        const auto still = sessions_.find(id);
        if (still != sessions_.end() && still->second.closed) go_on_closing(still->second);
      });
    };
  }
  go_on_closing(kept);
  watch_closing();
}

void Fabric::go_on_closing(Kept& kept) {
  Session& session = *kept.session;
  const std::lock_guard lock{session.lock};
  session.poll();
  (void)session.rest();
  // Nobody will read it, and the peer should know.
  if (session.in().readable()) session.abort();
  if (session.out().has_said_all()) note_said_all(kept);
  if (session.gone()) {
    destroy(kept);
  } else if (session.finished() && !std::exchange(kept.leaving, true)) {
    // The peer reads what is under way before it ends the connection too.
    (void)rdma_disconnect(session.id());
    kept.until = std::min(kept.until, Clock::now() + kMostLeaving);
  }
}

void Fabric::catch_up() {
  for (auto& [id, kept] : sessions_) {
    if (kept.closed) {
      go_on_closing(kept);
    } else {
      const std::lock_guard lock{kept.session->lock};
      kept.session->process();
    }
  }
  watch_closing();
}

// Ends those whose time is over.
void Fabric::watch_closing() {
  if (watches_closing_) return;
  loop_.later(kLookAtClosingMs, [this] {
    watches_closing_ = false;
    bool any = false;
    for (auto& [id, kept] : sessions_) {
      if (!kept.closed) continue;
      any = true;
      if (kept.until <= Clock::now()) destroy(kept);
    }
    if (any) watch_closing();
  });
  watches_closing_ = true;
}

// Behind the handlers of this round, which may be the session's own, and of calls of the program.
void Fabric::destroy(Kept& kept) {
  loop_.post(std::move(kept.end));
}

bool Fabric::all_sent() {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& i) {
    Session& session = *i.second.session;
    const std::lock_guard lock{session.lock};
    session.poll();
    return session.out().has_sent_all();
  });
}

void Fabric::destroy_now(const rdma_cm_id* id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  Kept kept = std::move(found->second);
  sessions_.erase(found);
  Session& session = *kept.session;
  const auto lacked = session.lacked_memory() ? std::optional{peer_of(session.id())} : std::nullopt;
  // A call of the program may still have it.
  session.retire();
  note_said_all(kept);
  if (lacked) broken_(*lacked, "there was no memory for it");
}

void Fabric::note_said_all(Kept& kept) {
  if (std::exchange(kept.sending, false)) --count_sending_;
}

}  // namespace weft::sdp
