// A peer on this host that is killed at any moment of large transfers, which both sides pull from
// each other. Whatever was complete is right, whatever was not has failed, and nothing is left
// behind. A few rounds; SAME_HOST_KILLS=10000 makes that many (docs/testing.md).

#include <dirent.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <thread>

#include "base/random.h"
#include "tests/support/counted.h"
#include "tests/support/rc_way.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

constexpr size_t kMost = 1 << 20;    // of one transfer
constexpr size_t kBase = 2 * kMost;  // what all transfers are cut from; each side has its own
constexpr size_t kSlots = 2;         // transfers of a kind at a time

// Part of the base, so that whoever has the number knows the bytes.
struct Cut {
  uint32_t at = 0;
  uint32_t size = 0;
  static Cut any(SeededRandom& random) {
    return {static_cast<uint32_t>(random.next() % kMost),
            static_cast<uint32_t>(1 + random.next() % kMost)};
  }
};

struct Base {
  Base() : bytes(kBase) {
    SeededRandom random{5};
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random.next());
  }
  bool is(const uint8_t* found, Cut c) const {
    return std::equal(found, found + c.size, bytes.data() + c.at);
  }
  std::vector<uint8_t> bytes;
};

// What one side tells the other first of all.
struct Hello {
  uint64_t base = 0;
  uint64_t slots = 0;
  uint32_t base_key = 0;
  uint32_t slots_key = 0;
};

// Both processes see it: what the peer was written to, and whether it has read anything wrong.
struct Seen {
  std::array<std::array<uint8_t, kMost>, kSlots> written;
  bool peer_read_wrong;
};

class SharedMapping {
 public:
  SharedMapping() {
    void* const at =
        mmap(nullptr, sizeof(Seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check(at != MAP_FAILED, "mmap");
    seen_ = static_cast<Seen*>(at);
  }
  ~SharedMapping() { munmap(seen_, sizeof(Seen)); }
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  Seen& operator*() const { return *seen_; }
  Seen* operator->() const { return seen_; }

 private:
  Seen* seen_;
};

void post(ibv_qp* qp, ibv_wr_opcode opcode, uint64_t id, const ibv_sge& local, uint64_t remote = 0,
          uint32_t key = 0, uint32_t immediate = 0) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.imm_data = immediate;
  wr.wr.rdma.remote_addr = remote;
  wr.wr.rdma.rkey = key;
  check_errno(post_send(qp, wr, {local}), "ibv_post_send");
}

// --- the peer: sends and reads for as long as it lives

enum class PeerRequest : uint64_t { hello, send, read, receive };

void live_until_killed(ibv_qp* qp, const Base& base, Seen& seen, uint64_t seed) {
  SeededRandom random{seed};
  ibv_pd* const pd = qp->pd;
  const MrPtr cuts{
      ibv_reg_mr(pd, const_cast<uint8_t*>(base.bytes.data()), base.bytes.size(), kAllAccess)};
  const MrPtr written{ibv_reg_mr(pd, seen.written.data(), sizeof seen.written, kAllAccess)};
  std::vector<uint8_t> read_to(kMost);
  const MrPtr reads{ibv_reg_mr(pd, read_to.data(), read_to.size(), kAllAccess)};
  Hello mine{reinterpret_cast<uintptr_t>(base.bytes.data()),
             reinterpret_cast<uintptr_t>(seen.written.data()), cuts->rkey, written->rkey};
  Hello theirs;
  const MrPtr out{ibv_reg_mr(pd, &mine, sizeof mine, kAllAccess)};
  const MrPtr in{ibv_reg_mr(pd, &theirs, sizeof theirs, kAllAccess)};
  const auto id = [](PeerRequest r) { return static_cast<uint64_t>(r); };
  check_errno(post_recv(qp, id(PeerRequest::receive), {sge(&theirs, sizeof theirs, in.get())}),
              "ibv_post_recv");
  post(qp, IBV_WR_SEND_WITH_IMM, id(PeerRequest::hello), sge(&mine, sizeof mine, out.get()));
  Cut reading;
  const auto send = [&] {
    const Cut c = Cut::any(random);
    post(qp, IBV_WR_SEND_WITH_IMM, id(PeerRequest::send),
         sge(base.bytes.data() + c.at, c.size, cuts.get()), 0, 0, c.at);
  };
  const auto read = [&] {
    reading = Cut::any(random);
    post(qp, IBV_WR_RDMA_READ, id(PeerRequest::read),
         sge(read_to.data(), reading.size, reads.get()), theirs.base + reading.at, theirs.base_key);
  };
  for (size_t i = 0; i < kSlots; ++i) send();
  for (;;) {
    ibv_wc wc;
    if (ibv_poll_cq(qp->send_cq, 1, &wc) != 1) continue;
    if (wc.status != IBV_WC_SUCCESS) pause();
    switch (static_cast<PeerRequest>(wc.wr_id)) {
      case PeerRequest::hello:
        break;
      case PeerRequest::send:
        send();
        break;
      case PeerRequest::read:
        if (!base.is(read_to.data(), reading)) seen.peer_read_wrong = true;
        read();
        break;
      case PeerRequest::receive:
        read();
        break;
    }
  }
}

// --- this side, which lives on

class Survivor {
 public:
  Survivor(const Base& base, const Seen& seen, PeerProcess& peer, uint64_t seed)
      : base_(base), seen_(seen), random_{seed} {
    for (size_t i = 0; i < kSlots; ++i) receive(i);
    // A lost peer is reported when all retries have taken their time.
    (void)peer.connect_to(qp_.get(), own_gid(a_), {.timeout = 1});
  }

