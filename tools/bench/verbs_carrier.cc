// Writes, Sends and Reads over a queue pair of UC, Sends over one of UD.
#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <thread>

#include "bench/carrier.h"
#include "bench/verbs_endpoint.h"
#include "kit/clock.h"
#include "kit/failure.h"
#include "observe/counter_reader.h"
#include "stats/table.h"

namespace weft::bench {
namespace {

constexpr uint32_t kReceives = 256;  // posted ahead by the target
constexpr uint32_t kAnswers = 64;    // receives for answers, and sends of them
constexpr uint32_t kAsk = 1;         // immediate data
constexpr int kPatienceMs = 20;
constexpr int64_t kNsPerMs = 1'000'000;

EndpointNeeds needs_of(const Order& order) {
  const bool initiator = order.role == Role::initiator;
  return {.service = order.spec.service,
          .wait = order.spec.wait,
          .send_requests = std::max(order.spec.depth, kAnswers),
          .receives = initiator ? kAnswers : kReceives,
          .message = order.spec.size};
}

// What the library in this process has counted. Nobody else tells a program of a Write without
// immediate, or of datagrams. Nothing where it is another library, or WEFT_COUNTERS is off.
struct Counted {
  Received written;
  uint64_t datagrams_sent = 0;
  uint64_t datagrams_received = 0;
};

std::optional<Counted> counted() {
  const auto seen = observe::read_process(0);
  if (!seen.ok()) return {};
  Counted c;
  for (size_t i = 0; i < seen->device.size(); ++i) {
    const std::string name = stats::table()[i].name();
    const uint64_t value = seen->device[i];
    if (name == "bytes_received.write") c.written.bytes = value;
    if (name == "messages_received.write") c.written.messages = value;
    if (name == "fpdus_sent") c.datagrams_sent = value;
    if (name == "fpdus_received") c.datagrams_received += value;
    if (name == "datagrams_duplicate") c.datagrams_received -= value;
  }
  return c;
}

Received written() {
  const auto c = counted();
  if (!c) throw kit::Failure{"the counters of this process cannot be read (WEFT_COUNTERS=off?)"};
  return c->written;
}

class VerbsCarrier final : public Carrier {
 public:
  explicit VerbsCarrier(const Order& order);
  void connect(const Channel& peer) override;
  void clear() override;
  void start(bool ask) override;
  void finish() override;
  unsigned answers(int most_ms) override;
  void take(int other_fd) override;
  Received received() const override;
  bool intact() const override { return endpoint_.sink().holds_nothing_else(); }
  std::map<std::string, double> extra() const override;

 private:
  // Of work requests: receives are odd.
  static constexpr uint64_t kReceive = 1;
  bool by_counters() const { return spec_.operation == Operation::write; }
  bool reads() const { return spec_.operation == Operation::read; }
  // That completions of receives count besides the message.
  uint32_t header_bytes() const {
    return spec_.service == Service::ud ? endpoint_.header_place().length : 0;
  }
  void post_receive();
  void post(uint64_t length, bool ask, bool signaled);
  void look(std::span<const ibv_wc> done);
  void answer(bool signaled = false);
  void wait_inside(int other_fd);

