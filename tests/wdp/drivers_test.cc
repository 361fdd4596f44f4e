// UC and UD through the drivers of production, DatagramDriver and UcLink, over a path that loses,
// doubles, damages and reorders. All randomness comes from the seed.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/draw.h"
#include "drive/datagram_driver.h"
#include "drive/uc_link.h"
#include "sim/host/ports.h"
#include "sim/seeds.h"
#include "tests/support/uc_host.h"

namespace weft::test {
namespace {

using namespace std::chrono_literals;
using engine::Token;
using work::Operation;
using work::Status;

const port::Address kA = port::Address::from_gid(Gid::from_ipv4(0x0a000001), 50000);
const port::Address kB = port::Address::from_gid(Gid::from_ipv4(0x0a000002), 40000);

wdp::Endpoint endpoint_of(const port::Address& a) {
  return {.address = a.gid(), .port = a.port()};
}

struct PathOptions {
  FaultSpec faults;
  size_t mtu = 1472;
};

PathOptions bad_path(uint64_t seed) {
  SeededRandom random{seed * 31 + 7};
  const auto share = [&](double most) {
    return most * static_cast<double>(draw_below(random, 101)) / 100;
  };
  PathOptions p;
  p.faults.loss = share(0.1);
  p.faults.burst = 1 + static_cast<double>(draw_below(random, 3));
  p.faults.duplicate = share(0.1);
  p.faults.reorder = share(0.2);
  p.faults.reorder_delay = draw_up_to(random, 200us);
  p.faults.corrupt = share(0.05);
  p.mtu = draw_chance(random, 0.3) ? 65'507 : 1472;  // as on loopback, where datagrams come alone
  return p;
}

// One host: a runtime, a port at an end of the path, and the driver on it.
class Node : public drive::DatagramOwner, public drive::UcLinkOwner {
 public:
  Node(sim::Scheduler& scheduler, sim::DatagramEnd& end, const port::Address& own,
       const port::Address& peer, uint64_t seed)
      : runtime(scheduler, {.seed = seed, .gather = 0.3, .unasked = 0.3}) {
    auto port = std::make_unique<sim::SimDatagrams>(
        runtime, end,
        sim::SimDatagrams::Options{
            .own = own, .peer = peer, .seed = seed, .joined = 0.7, .stall = 0.1});
    runtime.run(
        [&](Token& t) { driver = &drive::DatagramDriver::start(t, *this, std::move(port)); });
  }

  // drive::DatagramOwner: accepts whoever calls.
  std::optional<wire::RejReason> requested(Token&, drive::DatagramDriver&,
                                           const wdp::RequestKey& key,
                                           const wdp::Handshake&) override {
    called = key;
    return {};
  }
  // drive::UcLinkOwner
  void visited(Token&, drive::UcLink& l) override {
    ended |= l.connection().state() == wdp::UcConnection::State::ended;
  }
  void link_lost(Token&, drive::UcLink&) override { link = nullptr; }

  sim::Runtime runtime;
  UcHost host;
  drive::DatagramDriver* driver = nullptr;
  drive::UcLink* link = nullptr;
  std::optional<wdp::RequestKey> called;
  bool ended = false;
};

// A calls B, and both stand.
class UcNodes {
 public:
  UcNodes(uint64_t seed, const PathOptions& path)
      : path_(path),
        link_(scheduler, seed,
              {.mtu = path.mtu, .queue = 4096, .checksum = true, .faults = path.faults}),
        a(scheduler, link_.a(), kA, kB, seed * 2),
        b(scheduler, link_.b(), kB, kA, seed * 2 + 1) {}

