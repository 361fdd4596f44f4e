// What the set-up of RC connections costs: so many queue pairs at a time are made at both sides,
// connected by number, used once and destroyed.
#include "bench/verbs_endpoint.h"
#include "bench/work.h"
#include "kit/clock.h"

namespace weft::bench {
namespace {

class VerbsSetUp final : public Work {
 public:
  explicit VerbsSetUp(const Order& order)
      : spec_(order.spec),
        endpoint_(order.library, {.service = Service::rc,
                                  .wait = Wait::poll,
                                  .send_requests = 2,
                                  .message = order.spec.size,
                                  .queue_pairs = order.spec.connections}) {
    endpoint_.source().fill();
  }

  void connect(const Channel& peer) override { peer_ = &peer; }
  Done initiate(const Phase& phase) override;
  void serve(const Phase& phase) override;
  bool intact(uint64_t, uint64_t) const override { return true; }

 private:
  void use_each();

  const Spec spec_;
  VerbsEndpoint endpoint_;
  const Channel* peer_ = nullptr;
};

Done VerbsSetUp::initiate(const Phase& phase) {
  Done done;
  const int64_t end = kit::now_ns() + phase.duration_ns;
  do {
    peer_->send("more");
    const int64_t begin = kit::now_ns();
    endpoint_.add_queue_pairs(*peer_, spec_.connections);
    use_each();
    done.seconds += kit::seconds_between(begin, kit::now_ns());
    done.messages += spec_.connections;
    peer_->send("used");
    endpoint_.drop_queue_pairs();
    (void)peer_->receive();
  } while (!phase.warm_up && kit::now_ns() < end);
  peer_->send("enough");
  return done;
}

// A Write each: the connection is there when it completes.
void VerbsSetUp::use_each() {
  for (uint32_t i = 0; i < spec_.connections; ++i) {
    ibv_sge place = endpoint_.source_at(0, spec_.size);
    ibv_send_wr wr{};
    wr.sg_list = &place;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = endpoint_.remote_sink();
    wr.wr.rdma.rkey = endpoint_.remote_sink_key();
    endpoint_.post_send(&wr, i);
  }
  for (size_t left = spec_.connections; left > 0;) left -= endpoint_.completions().size();
}

void VerbsSetUp::serve(const Phase&) {
  while (peer_->receive() == "more") {
    endpoint_.add_queue_pairs(*peer_, spec_.connections);
    (void)peer_->receive();
    endpoint_.drop_queue_pairs();
    peer_->send("dropped");
  }
}

}  // namespace

std::unique_ptr<Work> make_verbs_setup(const Order& order) {
  return std::make_unique<VerbsSetUp>(order);
}

}  // namespace weft::bench
