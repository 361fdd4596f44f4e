// RDMA Writes that land in the ring: an immediate tells which packets lie there.
#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <unordered_map>

#include "kit/failure.h"
#include "kit/json_numbers.h"
#include "stream/landed_packets.h"
#include "stream/verbs_device.h"

namespace weft::stream {
namespace {

constexpr uint32_t kReceivesInAll = 65'536;
constexpr uint32_t kFewestReceives = 1024;
constexpr uint32_t kMostReceives = 16'384;
constexpr uint32_t kRefill = 64;
constexpr uint32_t kCreditSends = 64;
constexpr uint64_t kCreditMark = uint64_t{1} << 63;  // of work requests that carry credit
// Between two looks, while packets flow. The rest of a look's cost is divided among what came.
constexpr long kShortestNapNs = 100'000;
constexpr long kLongestNapNs = 2'000'000;
constexpr uint64_t kFewestBytes = 32 << 10;  // of a look
constexpr uint64_t kMostBytes = 512 << 10;
constexpr unsigned kQuietLooks = 50;  // then it sleeps until an event
constexpr int kPatienceMs = 2;        // between two looks at consumers that hold up

// As much as may gather before it is taken: an eighth of what the kernel lets a socket keep.
uint64_t bytes_of_a_look() {
  uint64_t most = 0;
  std::ifstream{"/proc/sys/net/core/rmem_max"} >> most;
  return std::clamp(most / 8, kFewestBytes, kMostBytes);
}

struct VerbsEnds final : Ends {
  VerbsEnds(VerbsDevice& its_device) : device(its_device) {}
  ~VerbsEnds() override {
    for (ibv_qp* qp : qps) device.destroy(qp);
  }
  struct Credit {  // RC: where the sender reads how far it may go
    uint64_t place = 0;
    uint32_t key = 0;
  };
  VerbsDevice& device;
  ibv_qp* add(ibv_qp* qp) { return qps.emplace_back(qp); }
  std::vector<ibv_qp*> qps;
  std::vector<Credit> credits;
};

class VerbsInlet final : public Inlet {
 public:
  VerbsInlet(const InletOptions& options, Lanes& lanes, Ring& ring);
  ~VerbsInlet() override {
    for (ibv_mr* memory : memory_) device_.remove_memory(memory);
  }
  nlohmann::json offer(ConnectedSender& sender) override;
  void connect(ConnectedSender& sender) override;
  void begin(const ConnectedSender& sender) override;
  void end(const ConnectedSender& sender) override;
  void wait(int most_ms) override;
  bool take(int64_t now_ns) override;
  void settle(uint32_t stream, int64_t now_ns) override { packets_.settle(stream, now_ns); }
  std::vector<nlohmann::json> circuits() const override;

 private:
  struct Feed {  // of a lane, from its queue pair
    uint32_t lane = 0;
    ibv_qp* qp = nullptr;
    uint32_t group = 1;  // packets of a Write at most
    uint32_t used = 0;   // receives
    // RC: how far the sender may go.
    uint64_t credit_place = 0;
    uint32_t credit_key = 0;
    uint64_t credit = 0;
    uint32_t credits_posted = 0;
    uint32_t credits_done = 0;
  };
  static uint32_t receives_of(size_t lanes);
  void post_receives(ibv_qp* qp, uint32_t count);
  void expect_circuits();
  void landed(Feed& feed, const ibv_wc& wc, int64_t now_ns);
  void give_credit(Feed& feed);

