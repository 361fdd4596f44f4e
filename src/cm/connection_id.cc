// Sockets of an Id, and its end. Connecting: connection_active.cc and connection_passive.cc, over
// datagrams connection_datagram.cc; what all have in common, and disconnecting: connection_join.cc.
#include "cm/connection_id.h"

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "cm/port_taken.h"
#include "config/options.h"
#include "device/device.h"
#include "port/both_ports.h"
#include "port/udp_bind.h"

namespace weft::cm {
namespace {

// Connections that the kernel completes before the engine takes them: programs say 0 or 3, and mean
// "some". A short queue would cost the peers a second, for TCP drops what does not fit.
constexpr int kLeastBacklog = 128;
constexpr int kDefaultBacklog = 1024;  // as the kernel's rdma_cm

}  // namespace

using engine::Token;

ConnectionId* ConnectionId::create(verbs::Adapter& adapter, std::shared_ptr<EventChannel> channel) {
  // Queue pairs take the engines by turns; who has none yet does not disturb the order.
  return new ConnectionId(adapter, std::move(channel), adapter.engine(0));
}

bool ConnectionId::on_device() const {
  if (!BasicId::on_device()) return false;
  // The kernel's rdma_cm takes a loopback address for a kind of wildcard until there is a peer, and
  // programs build on that: libfabric binds "localhost" to find out whether there is RDMA, and
  // where that is on a device it tells its peers 127.0.0.1 (spec/abi 4.4).
  const Addresses a = addresses();
  if (a.destination.valid() || !device::is_loopback(a.source_gid)) return true;
  // Not so where loopback is what the device itself comes with: nobody else can be meant. The
  // kernel's siw on `lo` is like that.
  const device::Device d = device::device_of_host(config::options());
  return !d.gids.empty() && device::is_loopback(d.gids.front().gid);
}

// A number that the kernel chooses is one that UDP has, too: a listener needs both.
int ConnectionId::bind_socket(const port::Address& at) {
  if (at.port() == 0) {
    if (auto both = port::bind_both(at, one_family_); both.ok()) {
      bound_udp_ = std::move(both->udp);
      take_bound(at, std::move(both->tcp));
      return 0;
    }
  }
  return bind_tcp(at);
}

int ConnectionId::bind_tcp(const port::Address& at) {
  auto bound = port::TcpListener::bind(at, one_family_);
  if (!bound.ok()) {
    if (bound.error().code == EADDRINUSE && at.port() != 0) say_tcp_port_taken(at);
    return bound.error().code;
  }
  take_bound(at, std::move(*bound));
  return 0;
}

void ConnectionId::take_bound(const port::Address& at, port::TcpListener bound) {
  any_port_ = at.port() == 0;  // before `at`, which may be source_ itself, gets one
  bound_ = std::move(bound);
  source_ = at;
  source_.set_port(bound_.local().port());
}

// As the kernel's rdma_cm does. The connection goes out by this very socket, so that it takes no
// other descriptor. Without a descriptor or a port, connecting takes what there is then.
void ConnectionId::take_port(Token&) {
  (void)bind_tcp(source_);
}

int ConnectionId::start_listening(Token& token, int backlog) {
  if (!bound_.valid()) {
    const port::Address at = source_.valid() ? source_ : port::Address::any(AF_INET, 0);
    if (const int error = bind_socket(at); error != 0) return error;
  }
  if (type_of_service_) bound_.set_type_of_service(*type_of_service_);
  const auto started =
      bound_.start(backlog > 0 ? std::max(backlog, kLeastBacklog) : kDefaultBacklog);
  if (!started.ok()) {
    if (started.error().code == EADDRINUSE) say_tcp_port_taken(source_);
    return started.error().code;
  }
  listener_ = &Listener::start(token, *this, std::move(bound_));
  // spec/wdp 4.9: A PS_TCP listener binds UDP as well, for UC; where that port is taken ... it
  // serves RC alone and says so.
  if (!bound_udp_.valid()) {
    auto udp = port::bind_udp(source_, one_family_);
    if (!udp.ok()) {
      WEFT_LOG(warn, "rdma_listen: UDP port %u: %s; RC alone is served there, and no UC",
               source_.port(), udp.error().to_string().c_str());
      return 0;
    }
    bound_udp_ = std::move(*udp);
  }
  datagram_listener_ =
      &DatagramListener::start(token, *this, wire::CtlService::uc, std::move(bound_udp_));
  return 0;
}

void ConnectionId::stop(Token& token) {
  set_under_way(false);
  bound_.close();
  bound_udp_.reset();
  if (listener_ != nullptr) std::exchange(listener_, nullptr)->stop(token);
  if (datagram_listener_ != nullptr) std::exchange(datagram_listener_, nullptr)->stop(token);
  cancel_active_start(token);
  // Who wants to connect is not left waiting.
  if (passive_start_ != nullptr || call_) {
    stats::count(token.runtime().counters().cm_rejected, stats::CmRejection::id_gone);
  }
  if (passive_start_ != nullptr) std::exchange(passive_start_, nullptr)->reject(token, {});
  if (call_) call_->reject(token, wire::RejReason::application, {});
  call_.reset();
  if (parked_connection_ != nullptr) std::exchange(parked_connection_, nullptr)->close(token);
  if (verbs::QueuePair* pair = pair_) {
    release_pair(token);
    if (state_ == IdState::connected) {
      pair->disconnect(token);
    } else if (on_its_way() && caller_of(*pair) != nullptr) {
      pair->fail_connection(token, verbs::Status::flushed);
    }
  }
}

}  // namespace weft::cm
