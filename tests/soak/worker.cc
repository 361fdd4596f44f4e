#include "tests/soak/worker.h"

#include <alloca.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

namespace weft::soak {

using namespace std::chrono_literals;

namespace {

// The stack grows now, and not when there is no memory for it. Given back at the end of this
// function, it stays mapped.
__attribute__((noinline)) void grow_stack() {
  constexpr size_t kStack = size_t{256} << 10;
  explicit_bzero(alloca(kStack), kStack);
}

}  // namespace

void Ledger::complain(const char* format, ...) {
  const uint32_t n = complaints.fetch_add(1);
  if (n >= complaint.size()) return;
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(complaint[n].data(), kComplaintSize, format, arguments);
  va_end(arguments);
}

WorkerProcess::WorkerProcess(Ledger& ledger, size_t number)
    : ledger_(ledger),
      me_(ledger.workers[number]),
      number_(number),
      incarnation_(me_.incarnation.load()),
      random_(mix(number << 32 | incarnation_)) {}

bool WorkerProcess::excused(const char* call, int error) {
  const bool scarce =
      error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == EAGAIN;
  // It may have begun since the turn did.
  const bool limited = Clock::now() < limited_until_ || me_.shortages.load() != shortages_;
  if (scarce && limited) {
    me_.refused_by_limits.add();
    return true;
  }
  ledger_.complain("worker %zu: %s: %s", number_, call, std::strerror(error));
  return false;
}

bool WorkerProcess::have_context(ibv_context* context) {
  if (queue_ != nullptr) return true;
  if (channel_ == nullptr && (channel_ = ibv_create_comp_channel(context)) == nullptr) {
    excused("ibv_create_comp_channel", errno);
    return false;
  }
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  if (domain_ == nullptr && (domain_ = ibv_alloc_pd(context)) == nullptr) {
    excused("ibv_alloc_pd", errno);
    return false;
  }
  if ((queue_ = ibv_create_cq(context, 16384, nullptr, channel_, 0)) == nullptr) {
    excused("ibv_create_cq", errno);
    return false;
  }
  ibv_req_notify_cq(queue_, 0);
  return true;
}

bool WorkerProcess::make_pair(rdma_cm_id* id) {
  if (!have_context(id->verbs)) return false;
  ibv_qp_init_attr a{};
  a.send_cq = a.recv_cq = queue_;
  a.cap = {.max_send_wr = kRequests,
           .max_recv_wr = kReceives,
           .max_send_sge = 2,
           .max_recv_sge = 1,
           .max_inline_data = 64};
  a.qp_type = IBV_QPT_RC;
  if (rdma_create_qp(id, domain_, &a) == 0) return true;
  excused("rdma_create_qp", errno);
  return false;
}

void WorkerProcess::take_events() {
  for (int i = 0; i < 16; ++i) {
    rdma_cm_event* e = nullptr;
    if (rdma_get_cm_event(events_, &e) != 0) {
      if (errno != EAGAIN) excused("rdma_get_cm_event", errno);
      return;
    }
    // The event has to be acknowledged before its identifier can go.
    const rdma_cm_event copy = *e;
    std::array<uint8_t, 256> data{};
    if (copy.param.conn.private_data != nullptr) {
      std::memcpy(data.data(), copy.param.conn.private_data, copy.param.conn.private_data_len);
    }
    rdma_cm_event mine = copy;
    mine.param.conn.private_data = data.data();
    rdma_ack_cm_event(e);
    on_event(mine);
  }
}

bool WorkerProcess::take_completions() {
  if (queue_ == nullptr || me_.slow.load()) return false;
  bool any = false;
  std::array<ibv_wc, 32> wc;
  for (int rounds = 0; rounds < 8; ++rounds) {
    const int n = ibv_poll_cq(queue_, static_cast<int>(wc.size()), wc.data());
    if (n < 0) ledger_.complain("worker %zu: ibv_poll_cq: %d", number_, n);
    if (n <= 0) break;
    any = true;
    for (int i = 0; i < n; ++i) on_completion(wc[static_cast<size_t>(i)]);
  }
  return any;
}

void WorkerProcess::wait() {
  std::array<pollfd, 2> on{{{events_->fd, POLLIN, 0}, {channel_ ? channel_->fd : -1, POLLIN, 0}}};
  if (::poll(on.data(), on.size(), 2) <= 0 || on[1].revents == 0) return;
  ibv_cq* which = nullptr;
  void* context = nullptr;
  if (ibv_get_cq_event(channel_, &which, &context) != 0) {
    if (errno != EAGAIN) excused("ibv_get_cq_event", errno);
    return;
  }
  ibv_ack_cq_events(which, 1);
  ibv_req_notify_cq(which, 0);
}

// Once for each shortage: what asks for descriptors or memory anyway may not come just then, and a
// library that has never been refused anything was not tested. All that was had goes back.
void WorkerProcess::ask_for_more() {
  if (!me_.limited.load() || queue_ == nullptr || asked_ == shortages_) return;
  asked_ = shortages_;
  std::array<rdma_event_channel*, 64> channels{};
  for (rdma_event_channel*& c : channels) {
    if ((c = rdma_create_event_channel()) != nullptr) continue;
    excused("rdma_create_event_channel", errno);
    break;
  }
  for (rdma_event_channel* c : channels) {
    if (c != nullptr) rdma_destroy_event_channel(c);
  }
  std::array<ibv_cq*, 8> queues{};
  for (ibv_cq*& q : queues) {
    if ((q = ibv_create_cq(queue_->context, 65536, nullptr, nullptr, 0)) != nullptr) continue;
    excused("ibv_create_cq", errno);
    break;
  }
  for (ibv_cq* q : queues) {
    if (q == nullptr) continue;
    if (const int e = ibv_destroy_cq(q); e != 0) excused("ibv_destroy_cq", e);
  }
}

// A process that was stopped, or short of something, is not to blame for what took long meanwhile.
void WorkerProcess::watch_time() {
  const auto now = Clock::now();
  if (now - last_turn_ > 200ms) patience_anew();
  if (const uint32_t s = me_.shortages.load(); me_.limited.load() || s != shortages_) {
    shortages_ = s;
    limited_until_ = now + 2s;
  }
  if (now < limited_until_) patience_anew();
  last_turn_ = now;
}

void WorkerProcess::run() {
  grow_stack();
  while (events_ == nullptr) {
    watch_time();
    if ((events_ = rdma_create_event_channel()) == nullptr) {
      excused("rdma_create_event_channel", errno);
      usleep(10'000);
    }
  }
  fcntl(events_->fd, F_SETFL, fcntl(events_->fd, F_GETFL) | O_NONBLOCK);
  while (!(ledger_.stop.load() && done())) {
    me_.turns.add();
    watch_time();
    try {
      ask_for_more();
      take_events();
      const bool any = take_completions();
      turn();
      if (!any) wait();
    } catch (const std::bad_alloc&) {
      // Nothing of this program's allocates here: it came out of a call.
      ledger_.complain("worker %zu: an exception came out of a library", number_);
    }
  }
}

}  // namespace weft::soak
