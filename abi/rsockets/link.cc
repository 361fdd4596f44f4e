#include "abi/rsockets/link.h"

#include <netinet/in.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace weft::rsockets {
namespace {

template <class T>
int tell(rdma_cm_id* id, int option, T value) {
  return rdma_set_option(id, RDMA_OPTION_ID, option, &value, sizeof value) == 0 ? 0 : errno;
}

int store_name(const sockaddr* name, sockaddr* to, socklen_t* size) {
  if (to == nullptr || size == nullptr) return EFAULT;
  const socklen_t has = name->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(to, name, std::min(*size, has));
  *size = has;
  return 0;
}

}  // namespace

int Link::bind(const sockaddr* address, const Settings& settings) {
  if (address == nullptr) return EFAULT;
  if (state_ != State::idle) return EINVAL;
  if (address->sa_family != family_) return EAFNOSUPPORT;
  int error = settings.reuses_address() ? tell(cm_.id(), RDMA_OPTION_ID_REUSEADDR, 1) : 0;
  if (error == 0 && settings.only_ipv6()) error = tell(cm_.id(), RDMA_OPTION_ID_AFONLY, 1);
  if (error == 0) error = cm_.bind(address);
  if (error == 0) state_ = State::bound;
  return error;
}

int Link::listen(int backlog) {
  if (state_ == State::listening) return 0;
  if (state_ != State::idle && state_ != State::bound) return EINVAL;
  const int error = cm_.listen(backlog);
  if (error == 0) state_ = State::listening;
  return error;
}

int Link::connect(const sockaddr* address, const Settings& settings) {
  if (address == nullptr) return EFAULT;
  if (is_opening()) return EALREADY;
  if (is_connected()) return EISCONN;
  if (state_ == State::listening) return EINVAL;
  if (address->sa_family != family_) return EAFNOSUPPORT;
  if (const auto tos = static_cast<uint8_t>(settings.type_of_service()); tos != 0) {
    if (const int error = tell(cm_.id(), RDMA_OPTION_ID_TOS, tos); error != 0) return error;
  }
  const int error = cm_.resolve(address);
  if (error == 0) state_ = State::resolving;
  return error;
}

std::optional<CmEnd::Event> Link::next_request() {
  while (auto event = cm_.next()) {
    if (event->kind == CmEnd::Event::Kind::request) return event;
  }
  return std::nullopt;
}

int Link::accept(rdma_cm_id* request, const std::optional<ConnectData>& peer,
                 const Settings& settings) {
  int error = cm_.adopt(request);
  if (error == 0 && !peer) error = EPROTO;
  if (error == 0) error = start_connection(settings);
  if (error == 0) {
    connection_->begin(*peer);
    error = cm_.accept(connection_->data());
  }
  if (error != 0) {
    (void)rdma_reject(request, nullptr, 0);
    return error;
  }
  state_ = State::accepting;
  return 0;
}

int Link::start_connection(const Settings& settings) {
  if (const int error = take_keepalive(settings); error != 0) return error;
  connection_.emplace(settings.sizes());
  return connection_->open(cm_.id());
}

bool Link::drive(const Settings& settings) {
  if (is_connected()) return connection_->progress();
  bool any = false;
  while (is_opening()) {
    const auto event = cm_.next();
    if (!event) break;
    handle(*event, settings);
    any = true;
  }
  return any;
}

void Link::handle(const CmEnd::Event& event, const Settings& settings) {
  using Kind = CmEnd::Event::Kind;
  if (event.kind == Kind::failed || event.kind == Kind::ended) {
    fail(event.error != 0 ? event.error : ECONNRESET);
  } else if (event.kind == Kind::route_known && state_ == State::resolving) {
    int error = start_connection(settings);
    if (error == 0) error = cm_.connect(connection_->data());
    if (error != 0) return fail(error);
    state_ = State::connecting;
  } else if (event.kind == Kind::established && state_ == State::accepting) {
    state_ = State::connected;
  } else if (event.kind == Kind::established && state_ == State::connecting) {
    if (!event.peer) return fail(EPROTO);
    connection_->begin(*event.peer);
    state_ = State::connected;
  }
}

void Link::fail(int error) {
  state_ = State::failed;
  error_ = error;
}

void Link::end(int error) {
  if (is_connected()) connection_->endpoint().disconnect();
  if (state_ != State::idle) fail(error);
}

int Link::ready(bool reads, bool writes) {
  if (state_ == State::listening) {
    pollfd p{fd(), POLLIN, 0};
    return ::poll(&p, 1, 0) == 1 ? POLLIN : 0;
  }
  if (has_failed()) return POLLIN | POLLOUT | POLLERR | POLLHUP;
  if (is_opening()) return 0;
  if (!is_connected()) return POLLOUT | POLLHUP;  // as TCP says of a socket without a connection
  const Connection& c = *connection_;
  int ready = 0;
  if (c.available() > 0 || c.at_end() || !reads) ready |= POLLIN;
  if (c.sendable() > 0 || c.ended() || !writes) ready |= POLLOUT;
  // Programs take POLLHUP for the end, so what is left to read comes first.
  if (c.ended() && c.available() == 0) ready |= c.error() != 0 ? POLLERR | POLLHUP : POLLHUP;
  return ready;
}

int Link::take_error() {
  return is_connected() ? connection_->error() : std::exchange(error_, 0);
}

int Link::local_name(sockaddr* to, socklen_t* size) const {
  const sockaddr* name = rdma_get_local_addr(cm_.id());
  if (name->sa_family != 0) return store_name(name, to, size);
  sockaddr_storage none{};
  none.ss_family = static_cast<sa_family_t>(family_);
  return store_name(reinterpret_cast<const sockaddr*>(&none), to, size);
}

int Link::peer_name(sockaddr* to, socklen_t* size) const {
  if (!is_connected() && state_ != State::accepting) return ENOTCONN;
  return store_name(rdma_get_peer_addr(cm_.id()), to, size);
}

}  // namespace weft::rsockets
