#include "sdp/rdma/fabric.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/rdma_option.h"

namespace weft::sdp {
namespace {

constexpr int kResolve = 2000;        // milliseconds for an address or a route
constexpr int kMostClosing = 60'000;  // for a peer that takes nothing any more
constexpr int kMostLeaving = 10'000;  // for a peer that does not end the connection
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

void Fabric::connect(const Address& from, const Address& to, const Ways& ways, Connected done) {
  auto attempt = std::make_shared<Attempt>();
  attempt->from = from;
  attempt->to = to;
  attempt->receive_bytes = ways.receive_bytes;
  attempt->done = std::move(done);
  if (!has_room()) return attempt->done(nullptr, EMFILE);
  if (rdma_create_id(channel_, &attempt->id, nullptr, RDMA_PS_TCP) != 0) {
    return attempt->done(nullptr, errno);
  }
  const rdma_cm_id* id = attempt->id;
  // Of weft's adapter. Others do not know the option, and do not ask again either.
  int asks_again = ways.only_way ? 1 : 0;
  (void)rdma_set_option(attempt->id, kWeftOptionLevel, kOptionAsksAgain, &asks_again,
                        sizeof asks_again);
  Address source = from;
  source.set_port(0);
  Address target = to;
  attempts_[id] = attempt;
  if (rdma_resolve_addr(attempt->id, &source.any, &target.any, kResolve) != 0) {
    return finish(id, errno);
  }
  loop_.later(ways.milliseconds, [this, id, still = std::weak_ptr(attempt)] {
    if (!still.expired()) finish(id, ETIMEDOUT);
  });
}

// The end of an attempt that came to nothing.
void Fabric::finish(const rdma_cm_id* id, int error) {
  const auto attempt = std::move(attempts_.at(id));
  attempts_.erase(id);
  // Not now: an event of the identifier may be under way, and it waits for that.
  loop_.post([this, id = attempt->id] { discard(id); });
  attempt->done(nullptr, error);
}

// An identifier of which nothing came.
void Fabric::discard(rdma_cm_id* id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) {
    (void)rdma_destroy_id(id);
    return;
  }
  found->second->retire();
  sessions_.erase(found);
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
  auto session = std::make_shared<Session>(completions_);
  // Not now, for it writes to a log, and the caller has locks.
  session->on_violation = [this, id](Violation violation) {
    loop_.post([this, peer = peer_of(id), violation] { broken_(peer, violation); });
  };
  session->on_more_mail = [this, session = std::weak_ptr(session)] {
    loop_.post([session] {
      if (const auto still = session.lock()) const std::lock_guard lock{still->lock};
    });
  };
  // The identifier is the session's from here on, also when this fails.
  const bool created = session->create(id, device.pd.get(), receive_bytes);
  const int error = errno;
  sessions_[id] = session;
  errno = error;
  return created ? session : nullptr;
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

Fabric::Listener* Fabric::listen(const Address& at, int backlog,
                                 std::function<uint32_t()> receive_bytes, Accepted accepted) {
  auto listener = std::make_unique<Listener>();
  listener->receive_bytes = std::move(receive_bytes);
  listener->accepted = std::move(accepted);
  if (rdma_create_id(channel_, &listener->id, nullptr, RDMA_PS_TCP) != 0) return nullptr;
  Address address = at;
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
  const auto session = hello && has_room() ? make_session(id, listener.receive_bytes()) : nullptr;
  if (session != nullptr) {
    std::array<std::byte, HelloAck::kSize> bytes{};
    session->hello_ack().encode(bytes.data());
    rdma_conn_param p = parameters(bytes.data(), bytes.size());
    if (rdma_accept(id, &p) == 0) {
      session->open(hello->bufs, hello->receive_size, hello->max_adverts);
      auto attempt = std::make_shared<Attempt>();
      attempt->id = id;
      attempt->session = session;
      attempt->passive = true;
      attempt->done = [this, listening = listener.id, peer = peer_of(*hello, id)](
                          const std::shared_ptr<Session>& e, int) {
        if (e == nullptr) return;
        const auto found = listeners_.find(listening);
        if (found == listeners_.end()) return close(e);
        found->second->accepted(e, peer);
      };
      attempts_[id] = std::move(attempt);
      return;
    }
  }
  (void)rdma_reject(id, nullptr, 0);
  loop_.post([this, id] { discard(id); });
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
  Session& session = *found->second;
  const std::lock_guard lock{session.lock};
  session.on_disconnected();
}

void Fabric::on_cm_event() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_, &event) == 0) {
    // Private data is the event's, so it is looked at before the acknowledgement.
    on_event_of(*event);
    (void)rdma_ack_cm_event(event);
  }
}

void Fabric::on_completions(ibv_comp_channel* channel) {
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel, &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
  if (completions_.on_event()) attend();
}

void Fabric::attend() {
  loop_.later(kAttendMs, [this] {
    if (completions_.attend()) attend();
  });
}

void Fabric::close(const std::shared_ptr<Session>& session) {
  note_sending(session->id(), true);
  {
    const std::lock_guard lock{session->lock};
    session->poll();
    // Behind an end it would be another error for the peer.
    if (!session->received().empty()) session->abort();
    session->end_sending();
    session->want(false);
    session->on_news = [this, still = std::weak_ptr(session)] { go_on_closing_later(still); };
  }
  destroy_after(kMostClosing, session->id());
  go_on_closing(*session);
}

void Fabric::go_on_closing_later(const std::weak_ptr<Session>& session) {
  loop_.post([this, session] {
    const auto still = session.lock();
    if (still && sessions_.contains(still->id())) go_on_closing(*still);
  });
}

void Fabric::go_on_closing(Session& session) {
  rdma_cm_id* id = session.id();
  const std::lock_guard lock{session.lock};
  session.poll();
  (void)session.rest();
  // Nobody will read it, and the peer should know.
  if (session.readable()) session.abort();
  if (session.has_said_all()) note_sending(id, false);
  if (session.gone()) {
    destroy(id);
  } else if (session.finished() && leaving_.insert(id).second) {
    // The peer reads what is under way before it ends the connection too.
    (void)rdma_disconnect(id);
    destroy_after(kMostLeaving, id);
  }
}

void Fabric::destroy_after(int milliseconds, const rdma_cm_id* id) {
  loop_.later(milliseconds, [this, id, session = std::weak_ptr(sessions_.at(id))] {
    const auto still = session.lock();
    if (still && still->id() == id) destroy(id);
  });
}

// Behind the handlers of this round, which may be the session's own, and of calls of the program.
void Fabric::destroy(const rdma_cm_id* id) {
  loop_.post([this, id, session = sessions_.at(id)] {
    // The address of an identifier may have become another's by then.
    if (session->id() != id) return;
    // A call of the program may still have it.
    session->retire();
    leaving_.erase(id);
    sessions_.erase(id);
    note_sending(id, false);
  });
}

bool Fabric::all_sent() {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& i) {
    const std::lock_guard lock{i.second->lock};
    i.second->poll();
    return i.second->has_sent_all();
  });
}

void Fabric::note_sending(const rdma_cm_id* id, bool does) {
  if (does) {
    sending_.insert(id);
  } else {
    sending_.erase(id);
  }
  count_sending_ = sending_.size();
}

}  // namespace weft::sdp