  bool connect() {
    a.runtime.run([&](Token& t) {
      a.link = &drive::UcLink::start(t, *a.driver, a, a.host);
      a.driver->wdp_socket().connect(a.link->connection(), offer(kA, 9),
                                     {.to = endpoint_of(kB), .from = kA.gid()}, Qpn{}, false,
                                     t.now());
      a.link->settle(t);
    });
    if (!scheduler.run_until([&] { return b.called.has_value(); }, 20s)) return false;
    b.runtime.run([&](Token& t) {
      b.link = &drive::UcLink::start(t, *b.driver, b, b.host);
      EXPECT_TRUE(
          b.driver->wdp_socket().accept(*b.called, b.link->connection(), offer(kB, 5), t.now()));
      b.link->settle(t);
    });
    return scheduler.run_until([&] { return a.host.host.ready && b.host.host.ready; }, 20s);
  }
  wdp::Offer offer(const port::Address& own, uint8_t index) const {
    return {.own_qpn = make_qpn(own.port(), index),
            .first_psn = Psn{0xfffffff0},
            .ird = 8,
            .ord = 8,
            .max_payload = static_cast<uint16_t>(std::min<size_t>(path_.mtu, 65'504)),
            .features = {.immediate = true, .uc_read = true}};
  }
  void post(Node& from, const work::SendWqe& wqe, const work::LocalSegment& segment) {
    from.host.host.post(wqe, {segment});
    from.runtime.run([&](Token& t) { from.driver->posted(t, *from.link); });
  }

 private:
  const PathOptions path_;

 public:
  sim::Scheduler scheduler;

 private:
  sim::DatagramLink link_;

 public:
  Node a;
  Node b;
};

// A message whose bytes follow from its number, which stands in front.
Buffer message(uint64_t number, size_t size) {
  Buffer m = pattern_bytes(size, number + 1);
  std::memcpy(m.data(), &number, sizeof number);
  return m;
}

constexpr size_t kMessages = 40;
constexpr size_t kMost = 200'000;

// What the driver did.
struct Seen {
  uint64_t in_place = 0;  // bytes
  uint64_t cut = 0;       // trains for which the port had no room
  void add(Node& node) {
    in_place += node.runtime.counters().bytes_received_in_place.value();
    cut += node.runtime.counters().sends_cut.value();
  }
};

// Sends come whole, in order, and none of them twice; on a path without losses all come.
void sends_over(uint64_t seed, const PathOptions& path, Seen& seen) {
  UcNodes n(seed, path);
  ASSERT_TRUE(n.connect());
  SeededRandom random{seed};
  std::vector<Buffer> sent;
  std::vector<Buffer> boxes(kMessages, Buffer(kMost));
  for (size_t i = 0; i < kMessages; ++i) {
    // Small ones, and such as take several datagrams of the largest size.
    const size_t size = i % 4 == 0 ? draw_below(random, kMost) : draw_size(random, 10'000);
    sent.push_back(message(i, sizeof i + std::min(size, kMost - sizeof i)));
    n.b.host.host.post_receive(i, {segment(n.b.host.host, boxes[i])});
  }
  for (size_t i = 0; i < kMessages; ++i) {
    n.post(n.a, {.wr_id = i, .operation = Operation::send, .signaled = true},
           segment(n.a.host.host, sent[i]));
    if (draw_chance(random, 0.5)) n.scheduler.run_for(draw_up_to(random, 500us));
  }
  ASSERT_TRUE(n.scheduler.run_until([&] { return n.a.host.host.sent.size() == kMessages; }, 60s));
  n.scheduler.run_for(1s);
  for (const Host::Done& d : n.a.host.host.sent) EXPECT_EQ(d.status, Status::success);
  uint64_t next = 0;
  size_t whole = 0;
  for (const Host::Arrived& r : n.b.host.host.received) {
    if (r.status != Status::success) continue;
    uint64_t number = kMessages;
    std::memcpy(&number, boxes[r.wr_id].data(), sizeof number);
    ASSERT_LT(number, kMessages);
    EXPECT_GE(number, next) << "in order, and once";
    next = number + 1;
    ++whole;
    const Buffer& expected = sent[number];
    ASSERT_EQ(r.arrival.length, expected.size());
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), boxes[r.wr_id].begin()));
  }
  if (path.faults.loss == 0 && path.faults.corrupt == 0) {
    EXPECT_EQ(whole, kMessages);
  }
  EXPECT_FALSE(n.a.host.host.end || n.b.host.host.end);
  seen.add(n.a);
  seen.add(n.b);
}

TEST(UcDriver, SendsOverACleanPath) {
  Seen seen;
  for (const uint64_t seed : sim::seeds(10)) {
    WEFT_SIM_TRACE(seed);
    sends_over(seed, {.faults = {}, .mtu = seed % 2 == 0 ? size_t{1472} : size_t{65'507}}, seen);
  }
}

TEST(UcDriver, SendsOverABadPath) {
  Seen seen;
  const auto seeds = sim::seeds(60);
  for (const uint64_t seed : seeds) {
    WEFT_SIM_TRACE(seed);
    sends_over(seed, bad_path(seed), seen);
  }
  if (seeds.size() == 1) return;  // one that failed is run again
  EXPECT_GT(seen.in_place, 0U);
  EXPECT_GT(seen.cut, 0U);
}

// What is read comes whatever the path loses, for it is asked for again (spec/wdp-uc 5.5).
TEST(UcDriver, ReadsOverABadPath) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    UcNodes n(seed, bad_path(seed));
    ASSERT_TRUE(n.connect());
    SeededRandom random{seed};
    Buffer there = pattern_bytes(300'000, seed);
    Buffer here(there.size());
    const Stag stag = n.b.host.host.add_region(there);
    const auto all = segment(n.a.host.host, here);
    constexpr size_t kReads = 10;
    constexpr uint32_t kEach = 30'000;
    for (uint32_t i = 0; i < kReads; ++i) {
      n.post(n.a,
             {.wr_id = i,
              .operation = Operation::read,
              .signaled = true,
              .remote_stag = stag,
              .remote_to = TaggedOffset{address_of(there).value() + i * kEach}},
             {all.address + i * kEach, kEach, all.lkey});
    }
    ASSERT_TRUE(n.scheduler.run_until([&] { return n.a.host.host.sent.size() == kReads; }, 60s));
    for (const Host::Done& d : n.a.host.host.sent) EXPECT_EQ(d.status, Status::success);
    EXPECT_EQ(here, there);
  }
}

// What one side has closed the other side hears of, the links go, and with the last of them the
// drivers that nobody owns any more.
TEST(UcDriver, ClosesOverABadPath) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    UcNodes n(seed, bad_path(seed));
    ASSERT_TRUE(n.connect());
    n.a.runtime.run([&](Token& t) {
      n.a.link->connection().close(t.now());
      n.a.link->settle(t);
    });
    ASSERT_TRUE(n.scheduler.run_until([&] { return n.a.ended && n.b.ended; }, 120s));
    for (Node* node : {&n.a, &n.b}) {
      node->runtime.run([&](Token& t) {
        node->link->leave(t);
        node->driver->close(t);
      });
    }
    EXPECT_TRUE(n.scheduler.run_until_idle(600s)) << "something still has a deadline";
  }
}

// A UD queue pair as far as it sends and receives.
class UdMember final : public drive::DatagramSender, public wdp::UdConsumer {
 public:
  UdMember(Node& node, Qpn qpn)
      : DatagramSender(false),
        node_(node),
        qpn_(qpn),
        queue_(*this, {.own_qpn = qpn, .q_key = QKey{7}}) {
    set_source(&queue_);
    node_.driver->wdp_socket().demux().add(qpn_, queue_);
  }
  ~UdMember() override {
    node_.runtime.run([&](Token& t) { node_.driver->remove(t, *this); });
    node_.driver->wdp_socket().demux().remove(qpn_);
  }
  Host& host() { return node_.host.host; }
  void post(uint64_t id, const wdp::UdDestination& to, const work::LocalSegment& what) {
    to_ = to;
    host().post({.wr_id = id, .operation = Operation::send, .signaled = true}, {what});
    node_.runtime.run([&](Token& t) { node_.driver->posted(t, *this); });
  }
  std::vector<std::pair<work::Receive, wdp::UdArrival>> arrived;

