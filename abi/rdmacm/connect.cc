// Connecting and disconnecting.
#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "abi/rdmacm/device.h"
#include "abi/rdmacm/ids.h"

namespace weft::abi {
namespace {

// "As many as the device can." (rdma_connect(3))
uint8_t or_most(uint8_t asked, uint8_t unless, uint8_t most) {
  return asked == unless ? most : asked;
}

// What rdma_cm(7) refuses before it does anything. 0, or an errno value.
int check(const char* call, const CmId& id, const rdma_conn_param* p, const SharedDevice& device) {
  if (id.ps != RDMA_PS_TCP) return 0;
  if (p == nullptr) {
    if (id.qp != nullptr) return 0;
    connections().say_refusal(call, "the id has no queue pair, so the parameters have to name one");
    return EINVAL;
  }
  const bool too_many =
      (p->responder_resources != RDMA_MAX_RESP_RES && p->responder_resources > device.max_reads) ||
      (p->initiator_depth != RDMA_MAX_INIT_DEPTH && p->initiator_depth > device.max_reads);
  if (!too_many) return 0;
  char why[120];
  std::snprintf(why, sizeof why,
                "responder_resources %u, initiator_depth %u; the device has %u reads each way",
                p->responder_resources, p->initiator_depth, device.max_reads);
  connections().say_refusal(call, why);
  return EINVAL;
}

cm::ConnectionParameters parameters(const CmId& id, const rdma_conn_param* p) {
  cm::ConnectionParameters c{.responder_resources = id.responder_resources,
                             .initiator_depth = id.initiator_depth,
                             .private_data = id.connect_data};
  if (p == nullptr) return c;
  c.retry_count = p->retry_count;
  c.rnr_retry_count = p->rnr_retry_count;
  if (id.qp == nullptr) c.qpn = Qpn{p->qp_num};
  if (p->private_data != nullptr) {
    const auto* data = static_cast<const std::byte*>(p->private_data);
    c.private_data.insert(c.private_data.end(), data, data + p->private_data_len);
  }
  return c;
}

verbs::QueuePair* pair_of(const CmId& id) {
  return id.qp == nullptr ? nullptr : the_core().pair_of(id.qp);
}

// The state that a program reads in its struct, from before the call that lets the peer go on: once
// another thread has heard how the connection goes it may change the state, and destroy the queue
// pair and the Id, while that call is still under way.
class ShownState {
 public:
  ShownState(const CmId& id, ibv_qp_state state) : qp_(id.qp) {
    if (qp_ != nullptr) before_ = std::exchange(qp_->state, state);
  }
  // The call was refused, so that nobody has heard of anything.
  void take_back() const { show(before_); }
  void show(ibv_qp_state state) const {
    if (qp_ != nullptr) qp_->state = state;
  }