  const InletOptions options_;
  const bool reliable_;
  Lanes& lanes_;
  Ring& ring_;
  LandedPackets packets_;
  const uint32_t receives_;
  VerbsDevice device_;
  std::vector<ibv_mr*> memory_;               // of each lane: a sender reaches its streams alone
  VerbsEnds circuits_;                        // that is, their queue pairs
  std::unordered_map<uint32_t, Feed> feeds_;  // by queue pair number
  std::array<ibv_recv_wr, kRefill> refill_{};
  std::array<ibv_wc, 128> done_{};
  bool armed_ = false;
  bool held_up_ = false;
  const uint64_t bytes_of_a_look_ = bytes_of_a_look();
  uint64_t came_ = 0;  // bytes, since the last nap
  long nap_ns_ = kShortestNapNs;
  unsigned quiet_looks_ = kQuietLooks;  // in a row that found nothing
};

uint32_t VerbsInlet::receives_of(size_t lanes) {
  const auto share = static_cast<uint32_t>(kReceivesInAll / lanes);
  return std::clamp(share / kRefill * kRefill, kFewestReceives, kMostReceives);
}

VerbsInlet::VerbsInlet(const InletOptions& options, Lanes& lanes, Ring& ring)
    : options_(options),
      reliable_(options.transport == Transport::rc),
      lanes_(lanes),
      ring_(ring),
      packets_(options_, lanes, ring),
      receives_(receives_of(lanes.size())),
      // Twice: a sender may come again before its old queue pair is gone.
      device_(options.library, static_cast<uint32_t>(lanes.size()) * 2 * (receives_ + kCreditSends),
              true),
      circuits_(device_) {
  const bool circuits = !options.circuits.empty();
  for (const Lane& lane : lanes) {
    const BlockStore& store = lane.store;
    memory_.push_back(circuits ? device_.add_memory_from_0(store.landing(), store.landing_bytes())
                               : device_.add_memory(store.landing(), store.landing_bytes(), true));
  }
  for (size_t i = 0; i + 1 < refill_.size(); ++i) refill_[i].next = &refill_[i + 1];
  if (circuits) expect_circuits();
}

void VerbsInlet::expect_circuits() {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    ibv_qp* qp = circuits_.add(
        device_.create({.reliable = false, .sends = 1, .receives = receives_, .send_pieces = 1}));
    post_receives(qp, receives_);
    packets_.begin(i, options_.shape, false);
    feeds_[qp->qp_num] = {.lane = i, .qp = qp};
    device_.connect(qp, VerbsDevice::address_of_circuit(options_.circuits[i]));
  }
}

std::vector<nlohmann::json> VerbsInlet::circuits() const {
  std::vector<nlohmann::json> told;
  for (const ibv_qp* qp : circuits_.qps) {
    const size_t stream = told.size();
    told.push_back({{"event", "circuit"},
                    {"stream", stream},
                    {"from", options_.circuits[stream]},
                    {"udp_port", qp->qp_num >> 8},
                    {"index", qp->qp_num & 0xff},
                    {"token", qp->qp_num},
                    {"stag", memory_[stream]->rkey},
                    {"to", 0},
                    {"packet_bytes", options_.shape.packet_bytes()},
                    {"slot_bytes", ring_.spec().slot_bytes},
                    {"packets_per_block", ring_.spec().packets_per_block},
                    {"block_bytes", ring_.header().block_bytes},
                    {"blocks", ring_.spec().blocks}});
  }
  return told;
}

void VerbsInlet::post_receives(ibv_qp* qp, uint32_t count) {
  for (uint32_t i = 0; i < count; i += kRefill) {
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(qp, refill_.data(), &bad); error != 0) {
      errno = error;
      throw kit::system_failure("ibv_post_recv");
    }
  }
}

nlohmann::json VerbsInlet::offer(ConnectedSender& sender) {
  auto ends = std::make_shared<VerbsEnds>(device_);
  auto answer = nlohmann::json::array();
  for (size_t i = 0; i < sender.streams.size(); ++i) {
    const uint32_t stream = sender.streams[i];
    VerbsEnds::Credit credit;
    if (reliable_) {
      const nlohmann::json& end = sender.ends.at(i);
      credit = {.place = kit::number_at<uint64_t>(end, "credit_address"),
                .key = kit::number_at<uint32_t>(end, "credit_key")};
    }
    ends->credits.push_back(credit);
    ibv_qp* qp = device_.create(
        {.reliable = reliable_, .sends = kCreditSends, .receives = receives_, .send_pieces = 1});
    ends->add(qp);
    post_receives(qp, receives_);
    answer.push_back({{"qp", device_.address_of(qp)},
                      {"address", reinterpret_cast<uintptr_t>(lanes_[stream].store.landing())},
                      {"key", memory_[stream]->rkey}});
  }
  sender.kept = ends;
  return answer;
}

void VerbsInlet::connect(ConnectedSender& sender) {
  const auto& ends = static_cast<const VerbsEnds&>(*sender.kept);
  for (size_t i = 0; i < ends.qps.size(); ++i) {
    device_.connect(ends.qps[i], sender.ends.at(i).at("qp"));
  }
}

void VerbsInlet::begin(const ConnectedSender& sender) {
  const auto& ends = static_cast<const VerbsEnds&>(*sender.kept);
  for (size_t i = 0; i < ends.qps.size(); ++i) {
    const uint32_t stream = sender.streams[i];
    Feed feed{.lane = stream, .qp = ends.qps[i], .group = sender.group};
    packets_.begin(stream, sender.shape, !reliable_ && sender.group > 1);
    if (reliable_) {
      feed.credit_place = ends.credits[i].place;
      feed.credit_key = ends.credits[i].key;
    }
    Feed& kept = feeds_[feed.qp->qp_num] = feed;
    if (reliable_) give_credit(kept);
  }
}

