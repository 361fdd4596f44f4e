// A stream of messages of which some may be lost: the target, or of Reads the initiator, counts
// what comes. As fast as they go, at a rate, or with a window that the target's program opens
// again.
#include <poll.h>
#include <sys/resource.h>

#include <ctime>

#include "bench/carrier.h"
#include "kit/clock.h"
#include "kit/failure.h"

namespace weft::bench {
namespace {

constexpr unsigned kAsksInWindow = 4;
constexpr int kPatienceMs = 20;              // for an answer; after that it is lost
constexpr int64_t kStragglers = 30'000'000;  // ns that the target looks for more at the end
constexpr int64_t kShortestSleep = 50'000;   // ns
constexpr uint64_t kBetweenLooks = 32'768;   // bytes between two looks at the clock

bool readable(int fd) {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 0) > 0;
}

double own_switches() {
  rusage r{};
  getrusage(RUSAGE_THREAD, &r);
  return static_cast<double>(r.ru_nvcsw + r.ru_nivcsw);
}

// Keeps a sender to a rate, by sleeping.
class Pace {
 public:
  Pace(double gbps, int64_t start) : ns_per_byte_(gbps > 0 ? 8 / gbps : 0), due_(start) {}
  void wait(uint64_t bytes) {
    if (ns_per_byte_ == 0) return;
    const int64_t early = static_cast<int64_t>(due_) - kit::now_ns();
    if (early > kShortestSleep) {
      const timespec t{.tv_sec = 0, .tv_nsec = std::min<int64_t>(early, 999'999'999)};
      ::nanosleep(&t, nullptr);
    }
    due_ += static_cast<double>(bytes) * ns_per_byte_;
  }

 private:
  double ns_per_byte_;
  double due_;
};

class LossyStream final : public Work {
 public:
  explicit LossyStream(const Order& order)
      : spec_(order.spec),
        initiator_(order.role == Role::initiator),
        carrier_(order.spec.operation == Operation::udp_stream ? make_udp_carrier(order)
                                                               : make_verbs_carrier(order)) {}
  void connect(const Channel& peer) override {
    peer_ = &peer;
    carrier_->connect(peer);
  }
  void clear() override { carrier_->clear(); }
  Done initiate(const Phase& phase) override;
  void serve(const Phase& phase) override;
  bool intact(uint64_t, uint64_t) const override { return !takes_data() || carrier_->intact(); }
  std::map<std::string, double> extra() const override;

 private:
  bool takes_data() const { return initiator_ == (spec_.operation == Operation::read); }
  void await_window();

  const Spec spec_;
  const bool initiator_;
  const Channel* peer_ = nullptr;
  const std::unique_ptr<Carrier> carrier_;
  unsigned asked_ = 0;
  double unanswered_ = 0;  // asks that came to nothing
  double switches_ = 0;    // of this thread, while it served
};

void LossyStream::await_window() {
  while (asked_ >= kAsksInWindow) {
    const unsigned answers = carrier_->answers(kPatienceMs);
    if (answers == 0) unanswered_ += std::exchange(asked_, 0);
    asked_ -= std::min(asked_, answers);
  }
}

Done LossyStream::initiate(const Phase& phase) {
  const uint64_t ask_every = spec_.window / kAsksInWindow;
  const int64_t start = kit::now_ns();
  const int64_t end = start + phase.duration_ns;
  Pace pace{spec_.gbps, start};
  uint64_t messages = 0;
  uint64_t silent = 0;  // bytes since the last ask
  uint64_t unseen = 0;  // bytes since the last look at the clock
  for (int64_t now = start; phase.warm_up ? messages < phase.messages : now < end;) {
    pace.wait(spec_.size);
    silent += spec_.size;
    const bool ask = spec_.window > 0 && silent >= ask_every;
    if (ask) {
      await_window();
      ++asked_;
      silent = 0;
    }
    carrier_->start(ask);
    ++messages;
    if ((unseen += spec_.size) >= kBetweenLooks) {
      now = kit::now_ns();
      unseen = 0;
    }
  }
  carrier_->finish();
  return {.messages = messages, .seconds = kit::seconds_between(start, kit::now_ns()), .extra = {}};
}

// The initiator says by the channel that it is through; what it sent may still be on its way.
void LossyStream::serve(const Phase&) {
  const double before = own_switches();
  while (!readable(peer_->fd())) carrier_->take(peer_->fd());
  switches_ = own_switches() - before;
  for (const int64_t until = kit::now_ns() + kStragglers; kit::now_ns() < until;)
    carrier_->take(-1);
}

std::map<std::string, double> LossyStream::extra() const {
  std::map<std::string, double> figures = carrier_->extra();
  if (takes_data()) {
    const Received r = carrier_->received();
    figures["received_bytes"] = static_cast<double>(r.bytes);
    figures["received_messages"] = static_cast<double>(r.messages);
  }
  if (initiator_ && spec_.window > 0) figures["unanswered"] = unanswered_;
  if (!initiator_) figures["own_switches"] = switches_;
  return figures;
}

}  // namespace

std::unique_ptr<Work> make_lossy_stream(const Order& order) {
  return std::make_unique<LossyStream>(order);
}

}  // namespace weft::bench