 private:
  ibv_qp* const qp_;
  ibv_qp_state before_ = IBV_QPS_RESET;
};

int reject(rdma_cm_id* id, const void* private_data, uint8_t length) try {
  return result(object(id).core.reject(
      {static_cast<const std::byte*>(private_data), private_data != nullptr ? length : 0U}));
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

}  // namespace
}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

int rdma_connect(rdma_cm_id* id, rdma_conn_param* conn_param) try {
  CmId& i = object(id);
  const SharedDevice* d = shared_device();
  if (d == nullptr) return -1;
  if (const int error = check("rdma_connect", i, conn_param, *d); error != 0) return refuse(error);
  const rdma_conn_param most{.responder_resources = RDMA_MAX_RESP_RES,
                             .initiator_depth = RDMA_MAX_INIT_DEPTH};
  const rdma_conn_param& asked = conn_param != nullptr ? *conn_param : most;
  i.responder_resources = or_most(asked.responder_resources, RDMA_MAX_RESP_RES, d->max_reads);
  i.initiator_depth = or_most(asked.initiator_depth, RDMA_MAX_INIT_DEPTH, d->max_reads);
  const cm::ConnectionParameters all = parameters(i, conn_param);
  std::vector<std::byte> data = std::exchange(i.connect_data, {});
  const ShownState shown{i, IBV_QPS_RTS};
  const bool sync = i.sync;
  if (const int error = i.core.connect(pair_of(i), all); error != 0) {
    shown.take_back();
    i.connect_data = std::move(data);
    return refuse(error);
  }
  return sync ? complete(i) : 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_establish(rdma_cm_id* id) try {
  if (id->qp != nullptr) return refuse("rdma_establish", "the id has a queue pair of its own");
  return result(object(id).core.establish());
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_get_request(rdma_cm_id* listen, rdma_cm_id** id) try {
  CmId& l = object(listen);
  if (!l.sync) return refuse(EINVAL);
  if (l.event != nullptr) {
    rdma_ack_cm_event(l.event);
    l.event = nullptr;
  }
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(l.channel, &event) != 0) return -1;
  int error = error_of(*event);
  if (error == 0 && event->event != RDMA_CM_EVENT_CONNECT_REQUEST) error = EINVAL;
  if (error == 0 && l.request_qp_attr) {
    ibv_qp_init_attr attr = *l.request_qp_attr;
    if (rdma_create_qp(event->id, l.pd, &attr) != 0) error = errno;
  }
  if (error != 0) {
    l.event = event;
    return refuse(error);
  }
  *id = event->id;
  (*id)->event = event;
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_accept(rdma_cm_id* id, rdma_conn_param* conn_param) try {
  CmId& i = object(id);
  const SharedDevice* d = shared_device();
  if (d == nullptr) return -1;
  if (const int error = check("rdma_accept", i, conn_param, *d); error != 0) return refuse(error);
  const auto fit = [d](uint8_t requested) { return std::min(requested, d->max_reads); };
  if (conn_param == nullptr || conn_param->initiator_depth == RDMA_MAX_INIT_DEPTH) {
    i.initiator_depth = fit(i.initiator_depth);
  } else {
    i.initiator_depth = conn_param->initiator_depth;
  }
  if (conn_param == nullptr || conn_param->responder_resources == RDMA_MAX_RESP_RES) {
    i.responder_resources = fit(i.responder_resources);
  } else {
    i.responder_resources = conn_param->responder_resources;
  }
  const ShownState shown{i, IBV_QPS_RTS};
  // Of datagrams there is nothing to be heard after this.
  const bool waits = i.sync && i.ps == RDMA_PS_TCP;
  if (const int error = i.core.accept(pair_of(i), parameters(i, conn_param)); error != 0) {
    shown.take_back();
    if (error == ECONNRESET) shown.show(IBV_QPS_ERR);
    return refuse(error);
  }
  if (waits) return complete(i);
  // Its listener, which would wait for that, may be destroyed before it.
  if (i.sync && i.event != nullptr) rdma_ack_cm_event(std::exchange(i.event, nullptr));
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int rdma_reject(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return reject(id, private_data, private_data_len);
}

// MPA has one way to say no: the peer sees an ordinary rejection, and not reason 35
// (docs/design/05-where-weft-differs.md).
int rdma_reject_ece(rdma_cm_id* id, const void* private_data, uint8_t private_data_len) {
  return reject(id, private_data, private_data_len);
}

// A connection is established by what comes over it; nothing has to be forced.
int rdma_notify(rdma_cm_id* id, ibv_event_type) {
  return id->verbs == nullptr ? refuse(EINVAL) : 0;
}

int rdma_disconnect(rdma_cm_id* id) try {
  if (id->verbs == nullptr) return refuse("rdma_disconnect", "the id is on no device");
  CmId& i = object(id);
  const ShownState shown{i, IBV_QPS_ERR};
  const bool sync = i.sync;
  if (const int error = i.core.disconnect(); error != 0) {
    shown.take_back();
    return refuse(error);
  }
  // Disconnected before, and told: no event comes for this one.
  return !sync || i.core.silent() ? 0 : complete(i);
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

// --- enhanced connection establishment: a vendor's business, checked and never sent

int rdma_set_local_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || id->qp != nullptr || ece == nullptr || ece->vendor_id == 0 ||
      ece->comp_mask != 0) {
    return refuse(EINVAL);
  }
  return 0;
}

int rdma_get_remote_ece(rdma_cm_id* id, ibv_ece* ece) {
  if (id == nullptr || id->qp != nullptr || ece == nullptr) return refuse(EINVAL);
  *ece = {};
  return 0;
}

}  // extern "C"