  const Spec spec_;
  const bool initiator_;
  VerbsEndpoint endpoint_;
  Cursor cursor_;    // of the next request
  Cursor receives_;  // of the next receive
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t lost_ = 0;     // Reads that the retries did not save
  unsigned answers_ = 0;  // that have come
  unsigned owed_ = 0;     // that are to be sent
  Received received_;
  std::optional<Counted> before_;
};

VerbsCarrier::VerbsCarrier(const Order& order)
    : spec_(order.spec),
      initiator_(order.role == Role::initiator),
      endpoint_(order.library, needs_of(order)),
      cursor_(endpoint_.source()),
      receives_(endpoint_.sink()) {
  if (initiator_ != reads()) endpoint_.source().fill_alike();
}

void VerbsCarrier::connect(const Channel& peer) {
  endpoint_.add_queue_pairs(peer, 1);
  for (uint32_t i = 0; i < (initiator_ ? kAnswers : kReceives); ++i) post_receive();
  peer.send("ready");
  (void)peer.receive();
}

void VerbsCarrier::clear() {
  received_ = {};
  lost_ = 0;
  before_ = counted();
  if (initiator_ == reads()) endpoint_.sink().clear();
}

void VerbsCarrier::post_receive() {
  std::array<ibv_sge, 2> places{endpoint_.sink_at(receives_.offset(), spec_.size)};
  ibv_recv_wr wr{};
  wr.wr_id = kReceive;
  wr.sg_list = places.data();
  if (!initiator_ && spec_.operation == Operation::send) wr.num_sge = 1;
  if (spec_.service == Service::ud) {
    places = {endpoint_.header_place(), places[0]};
    ++wr.num_sge;
  }
  receives_.advance();
  endpoint_.post_receive(&wr);
}

void VerbsCarrier::post(uint64_t length, bool ask, bool signaled) {
  ibv_sge place = reads() ? endpoint_.sink_at(cursor_.offset(), length)
                          : endpoint_.source_at(cursor_.offset(), length);
  ibv_send_wr wr{};
  wr.sg_list = &place;
  wr.num_sge = 1;
  wr.imm_data = htonl(ask ? kAsk : 0);
  switch (spec_.operation) {
    case Operation::read:
      wr.opcode = IBV_WR_RDMA_READ;
      break;
    case Operation::send:
      wr.opcode = ask ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
      break;
    default:
      wr.opcode = ask || spec_.operation == Operation::write_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM
                                                                       : IBV_WR_RDMA_WRITE;
  }
  if (spec_.operation != Operation::send) {
    const uint64_t base = reads() ? endpoint_.remote_source() : endpoint_.remote_sink();
    wr.wr.rdma.remote_addr = base + cursor_.offset();
    wr.wr.rdma.rkey = reads() ? endpoint_.remote_source_key() : endpoint_.remote_sink_key();
  }
  if (spec_.service == Service::ud) endpoint_.address(wr);
  if (signaled) wr.send_flags = IBV_SEND_SIGNALED;
  ++posted_;
  wr.wr_id = posted_ << 1;
  cursor_.advance();
  endpoint_.post_send(&wr);
}

void VerbsCarrier::look(std::span<const ibv_wc> done) {
  for (const ibv_wc& wc : done) {
    if ((wc.wr_id & kReceive) == 0) {
      completed_ = wc.wr_id >> 1;
      if (reads() && wc.status == IBV_WC_SUCCESS) {
        received_.bytes += wc.byte_len;
        ++received_.messages;
      }
      continue;
    }
    post_receive();
    if (initiator_) {
      ++answers_;
      continue;
    }
    received_.bytes += wc.byte_len - header_bytes();
    ++received_.messages;
    if ((wc.wc_flags & IBV_WC_WITH_IMM) != 0 && ntohl(wc.imm_data) == kAsk) ++owed_;
  }
  // Behind a pause of this process more may ask than there is room for at once.
  for (; owed_ > 0 && posted_ - completed_ < kAnswers; --owed_) answer();
}

void VerbsCarrier::start(bool ask) {
  const uint64_t every = reads() ? 1 : std::max<uint64_t>(spec_.depth / 4, 1);
  post(spec_.size, ask, (posted_ + 1) % every == 0);
  while (posted_ - completed_ >= spec_.depth) look(endpoint_.completions(&lost_));
}

void VerbsCarrier::finish() {
  if (completed_ < posted_) post(0, false, true);
  while (completed_ < posted_) look(endpoint_.completions(&lost_));
}

unsigned VerbsCarrier::answers(int most_ms) {
  const int64_t until = kit::now_ns() + most_ms * kNsPerMs;
  look(endpoint_.completions_now());
  for (int64_t now = 0; answers_ == 0 && (now = kit::now_ns()) < until;) {
    if (spec_.wait == Wait::event) {
      endpoint_.sleep(-1, static_cast<int>((until - now + kNsPerMs - 1) / kNsPerMs));
    }
    look(endpoint_.completions_now());
  }
  return std::exchange(answers_, 0);
}

void VerbsCarrier::answer(bool signaled) {
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  ++posted_;
  wr.wr_id = posted_ << 1;
  if (signaled || posted_ % (kAnswers / 4) == 0) wr.send_flags = IBV_SEND_SIGNALED;
  if (spec_.service == Service::ud) endpoint_.address(wr);
  endpoint_.post_send(&wr);
}

// Whoever sees that the initiator is through sends something: its completion ends the wait.
void VerbsCarrier::wait_inside(int other_fd) {
  const std::jthread bell{[&] {
    pollfd p{.fd = other_fd, .events = POLLIN, .revents = 0};
    while (::poll(&p, 1, -1) < 0) {
    }
    answer(true);
  }};
  look(endpoint_.completions());
}

// Of Writes without immediate, and of Reads, the target's program knows nothing.
void VerbsCarrier::take(int other_fd) {
  if (spec_.inside && other_fd >= 0) return wait_inside(other_fd);
  if (spec_.wait == Wait::event && spec_.window == 0 && (by_counters() || reads())) {
    pollfd p{.fd = other_fd, .events = POLLIN, .revents = 0};
    (void)::poll(&p, 1, other_fd < 0 ? kPatienceMs : -1);
    return;
  }
  // As the program on plain UDP: something else is looked at now and then, or when it is there.
  for (unsigned i = 0; i < kTakenAtOnce; ++i) {
    const auto done = endpoint_.completions_now();
    look(done);
    if (!done.empty()) continue;
    if (spec_.wait != Wait::event || !endpoint_.sleep(other_fd, kPatienceMs)) return;
  }
}

Received VerbsCarrier::received() const {
  if (!by_counters()) return received_;
  const Received now = written();
  const Received before = before_.value_or(Counted{}).written;
  return {.bytes = now.bytes - before.bytes, .messages = now.messages - before.messages};
}

std::map<std::string, double> VerbsCarrier::extra() const {
  const auto now = counted();
  if (!now || !before_) return {};
  if (initiator_ != reads()) {
    return {{"datagrams_sent", static_cast<double>(now->datagrams_sent - before_->datagrams_sent)}};
  }
  return {{"datagrams_received",
           static_cast<double>(now->datagrams_received - before_->datagrams_received)}};
}

}  // namespace

std::unique_ptr<Carrier> make_verbs_carrier(const Order& order) {
  return std::make_unique<VerbsCarrier>(order);
}

}  // namespace weft::bench
