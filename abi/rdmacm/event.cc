// Events.
#include <pthread.h>

#include <algorithm>
#include <array>
#include <new>

#include "abi/ibverbs/enums.h"
#include "abi/rdmacm/channel.h"
#include "abi/rdmacm/device.h"
#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

// The values of both are said to be the same.
static_assert(static_cast<int>(cm::EventKind::addr_resolved) == RDMA_CM_EVENT_ADDR_RESOLVED &&
              static_cast<int>(cm::EventKind::connect_request) == RDMA_CM_EVENT_CONNECT_REQUEST &&
              static_cast<int>(cm::EventKind::connect_response) == RDMA_CM_EVENT_CONNECT_RESPONSE &&
              static_cast<int>(cm::EventKind::rejected) == RDMA_CM_EVENT_REJECTED &&
              static_cast<int>(cm::EventKind::established) == RDMA_CM_EVENT_ESTABLISHED &&
              static_cast<int>(cm::EventKind::disconnected) == RDMA_CM_EVENT_DISCONNECTED &&
              static_cast<int>(cm::EventKind::timewait_exit) == RDMA_CM_EVENT_TIMEWAIT_EXIT);

// By number, and not by cases: headers of newer releases have events that weft has none of.
constexpr std::array kEventNames{"RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
                                 "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
                                 "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
                                 "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
                                 "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
                                 "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
                                 "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
                                 "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
static_assert(kEventNames.size() == RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);

// The private data stand in the same place for both kinds.
void fill_datagram(CmEvent& e, const cm::DatagramPeer& peer) {
  rdma_ud_param& u = e.param.ud;
  u.ah_attr = the_core().to_ah_attr(peer.address);
  u.qp_num = peer.qpn.value();
  u.qkey = peer.q_key.value();
}

void fill_parameters(CmEvent& e) {
  const cm::ConnectionParameters& p = e.core->parameters;
  rdma_conn_param& c = e.param.conn;
  const size_t length = std::min(p.private_data.size(), e.private_data.size());
  std::copy_n(p.private_data.begin(), length, e.private_data.begin());
  c.private_data = length > 0 ? e.private_data.data() : nullptr;
  c.private_data_len = static_cast<uint8_t>(length);
  if (e.core->datagram) return fill_datagram(e, *e.core->datagram);
  c.responder_resources = p.responder_resources;
  c.initiator_depth = p.initiator_depth;
  c.retry_count = p.retry_count;
  c.rnr_retry_count = p.rnr_retry_count;
  c.qp_num = p.qpn.value();
}

// The Id of a peer that wants to connect begins its life here, on the channel of its request. 0, or
// an errno value.
int adopt_request(CmEvent& e, CmId& listener, rdma_event_channel* channel) {
  auto* id = new (std::nothrow) CmId{*e.core->id, channel, false};
  if (id == nullptr) {
    e.core->id->destroy();
    return ENOMEM;
  }
  e.core->id->set_owner(id);
  e.listen_id = &listener;
  e.id = id;
  id->context = listener.context;
  id->ps = listener.ps;
  id->qp_type = listener.qp_type;
  id->responder_resources = e.param.conn.responder_resources;
  id->initiator_depth = e.param.conn.initiator_depth;
  int error = take_device(*id);
  if (error == 0) error = fill_route(*id);
  if (error == 0 && listener.sync && rdma_migrate_id(id, nullptr) != 0) error = errno;
  if (error != 0) rdma_destroy_id(id);
  return error;
}

// What an event changes in the struct of its Id. A step that fails turns the event into its error.
void carry_out(CmEvent& e) {
  CmId& id = object(e.id);
  switch (e.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      if (const int error = take_device(id); error != 0) {
        e.event = RDMA_CM_EVENT_ADDR_ERROR;
        e.status = -error;
      }
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (const int error = fill_route(id); error != 0) {
        e.event = RDMA_CM_EVENT_ROUTE_ERROR;
        e.status = -error;
      }
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      update_addresses(id);
      break;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
      enter_group(e, id);
      break;
    case RDMA_CM_EVENT_REJECTED:
      if (id.qp != nullptr) id.qp->state = IBV_QPS_ERR;
      break;
    default:
      break;
  }
}

}  // namespace

int error_of(const rdma_cm_event& event) {
  if (event.event == RDMA_CM_EVENT_REJECTED) return ECONNREFUSED;
  return event.status < 0 ? -event.status : event.status;
}

int complete(CmId& id) {
  if (!id.sync) return 0;
  if (id.event != nullptr) {
    rdma_ack_cm_event(id.event);
    id.event = nullptr;
  }
  if (rdma_get_cm_event(id.channel, &id.event) != 0) return -1;
  return result(error_of(*id.event));
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) try {
  ::pthread_testcancel();  // the kernel's reads, also where an event is there
  if (event == nullptr) return refuse(EINVAL);
  const std::shared_ptr<cm::Channel> from = core_of(channel);
  if (from == nullptr) return refuse(EBADF);
  for (;;) {
    // First the memory: an event that is taken is not lost for want of it.
    auto e = std::make_unique<CmEvent>();
    if (const int error = from->next(e->core); error != 0) return refuse(error);
    cm::Event* const core = e->core;
    e->event = static_cast<rdma_cm_event_type>(core->kind);
    e->status = core->status;
    fill_parameters(*e);
    if (core->listener != nullptr) {
      if (adopt_request(*e, *static_cast<CmId*>(core->listener->owner()), channel) != 0) {
        // The peer has been told no.
        connections().acknowledge(core);
        continue;
      }
    } else {
      e->id = static_cast<CmId*>(core->id->owner());
      carry_out(*e);
    }
    *event = e.release();
    return 0;
  }
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_ack_cm_event(rdma_cm_event* event) {
  if (event == nullptr) return refuse(EINVAL);
  const std::unique_ptr<CmEvent> e{static_cast<CmEvent*>(event)};
  connections().acknowledge(e->core);
  return 0;
}

const char* rdma_event_str(rdma_cm_event_type event) {
  const int number = number_of(event);
  const bool known = number >= 0 && number < static_cast<int>(kEventNames.size());
  return known ? kEventNames[static_cast<size_t>(number)] : "UNKNOWN EVENT";
}

}  // extern "C"