 private:
  // wdp::UdConsumer
  work::Memory& memory() override { return host().memory(); }
  work::SendQueue& send_queue() override { return host().send_queue(); }
  const wdp::UdDestination& destination(const work::SendWqe&) override { return to_; }
  bool take_receive(work::Receive& out) override { return host().take_receive(out); }
  void give_back(work::TakenReceive r) override { host().give_back(r); }
  void receive_done(const work::Receive& r, Status status, const wdp::UdArrival& a) override {
    EXPECT_EQ(status, Status::success);
    arrived.emplace_back(r, a);
    node_.driver->schedule_settling(*this);
  }
  void send_done(const work::SendWqe& w, Status status) override { host().send_done(w, status); }
  void send_failed() override { ADD_FAILURE() << "a request was at fault"; }
  // drive::DatagramSender
  void settled(Token&) override { ++settles; }
  void on_no_memory(Token&) override {}

  Node& node_;
  const Qpn qpn_;
  wdp::UdQueue queue_;
  wdp::UdDestination to_;
  int settles = 0;
};

// Each datagram that arrives is one that was sent, whole; on a clean path all arrive, in order.
void datagrams_over(uint64_t seed, const PathOptions& path) {
  UcNodes n(seed, path);
  UdMember a(n.a, make_qpn(kA.port(), 9));
  UdMember b(n.b, make_qpn(kB.port(), 5));
  SeededRandom random{seed};
  constexpr size_t kGrh = 40;
  constexpr size_t kRoom = 1024 + kGrh;
  std::vector<Buffer> sent;
  std::vector<Buffer> boxes(3 * kMessages, Buffer(kRoom));
  for (size_t i = 0; i < boxes.size(); ++i) {
    b.host().post_receive(i, {segment(b.host(), boxes[i])});
  }
  const wdp::UdDestination to{.path = {.to = endpoint_of(kB), .from = kA.gid()},
                              .qpn = make_qpn(kB.port(), 5),
                              .q_key = QKey{7}};
  for (size_t i = 0; i < kMessages; ++i) {
    sent.push_back(message(i, sizeof i + draw_below(random, 1024 - sizeof i)));
    a.post(i, to, segment(a.host(), sent[i]));
    if (draw_chance(random, 0.2)) n.scheduler.run_for(draw_up_to(random, 100us));
  }
  n.scheduler.run_for(5s);
  EXPECT_EQ(a.host().sent.size(), kMessages);
  std::vector<int> times(kMessages);
  for (const auto& [receive, arrival] : b.arrived) {
    const Buffer& box = boxes[receive.wr_id];
    uint64_t number = kMessages;
    std::memcpy(&number, box.data() + kGrh, sizeof number);
    ASSERT_LT(number, kMessages);
    ++times[number];
    ASSERT_EQ(arrival.length, sent[number].size() + kGrh);
    EXPECT_TRUE(std::equal(sent[number].begin(), sent[number].end(), box.begin() + kGrh));
    EXPECT_EQ(arrival.source, make_qpn(kA.port(), 9));
  }
  if (path.faults.nothing_for_datagrams()) {
    EXPECT_EQ(times, std::vector<int>(kMessages, 1));
  } else {
    EXPECT_FALSE(b.arrived.empty());
  }
}

TEST(UdDriver, DatagramsOverACleanPath) {
  for (const uint64_t seed : sim::seeds(10)) {
    WEFT_SIM_TRACE(seed);
    datagrams_over(seed, {});
  }
}

TEST(UdDriver, DatagramsOverABadPath) {
  for (const uint64_t seed : sim::seeds(40)) {
    WEFT_SIM_TRACE(seed);
    datagrams_over(seed, bad_path(seed));
  }
}

}  // namespace
}  // namespace weft::test
