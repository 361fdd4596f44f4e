#include "abi/rsockets/cm_end.h"

#include <fcntl.h>

#include <cerrno>

#include "base/rdma_option.h"

namespace weft::rsockets {
namespace {

constexpr int kResolveTimeout = 8000;  // ms, for the address and for the route each

int result_of(int result) {
  return result == 0 ? 0 : errno;
}

rdma_conn_param parameters(const std::array<std::byte, ConnectData::kSize>& data) {
  rdma_conn_param p{};
  p.private_data = data.data();
  p.private_data_len = static_cast<uint8_t>(data.size());
  p.responder_resources = p.initiator_depth = 1;  // start-up of iWARP may take a Read
  p.flow_control = 1;
  p.retry_count = 7;
  p.rnr_retry_count = 7;
  return p;
}

int error_of(const rdma_cm_event& event, int otherwise) {
  return event.status < 0 ? -event.status : otherwise;
}

std::optional<ConnectData> peer_of(const rdma_cm_event& event) {
  const auto* data = static_cast<const std::byte*>(event.param.conn.private_data);
  if (data == nullptr) return std::nullopt;
  return ConnectData::parse({data, event.param.conn.private_data_len});
}

}  // namespace

CmEnd::~CmEnd() {
  if (id_ != nullptr) (void)rdma_destroy_id(id_);
}

int CmEnd::open_channel() {
  channel_.reset(rdma_create_event_channel());
  if (channel_ == nullptr) return errno;
  const int flags = fcntl(channel_->fd, F_GETFL);
  return flags < 0 ? errno : result_of(fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK));
}

int CmEnd::open() {
  if (const int error = open_channel(); error != 0) return error;
  if (rdma_create_id(channel_.get(), &id_, nullptr, RDMA_PS_TCP) != 0) return errno;
  // Programs may have sockets of streams and of datagrams at one number.
  int on = 1;
  return result_of(rdma_set_option(id_, kWeftOptionLevel, kOptionOnlyRc, &on, sizeof on));
}

int CmEnd::adopt(rdma_cm_id* request) {
  id_ = request;
  if (const int error = open_channel(); error != 0) return error;
  return result_of(rdma_migrate_id(request, channel_.get()));
}

int CmEnd::keep_alive(Keepalive keepalive) {
  return result_of(
      rdma_set_option(id_, kWeftOptionLevel, kOptionKeepalive, &keepalive, sizeof keepalive));
}

int CmEnd::bind(const sockaddr* address) {
  return result_of(rdma_bind_addr(id_, const_cast<sockaddr*>(address)));
}

int CmEnd::listen(int backlog) {
  return result_of(rdma_listen(id_, backlog));
}

int CmEnd::resolve(const sockaddr* address) {
  return result_of(
      rdma_resolve_addr(id_, nullptr, const_cast<sockaddr*>(address), kResolveTimeout));
}

int CmEnd::connect(const ConnectData& data) {
  const auto bytes = data.encode();
  rdma_conn_param p = parameters(bytes);
  return result_of(rdma_connect(id_, &p));
}

int CmEnd::accept(const ConnectData& data) {
  const auto bytes = data.encode();
  rdma_conn_param p = parameters(bytes);
  return result_of(rdma_accept(id_, &p));
}

std::optional<CmEnd::Event> CmEnd::next() {
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) == 0) {
    const std::optional<Event> e = translate(*event);
    (void)rdma_ack_cm_event(event);
    if (e) return e;
  }
  return std::nullopt;
}

std::optional<CmEnd::Event> CmEnd::translate(const rdma_cm_event& event) {
  switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: {
      const int error = result_of(rdma_resolve_route(id_, kResolveTimeout));
      if (error == 0) return std::nullopt;  // the route comes next
      return Event{Event::Kind::failed, error, nullptr, {}};
    }
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return Event{Event::Kind::route_known, 0, nullptr, {}};
    case RDMA_CM_EVENT_CONNECT_REQUEST:
      return Event{Event::Kind::request, 0, event.id, peer_of(event)};
    case RDMA_CM_EVENT_ESTABLISHED:
      return Event{Event::Kind::established, 0, nullptr, peer_of(event)};
    case RDMA_CM_EVENT_REJECTED:
      return Event{Event::Kind::failed, ECONNREFUSED, nullptr, {}};
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return Event{Event::Kind::failed, error_of(event, EHOSTUNREACH), nullptr, {}};
    case RDMA_CM_EVENT_UNREACHABLE:
      return Event{Event::Kind::failed, error_of(event, ETIMEDOUT), nullptr, {}};
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return Event{Event::Kind::failed, error_of(event, ECONNRESET), nullptr, {}};
    default:  // disconnected, or the device has gone
      return Event{Event::Kind::ended, 0, nullptr, {}};
  }
}

}  // namespace weft::rsockets