  // Kills the peer so long after it was heard of, and goes on until all requests are back.
  void run(PeerProcess& peer, std::chrono::microseconds after) {
    auto progress = std::chrono::steady_clock::now();
    auto kill_at = std::chrono::steady_clock::time_point::max();
    while (under_way_ > 0) {
      const auto now = std::chrono::steady_clock::now();
      if (now >= kill_at) peer.kill_now();
      ibv_wc wc;
      if (ibv_poll_cq(cq_.get(), 1, &wc) == 1) {
        progress = now;
        if (theirs_.base == 0) kill_at = now + after;
        take(wc);
      }
      ASSERT_LT(now - progress, std::chrono::seconds{10}) << "nothing comes back any more";
    }
  }
  uint64_t compared() const { return compared_; }

 private:
  enum Kind : uint64_t { kRead, kWrite, kReceive, kHello };
  static uint64_t id(Kind kind, size_t slot) { return kind * kSlots + slot; }

  void receive(size_t slot) {
    check_errno(post_recv(qp_.get(), id(kReceive, slot),
                          {sge(received_.data() + slot * kMost, kMost, receives_.get())}),
                "ibv_post_recv");
    ++under_way_;
  }
  void read(size_t slot) {
    reading_[slot] = Cut::any(random_);
    uint8_t* const to = read_.data() + slot * kMost;
    post(qp_.get(), IBV_WR_RDMA_READ, id(kRead, slot), sge(to, reading_[slot].size, reads_.get()),
         theirs_.base + reading_[slot].at, theirs_.base_key);
    ++under_way_;
  }
  void write(size_t slot) {
    writing_[slot] = Cut::any(random_);
    post(qp_.get(), IBV_WR_RDMA_WRITE, id(kWrite, slot),
         sge(base_.bytes.data() + writing_[slot].at, writing_[slot].size, cuts_.get()),
         theirs_.slots + slot * kMost, theirs_.slots_key);
    ++under_way_;
  }

  void take(const ibv_wc& wc) {
    --under_way_;
    if (wc.status != IBV_WC_SUCCESS) {
      // The first request that fails says why, all others are flushed.
      const auto first =
          failed_ || wc.wr_id / kSlots == kReceive ? IBV_WC_WR_FLUSH_ERR : IBV_WC_RETRY_EXC_ERR;
      EXPECT_EQ(wc.status, first);
      failed_ |= wc.wr_id / kSlots != kReceive;
      return;
    }
    const size_t slot = wc.wr_id % kSlots;
    switch (static_cast<Kind>(wc.wr_id / kSlots)) {
      case kRead:
        EXPECT_TRUE(base_.is(read_.data() + slot * kMost, reading_[slot])) << "Read";
        ++compared_;
        read(slot);
        break;
      case kWrite:
        EXPECT_TRUE(base_.is(seen_.written[slot].data(), writing_[slot])) << "Write";
        ++compared_;
        write(slot);
        break;
      case kReceive:
        take_message(wc, slot);
        receive(slot);
        break;
      case kHello:
        break;
    }
  }

