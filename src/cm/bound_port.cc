#include "cm/bound_port.h"

#include <algorithm>
#include <cerrno>

#include "cm/port_taken.h"
#include "port/both_ports.h"
#include "port/udp_bind.h"

namespace weft::cm {
namespace {

// Connections that the kernel completes before the engine takes them: programs say 0 or 3, and mean
// "some". A short queue would cost the peers a second, for TCP drops what does not fit.
constexpr int kLeastBacklog = 128;
constexpr int kDefaultBacklog = 1024;  // as the kernel's rdma_cm

}  // namespace

int BoundPort::bind(const port::Address& at, bool one_family) {
  if (at.port() == 0) {
    if (auto both = port::bind_both(at, one_family); both.ok()) {
      tcp_ = std::move(both->tcp);
      udp_ = std::move(both->udp);
      any_ = true;
      return 0;
    }
  }
  return bind_tcp(at, one_family);
}

int BoundPort::bind_tcp(const port::Address& at, bool one_family) {
  auto bound = port::TcpListener::bind(at, one_family);
  if (!bound.ok()) {
    if (bound.error().code == EADDRINUSE && at.port() != 0) say_tcp_port_taken(at);
    return bound.error().code;
  }
  tcp_ = std::move(*bound);
  any_ = at.port() == 0;
  return 0;
}

int BoundPort::listen(const port::Address& at, int backlog,
                      std::optional<uint8_t> type_of_service) {
  if (type_of_service) tcp_.set_type_of_service(*type_of_service);
  const auto started = tcp_.start(backlog > 0 ? std::max(backlog, kLeastBacklog) : kDefaultBacklog);
  if (started.ok()) return 0;
  if (started.error().code == EADDRINUSE) say_tcp_port_taken(at);
  return started.error().code;
}

Result<port::Fd, port::SystemError> BoundPort::share_udp(const port::Address& at, bool one_family) {
  if (!udp_.valid()) {
    auto bound = port::bind_udp(at, one_family);
    if (!bound.ok()) return fail(bound.error());
    udp_ = std::move(*bound);
  }
  port::Fd shared = udp_.duplicate();
  if (!shared.valid()) return fail(port::SystemError{errno, "fcntl"});
  return shared;
}

}  // namespace weft::cm
