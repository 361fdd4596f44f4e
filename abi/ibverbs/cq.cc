#include "abi/ibverbs/cq.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <span>

#include "abi/ibverbs/completion.h"
#include "abi/ibverbs/errors.h"
#include "abi/ibverbs/events.h"
#include "device/device.h"

namespace weft::abi {
namespace {

constexpr size_t kBatch = 32;  // completions on the stack

constexpr char kEntries[] = "completion queue: %ld entries; 1 to 4194304 are possible";
static_assert(device::kMaxCqe == 4'194'304);

bool entries_fit(int64_t entries) {
  return entries >= 1 && entries <= static_cast<int64_t>(device::kMaxCqe);
}

// Adapters have room for a power of two less one, and say so in `cqe`. Programs have come to rely
// on it: on one queue of 128 for the 255 completions that two queue pairs of 128 requests leave.
uint32_t room_for(int64_t entries) {
  return std::min(std::bit_ceil(static_cast<uint32_t>(entries) + 1) - 1, device::kMaxCqe);
}

}  // namespace

AbiCq* create_cq(ibv_context* context, int64_t entries, void* cq_context, ibv_comp_channel* channel,
                 int64_t vector, bool timestamps) try {
  AbiContext& c = object(context);
  if (!c.alive()) return refuse_dead_object();
  if (!entries_fit(entries)) return refuse_object(EINVAL, kEntries, long{entries});
  if (vector < 0 || vector >= device::kCompletionVectors) {
    return refuse_object(EINVAL, "completion queue: vector %ld; the device has vector 0",
                         long{vector});
  }
  if (channel != nullptr && channel->context != context) {
    return refuse_object(EINVAL, "completion queue: its channel is of another ibv_context");
  }
  const uint32_t room = room_for(entries);
  auto* cq = new AbiCq{c, room, channel == nullptr ? nullptr : &object(channel), timestamps};
  cq->context = context;
  cq->channel = channel;
  cq->cq_context = cq_context;
  identify(*cq);
  cq->cqe = static_cast<int>(room);
  pthread_mutex_init(&cq->mutex, nullptr);
  pthread_cond_init(&cq->cond, nullptr);
  if (channel != nullptr) {
    pthread_mutex_lock(&c.context.mutex);
    ++channel->refcnt;
    pthread_mutex_unlock(&c.context.mutex);
  }
  c.add_ref();
  return cq;
} catch (const std::bad_alloc&) {
  return refuse_object(ENOMEM);
}

int poll_cq(ibv_cq* cq, int room, ibv_wc* wc) {
  AbiCq& q = object(cq);
  if (!object(cq->context).alive()) return -refuse_dead();
  // Left uninitialised: a program that spins polls an empty queue most of the time.
  alignas(verbs::Completion) std::byte storage[kBatch * sizeof(verbs::Completion)];
  auto* batch = std::launder(reinterpret_cast<verbs::Completion*>(storage));
  int polled = 0;
  while (polled < room) {
    const size_t want = std::min<size_t>(static_cast<size_t>(room - polled), kBatch);
    const std::span<verbs::Completion> out{batch, want};
    const size_t n = polled == 0 ? q.core.poll(out) : q.core.pop(out);
    for (size_t i = 0; i < n; ++i) to_wc(batch[i], wc[polled++]);
    if (n < want) break;
  }
  return polled;
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  if (!object(cq->context).alive()) return refuse_dead();
  if ((attr->attr_mask & ~IBV_CQ_ATTR_MODERATE) != 0) {
    return refuse(EINVAL, "completion queue: attr_mask 0x%x; there is IBV_CQ_ATTR_MODERATE",
                  attr->attr_mask);
  }
  return 0;
}

int req_notify_cq(ibv_cq* cq, int solicited_only) {
  if (!object(cq->context).alive()) return refuse_dead();
  object(cq).core.request_notify(solicited_only != 0);
  return 0;
}

}  // namespace weft::abi

using namespace weft;
using namespace weft::abi;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context,
                      ibv_comp_channel* channel, int vector) {
  AbiCq* cq = create_cq(context, entries, cq_context, channel, vector, false);
  return cq == nullptr ? nullptr : as_cq(*cq);
}

int ibv_resize_cq(ibv_cq* cq, int entries) try {
  if (!object(cq->context).alive()) return refuse_dead();
  if (!entries_fit(entries)) return refuse(EINVAL, kEntries, long{entries});
  const uint32_t room = room_for(entries);
  if (!object(cq).core.resize(room).ok()) {
    return refuse(EINVAL, "completion queue: more than %u completions are in it; poll it first",
                  room);
  }
  cq->cqe = static_cast<int>(room);
  return 0;
} catch (const std::bad_alloc&) {
  return refuse(ENOMEM);
}

int ibv_destroy_cq(ibv_cq* cq) {
  AbiContext& c = object(cq->context);
  if (!c.alive()) return 0;
  AbiCq& q = object(cq);
  if (const int e = check_identity(q, "completion queue"); e != 0) return e;
  if (q.core.in_use()) {
    return refuse(EBUSY, "completion queue: queue pairs use it; destroy them first");
  }
  if (cq->channel != nullptr) object(cq->channel).core->forget(q.core);
  forget_events(c.core, cq);
  wait_for_acknowledgements(cq->mutex, cq->cond, cq->comp_events_completed, q.core.announced());
  wait_for_acknowledgements(cq->mutex, cq->cond, cq->async_events_completed, q.async_delivered);
  ibv_comp_channel* channel = cq->channel;
  pthread_cond_destroy(&cq->cond);
  pthread_mutex_destroy(&cq->mutex);
  delete &q;
  if (channel != nullptr) {
    pthread_mutex_lock(&c.context.mutex);
    --channel->refcnt;
    pthread_mutex_unlock(&c.context.mutex);
  }
  c.drop_ref();
  return 0;
}

}  // extern "C"