  void take_message(const ibv_wc& wc, size_t slot) {
    const uint8_t* const at = received_.data() + slot * kMost;
    if (theirs_.base != 0) {
      EXPECT_TRUE(base_.is(at, {wc.imm_data, wc.byte_len})) << "Send";
      ++compared_;
      return;
    }
    ASSERT_EQ(wc.byte_len, sizeof theirs_);
    std::memcpy(&theirs_, at, sizeof theirs_);
    mine_ = {reinterpret_cast<uintptr_t>(base_.bytes.data()), 0, cuts_->rkey, 0};
    post(qp_.get(), IBV_WR_SEND, id(kHello, 0), sge(&mine_, sizeof mine_, hello_.get()));
    ++under_way_;
    for (size_t i = 0; i < kSlots; ++i) {
      read(i);
      write(i);
    }
  }

  const Base& base_;
  const Seen& seen_;
  SeededRandom random_;
  std::vector<uint8_t> read_ = std::vector<uint8_t>(kSlots * kMost);
  std::vector<uint8_t> received_ = std::vector<uint8_t>(kSlots * kMost);
  Hello mine_;
  Hello theirs_;
  const Adapter a_;
  const MrPtr cuts_ = a_.reg(const_cast<uint8_t*>(base_.bytes.data()), base_.bytes.size());
  const MrPtr reads_ = a_.reg(read_.data(), read_.size());
  const MrPtr receives_ = a_.reg(received_.data(), received_.size());
  const MrPtr hello_ = a_.reg(&mine_, sizeof mine_);
  const CqPtr cq_ = a_.cq(64);
  const QpPtr qp_ = make_qp(a_, cq_.get());
  std::array<Cut, kSlots> reading_;
  std::array<Cut, kSlots> writing_;
  size_t under_way_ = 0;
  bool failed_ = false;
  uint64_t compared_ = 0;
};

// What a process could leave behind.
struct Holdings {
  size_t descriptors = 0;
  size_t mappings = 0;
  size_t resident = 0;  // pages
  static Holdings now() {
    Holdings h;
    if (DIR* const d = opendir("/proc/self/fd"); d != nullptr) {
      while (readdir(d) != nullptr) ++h.descriptors;
      closedir(d);
    }
    std::ifstream maps{"/proc/self/maps"};
    for (std::string line; std::getline(maps, line);) ++h.mappings;
    size_t all = 0;
    std::ifstream{"/proc/self/statm"} >> all >> h.resident;
    return h;
  }
};

int rounds() {
  const char* const said = std::getenv("SAME_HOST_KILLS");
  return said == nullptr ? 40 : std::atoi(said);
}

TEST(SameHostKill, whatever_was_complete_is_right_and_nothing_is_left) {
  constexpr int kBefore = 10;  // rounds until all that is kept for good is there
  const Base base;
  const SharedMapping seen;
  SeededRandom random{11};
  Holdings before;
  uint64_t compared = 0;
  int within = 0;  // rounds in which anything was compared
  const int all = rounds();
  for (int round = 0; round < all && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    if (round == kBefore) before = Holdings::now();
    PeerProcess peer{[&](ibv_qp* qp, const ibv_mr*) {
      std::thread{[&, qp, round] {
        live_until_killed(qp, base, *seen, static_cast<uint64_t>(round) + 1000);
      }}.detach();
    }};
    Survivor survivor{base, *seen, peer, static_cast<uint64_t>(round)};
    survivor.run(peer, std::chrono::microseconds{random.next() % 6'000});
    compared += survivor.compared();
    within += survivor.compared() > 0 ? 1 : 0;
    EXPECT_FALSE(seen->peer_read_wrong);
  }
  const Holdings after = Holdings::now();
  EXPECT_LE(after.descriptors, before.descriptors + 2);
  EXPECT_LE(after.mappings, before.mappings + 20);
  EXPECT_LE(after.resident, before.resident + 8192);
  // By datagrams a megabyte takes longer, and more of the peers are killed before they have one.
  if (!rc_by_udp()) {
    EXPECT_GT(within, all / 4);
  }
  std::cout << all << " kills, " << within << " of them while large transfers went on, " << compared
            << " transfers compared\n";
}

}  // namespace
}  // namespace weft::test