void VerbsInlet::end(const ConnectedSender& sender) {
  for (const ibv_qp* qp : static_cast<const VerbsEnds&>(*sender.kept).qps) feeds_.erase(qp->qp_num);
}

void VerbsInlet::landed(Feed& feed, const ibv_wc& wc, int64_t now_ns) {
  const bool known =
      wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
      packets_.account_for(feed.lane, feed.group, mark_of(ntohl(wc.imm_data)), wc.byte_len, now_ns);
  if (!known) lanes_[feed.lane].ledger.count_invalid();
  if (++feed.used == kRefill) {
    feed.used = 0;
    post_receives(feed.qp, kRefill);
  }
}

// How far the sender may go: to where memory is free and a receive is posted.
void VerbsInlet::give_credit(Feed& feed) {
  Lane& lane = lanes_[feed.lane];
  const uint64_t room = lane.ledger.extend();
  const uint64_t limit = std::min(room, lane.ledger.next() + receives_ - kRefill);
  const uint64_t worth = std::min<uint64_t>(receives_, lane.store.packets()) / 4 + 1;
  if (limit < lane.ledger.next() + worth) held_up_ = true;
  if (limit < feed.credit + worth) return;
  if (feed.credits_posted - feed.credits_done >= kCreditSends) return;
  feed.credit = limit;
  ibv_sge piece{};
  piece.addr = reinterpret_cast<uintptr_t>(&feed.credit);
  piece.length = sizeof feed.credit;
  ibv_send_wr wr{};
  wr.wr_id = kCreditMark;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.wr.rdma.remote_addr = feed.credit_place;
  wr.wr.rdma.rkey = feed.credit_key;
  ibv_send_wr* bad = nullptr;
  // One that cannot be sent any more: the control connection will say so.
  if (ibv_post_send(feed.qp, &wr, &bad) == 0) ++feed.credits_posted;
}

bool VerbsInlet::take(int64_t now_ns) {
  const int n = device_.poll(done_);
  for (int i = 0; i < n; ++i) {
    const ibv_wc& wc = done_[static_cast<size_t>(i)];
    const auto found = feeds_.find(wc.qp_num);
    if (found == feeds_.end()) continue;  // of a sender that has gone
    if ((wc.wr_id & kCreditMark) != 0) {
      ++found->second.credits_done;
    } else if (wc.status == IBV_WC_SUCCESS) {
      came_ += wc.byte_len;
      landed(found->second, wc, now_ns);
    }
  }
  if (n > 0) quiet_looks_ = 0;
  held_up_ = false;
  for (auto& [qpn, feed] : feeds_) {
    Ledger& ledger = lanes_[feed.lane].ledger;
    ledger.settle();
    if (static_cast<size_t>(n) < done_.size()) ledger.caught_up();
    if (reliable_) give_credit(feed);
  }
  return n > 0;
}

// What completes between the last look and arming makes no event, so one more look follows.
void VerbsInlet::wait(int most_ms) {
  // While packets flow, a look now and then takes many at once, and costs far less than an event
  // for each.
  if (quiet_looks_ < kQuietLooks) {
    ++quiet_looks_;
    // Little came: longer naps cost less. Much came: shorter ones leave more room.
    if (came_ > 0 && came_ < bytes_of_a_look_ / 2) nap_ns_ = std::min(nap_ns_ * 2, kLongestNapNs);
    if (came_ > bytes_of_a_look_) nap_ns_ = std::max(nap_ns_ / 2, kShortestNapNs);
    came_ = 0;
    const timespec nap{.tv_sec = 0, .tv_nsec = nap_ns_};
    ::nanosleep(&nap, nullptr);
    return;
  }
  if (!armed_) {
    device_.arm();
    armed_ = true;
    return;
  }
  std::array<pollfd, 2> fds{{{.fd = device_.event_fd(), .events = POLLIN, .revents = 0},
                             {.fd = options_.waker, .events = POLLIN, .revents = 0}}};
  (void)::poll(fds.data(), fds.size(), held_up_ ? std::min(most_ms, kPatienceMs) : most_ms);
  if (fds[0].revents != 0) {
    device_.take_event();
    armed_ = false;
  }
}

}  // namespace

std::unique_ptr<Inlet> make_verbs_inlet(const InletOptions& options, Lanes& lanes, Ring& ring) {
  return std::make_unique<VerbsInlet>(options, lanes, ring);
}

}  // namespace weft::stream
