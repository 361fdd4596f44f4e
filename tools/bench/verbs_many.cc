// Writes that take many queue pairs by turns, some requests in flight on each.
#include <algorithm>

#include "bench/crowd.h"
#include "bench/verbs_endpoint.h"
#include "bench/work.h"
#include "kit/clock.h"

namespace weft::bench {
namespace {

class VerbsMany final : public Work {
 public:
  explicit VerbsMany(const Order& order)
      : spec_(order.spec),
        initiator_(order.role == Role::initiator),
        endpoint_(order.library, {.wait = order.spec.wait,
                                  .send_requests = order.spec.depth,
                                  .message = order.spec.size,
                                  .queue_pairs = order.spec.busy}),
        cursor_(endpoint_.source()),
        in_flight_(spec_.busy) {
    if (initiator_) endpoint_.source().fill();
  }

  void connect(const Channel& peer) override { endpoint_.add_queue_pairs(peer, spec_.connections); }
  void clear() override {
    endpoint_.sink().clear();
    settle(spec_);
  }
  Done initiate(const Phase& phase) override;
  // Towards Writes the target's program does nothing: its adapter does.
  void serve(const Phase&) override {}
  bool intact(uint64_t first, uint64_t count) const override {
    return initiator_ || endpoint_.sink().holds(first, count);
  }

 private:
  // Of one busy queue pair.
  struct InFlight {
    uint64_t posted = 0;
    uint64_t completed = 0;
  };

  InFlight& of(uint64_t message) { return in_flight_[message % spec_.busy]; }
  void post(bool signaled);
  void look_at_completions();

  const Spec spec_;
  const bool initiator_;
  VerbsEndpoint endpoint_;
  Cursor cursor_;
  std::vector<InFlight> in_flight_;
};

void VerbsMany::post(bool signaled) {
  const uint64_t message = cursor_.sequence();
  ibv_sge place = endpoint_.source_at(cursor_.offset(), spec_.size);
  ibv_send_wr wr{};
  wr.wr_id = message;
  wr.sg_list = &place;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = signaled ? unsigned{IBV_SEND_SIGNALED} : 0U;
  wr.wr.rdma.remote_addr = endpoint_.remote_sink() + cursor_.offset();
  wr.wr.rdma.rkey = endpoint_.remote_sink_key();
  endpoint_.post_send(&wr, busy_connection(spec_, message));
  ++of(message).posted;
  cursor_.advance();
}

void VerbsMany::look_at_completions() {
  for (const ibv_wc& wc : endpoint_.completions()) {
    // Nobody else's message has this number, so it tells how many of its queue pair are before it.
    of(wc.wr_id).completed = wc.wr_id / spec_.busy + 1;
  }
}

Done VerbsMany::initiate(const Phase& phase) {
  const uint64_t signal_every = std::max(1U, spec_.depth / 4);
  const uint64_t first = cursor_.sequence();
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  // Each queue pair has a last message, which tells when all before it are there.
  uint64_t last_ones = 0;
  bool time_over = false;
  while (last_ones < spec_.busy) {
    InFlight& queue = of(cursor_.sequence());
    while (queue.posted - queue.completed == spec_.depth) {
      look_at_completions();
      time_over = kit::now_ns() >= end;
    }
    const bool last =
        last_ones > 0 ||
        (phase.warm_up ? cursor_.sequence() - first + spec_.busy >= phase.messages : time_over);
    if (last) ++last_ones;
    post(last || (queue.posted + 1) % signal_every == 0);
  }
  const auto all = [](const InFlight& queue) { return queue.completed == queue.posted; };
  while (!std::all_of(in_flight_.begin(), in_flight_.end(), all)) look_at_completions();
  return {.messages = cursor_.sequence() - first,
          .seconds = kit::seconds_between(start, kit::now_ns()),
          .extra = {}};
}

}  // namespace

std::unique_ptr<Work> make_verbs_many(const Order& order) {
  return std::make_unique<VerbsMany>(order);
}

}  // namespace weft::bench
