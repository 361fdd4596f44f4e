// Events: of completion queues on channels, and asynchronous ones.
#include "abi/ibverbs/events.h"

#include <poll.h>
#include <pthread.h>

#include <memory>
#include <new>

#include "abi/ibverbs/enums.h"
#include "abi/ibverbs/errors.h"
#include "port/signals.h"

namespace weft::abi {
namespace {

constexpr bool same(verbs::EventType a, ibv_event_type b) {
  return static_cast<int>(a) == b;
}
static_assert(same(verbs::EventType::cq_err, IBV_EVENT_CQ_ERR) &&
              same(verbs::EventType::qp_fatal, IBV_EVENT_QP_FATAL) &&
              same(verbs::EventType::qp_req_err, IBV_EVENT_QP_REQ_ERR) &&
              same(verbs::EventType::qp_access_err, IBV_EVENT_QP_ACCESS_ERR) &&
              same(verbs::EventType::comm_est, IBV_EVENT_COMM_EST) &&
              same(verbs::EventType::sq_drained, IBV_EVENT_SQ_DRAINED) &&
              same(verbs::EventType::srq_limit_reached, IBV_EVENT_SRQ_LIMIT_REACHED) &&
              same(verbs::EventType::qp_last_wqe_reached, IBV_EVENT_QP_LAST_WQE_REACHED));

enum class About : uint8_t { port, completion_queue, queue_pair, shared_receive_queue };

About about(int type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR:
      return About::completion_queue;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return About::queue_pair;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return About::shared_receive_queue;
    default:
      return About::port;
  }
}

// The objects' owner pointers are the structs that programs know.
ibv_async_event translate(const verbs::AsyncEvent& e) {
  ibv_async_event out{};
  out.event_type = static_cast<ibv_event_type>(e.type);
  switch (about(out.event_type)) {
    case About::completion_queue:
      out.element.cq = static_cast<ibv_cq*>(e.object);
      break;
    case About::queue_pair:
      out.element.qp = static_cast<ibv_qp*>(e.object);
      break;
    case About::shared_receive_queue:
      out.element.srq = static_cast<ibv_srq*>(e.object);
      break;
    case About::port:
      out.element.port_num = device::kPort;
      break;
  }
  return out;
}

void count_delivery(const ibv_async_event& e) {
  switch (about(e.event_type)) {
    case About::completion_queue:
      ++object(e.element.cq).async_delivered;
      break;
    case About::queue_pair:
      ++object(e.element.qp).async_delivered;
      break;
    case About::shared_receive_queue:
      ++object(e.element.srq).async_delivered;
      break;
    case About::port:
      break;
  }
}

bool take_event(verbs::AsyncEvents& events, ibv_async_event& out) {
  return events
      .try_pop([&](const verbs::AsyncEvent& e) {
        out = translate(e);
        count_delivery(out);
      })
      .has_value();
}

// The object that the caller sleeps in is gone. Other providers' threads are inside read(2) then,
// on a descriptor that is closed: they hear nothing more, and programs that end in another thread
// count on it. False for a descriptor that does not block. Lets go of the share in it.
template <class Shared>
bool waits_for_ever(std::shared_ptr<Shared>& sleeping_in) {
  if (!sleeping_in->over() || sleeping_in->nonblocking()) return false;
  sleeping_in.reset();
  return true;
}
// Until a signal whose handler ends calls comes, or the thread is cancelled.
int hear_nothing_more() {
  while (::poll(nullptr, 0, -1) == 0 || port::signals_restart_calls()) {
  }
  return -1;
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& changed, uint32_t& acknowledged,
                 uint32_t count) {
  pthread_mutex_lock(&mutex);
  acknowledged += count;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

}  // namespace

void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& changed,
                               const uint32_t& acknowledged, uint32_t delivered) {
  pthread_mutex_lock(&mutex);
  // The counters wrap around.
  while (static_cast<int32_t>(delivered - acknowledged) > 0) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

void forget_events(verbs::Context& context, const void* object) {
  context.events().remove_if([&](const verbs::AsyncEvent& e) { return e.object == object; });
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) try {
  AbiContext& c = object(context);
  if (!c.alive()) return refuse_dead_object();
  auto channel = std::make_unique<AbiChannel>(c);
  if (!channel->core->valid()) {
    return refuse_object(EMFILE, "completion channel: no file descriptor is left (ulimit -n)");
  }
  channel->context = context;
  channel->fd = channel->core->fd();
  c.add_ref();
  return channel.release();
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  AbiContext& c = object(channel->context);
  if (!c.alive()) return 0;
  pthread_mutex_lock(&c.context.mutex);
  const bool busy = channel->refcnt > 0;
  pthread_mutex_unlock(&c.context.mutex);
  if (busy) {
    return refuse(EBUSY, "completion channel: completion queues use it; destroy them first");
  }
  object(channel).core->end();
  delete &object(channel);
  c.drop_ref();
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  ::pthread_testcancel();  // other providers read(2) here, also where an event is there
  if (!object(channel->context).alive()) {
    refuse_dead();
    return -1;
  }
  // From here on the program may destroy the channel.
  std::shared_ptr<verbs::CompletionChannel> core = object(channel).core;
  const auto next = core->next();
  if (!next.ok()) {
    if (waits_for_ever(core)) return hear_nothing_more();
    refuse(next.error());
    return -1;
  }
  *cq = static_cast<ibv_cq*>((*next)->owner());
  *cq_context = (*cq)->cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  acknowledge(cq->mutex, cq->cond, cq->comp_events_completed, count);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* out) {
  AbiContext& c = object(context);
  if (!c.alive()) {
    refuse_dead();
    return -1;
  }
  // From here on the program may close the device.
  verbs::Adapter& adapter = c.core.adapter();
  std::shared_ptr<verbs::AsyncEvents> events = c.core.shared_events();
  for (;;) {
    if (take_event(*events, *out)) return 0;
    if (waits_for_ever(events)) return hear_nothing_more();
    if (events->nonblocking()) {
      adapter.progress();
      if (take_event(*events, *out)) return 0;
      refuse(events->over() ? EBADF : EAGAIN);
      return -1;
    }
    // Threads sleep here for the life of a program. They are no help in running the engine: that
    // would wake them for every packet.
    pollfd fd{.fd = events->fd(), .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, -1) < 0 && !(errno == EINTR && port::signals_restart_calls())) return -1;
    if ((fd.revents & POLLNVAL) != 0) {
      refuse(EBADF);
      return -1;
    }
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  switch (about(number_of(event->event_type))) {
    case About::completion_queue: {
      ibv_cq& cq = *event->element.cq;
      acknowledge(cq.mutex, cq.cond, cq.async_events_completed, 1);
      break;
    }
    case About::queue_pair: {
      ibv_qp& qp = *event->element.qp;
      acknowledge(qp.mutex, qp.cond, qp.events_completed, 1);
      break;
    }
    case About::shared_receive_queue: {
      ibv_srq& srq = *event->element.srq;
      acknowledge(srq.mutex, srq.cond, srq.events_completed, 1);
      break;
    }
    case About::port:
      break;
  }
}

}  // extern "C"
