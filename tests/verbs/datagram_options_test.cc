// What the options of UC and UD do (docs/options.md). Each in a process of its own, for a process
// reads its options once.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>

#include "tests/support/counted.h"
#include "tests/support/rc_way.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/own_process.h"

namespace weft::test {
namespace {

constexpr QpOptions kUc{.type = IBV_QPT_UC};
constexpr QpOptions kUd{.type = IBV_QPT_UD};
constexpr size_t kMemory = 4 << 20;

struct Side {
  explicit Side(const QpOptions& o = kUc)
      : memory(kMemory),
        mr(a.reg(memory.data(), memory.size())),
        cq(a.cq(256)),
        qp(make_qp(a, cq.get(), o)) {}
  void pattern(uint32_t seed) {
    for (size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<uint8_t>(i * seed + (i >> 8) + (i >> 16) + 1);
    }
  }
  void receive(size_t n) {
    check_errno(post_recv(qp.get(), 1, {sge(memory.data(), n, mr.get())}), "post_recv");
  }
  void send(ibv_send_wr wr, size_t n) {
    wr.send_flags |= IBV_SEND_SIGNALED;
    check_errno(post_send(qp.get(), wr, {sge(memory.data(), n, mr.get())}), "post_send");
  }
  ibv_send_wr request(ibv_wr_opcode opcode) const {
    ibv_send_wr wr{};
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory.data());
    wr.wr.rdma.rkey = mr->rkey;
    return wr;
  }
  ibv_wc one() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    ibv_wc wc{};
    int n = 0;
    while ((n = ibv_poll_cq(cq.get(), 1, &wc)) == 0 && std::chrono::steady_clock::now() < until) {
    }
    check(n == 1, "a completion");
    check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
    return wc;
  }
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

class DatagramOptions : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// 2.5 MB at 200 Mb/s. How much faster it may be than told: by the moment that it may catch up.
void write_at_a_rate(const QpOptions& type) {
  Side a(type);
  Side b(type);
  a.pattern(3);
  connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), type);
  b.receive(0);
  const auto start = std::chrono::steady_clock::now();
  a.send(b.request(IBV_WR_RDMA_WRITE_WITH_IMM), 2'500'000);
  check(b.one().byte_len == 2'500'000, "all of it");
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  check(std::memcmp(a.memory.data(), b.memory.data(), 2'500'000) == 0, "the bytes");
  check(took.count() > 0.090, "no faster than told");
}

TEST_F(DatagramOptions, rate_keeps_a_sender_back) {
  EXPECT_EXIT(with({{"WEFT_RATE", "0.2"}}, [] { write_at_a_rate(kUc); }),
              ::testing::ExitedWithCode(0), "");
}

// What is lost comes again, at that rate, too.
TEST_F(DatagramOptions, fixed_rate_keeps_a_channel_back) {
  const auto write = [] {
    const Counted by_udp("streams_by_udp");
    const Counted again("rd_datagrams_repeated");
    write_at_a_rate({});
    check(!by_udp.grown().empty(), "RC by a channel");
    check(!again.grown().empty(), "some were lost");
  };
  EXPECT_EXIT(with({{"WEFT_FIXED_RATE", "0.2"},
                    {"WEFT_RC", "udp"},
                    {"WEFT_SAME_HOST", "off"},
                    {"WEFT_FAULT", "loss:0.02,seed:3"}},
                   write),
              ::testing::ExitedWithCode(0), "");
}

// Larger than any path carries.
void a_large_datagram() {
  Side a(kUd);
  Side b(kUd);
  a.pattern(5);
  for (const Side* s : {&a, &b}) {
    to_rtr(s->qp.get(), 0, {}, kUd);
    to_rts(s->qp.get(), kUd);
  }
  constexpr size_t kLargest = 65'475;
  b.receive(40 + kLargest);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = own_gid(b.a);
  ibv_ah* ah = ibv_create_ah(a.a.pd.get(), &attr);
  check(ah != nullptr, "ibv_create_ah");
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {.ah = ah, .remote_qpn = b.qp->qp_num, .remote_qkey = kQKey};
  a.send(wr, kLargest);
  check(b.one().byte_len == 40 + kLargest, "all of it");
  check(std::memcmp(a.memory.data(), &b.memory[40], kLargest) == 0, "the bytes");
  ibv_destroy_ah(ah);
}

TEST_F(DatagramOptions, ud_big_sends_what_no_path_carries_in_one_piece) {
  if (ud_by_channels()) GTEST_SKIP() << "UD goes by channels (WEFT_UD=reliable)";
  EXPECT_EXIT(with({{"WEFT_UD_BIG", "on"}}, a_large_datagram), ::testing::ExitedWithCode(0), "");
}

// 13 MB at 2.5 Gb/s: 42 ms.
void datagrams_at_the_handles_rate() {
  Side a(kUd);
  to_rtr(a.qp.get(), 0, {}, kUd);
  to_rts(a.qp.get(), kUd);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.static_rate = IBV_RATE_2_5_GBPS;
  attr.grh.dgid = own_gid(a.a);
  ibv_ah* ah = ibv_create_ah(a.a.pd.get(), &attr);
  check(ah != nullptr, "ibv_create_ah");
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud = {.ah = ah, .remote_qpn = a.qp->qp_num, .remote_qkey = kQKey};
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    a.send(wr, 65'000);  // nobody takes it
    a.one();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  check(took.count() > 0.038, "no faster than told");
  ibv_destroy_ah(ah);
}

TEST_F(DatagramOptions, a_static_rate_keeps_a_sender_back) {
  if (ud_by_channels()) GTEST_SKIP() << "UD goes by channels (WEFT_UD=reliable)";
  EXPECT_EXIT(with({{"WEFT_UD_BIG", "on"}}, datagrams_at_the_handles_rate),
              ::testing::ExitedWithCode(0), "");
}

// A Read asks again for what was dropped as damaged.
bool a_read_is_exact() {
  Side a;
  Side b;
  b.pattern(7);
  connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
  a.send(b.request(IBV_WR_RDMA_READ), kMemory);
  const auto done = collect(a.cq.get(), 1);
  return done.size() == 1 && done[0].status == IBV_WC_SUCCESS && a.memory == b.memory;
}

TEST_F(DatagramOptions, datagram_crc_keeps_damage_from_memory) {
  // Of questions and answers together a third is lost with a CRC. With a half of them it happened
  // that one Read had no answer for ten seconds.
  const auto damage = std::pair{"WEFT_FAULT", "corrupt:0.2,seed:4"};
  EXPECT_EXIT(with({damage, {"WEFT_DATAGRAM_CRC", "on"}},
                   [] { check(a_read_is_exact(), "exact with a CRC"); }),
              ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(with({damage}, [] { check(!a_read_is_exact(), "damaged without"); }),
              ::testing::ExitedWithCode(0), "");
}

// Lost, doubled and overtaken at once: each Read asks again until it has every byte, in its place.
void reads_over_a_bad_path() {
  constexpr size_t kReads = 8;
  constexpr size_t kRoom = kMemory / kReads;
  constexpr size_t kEach = kRoom - 1001;
  Side a;
  Side b;
  b.pattern(13);
  connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
  const Counted injected("fault_injected");
  const Counted repeated("uc_ranges_repeated");
  const Counted failed("uc_reads_failed");
  for (size_t round = 1; round <= 4; ++round) {
    std::fill(a.memory.begin(), a.memory.end(), uint8_t{0});
    for (size_t i = 0; i < kReads; ++i) {
      ibv_send_wr wr = b.request(IBV_WR_RDMA_READ);
      wr.wr_id = i;
      wr.send_flags = IBV_SEND_SIGNALED;
      wr.wr.rdma.remote_addr += i * kRoom + round;
      check_errno(post_send(a.qp.get(), wr, {sge(&a.memory[i * kRoom], kEach, a.mr.get())}),
                  "post_send");
    }
    const auto done = collect(a.cq.get(), kReads);
    check(done.size() == kReads, "all Reads end");
    for (size_t i = 0; i < kReads; ++i) {
      check(done[i].wr_id == i && done[i].status == IBV_WC_SUCCESS, "in order, with success");
      const auto* place = &a.memory[i * kRoom];
      check(std::memcmp(place, &b.memory[i * kRoom + round], kEach) == 0, "its bytes");
      check(std::all_of(place + kEach, place + kRoom, [](uint8_t x) { return x == 0; }),
            "and no others");
    }
  }
  const auto faults = injected.grown();
  for (const char* kind : {"lost_out", "duplicated_out", "reordered_out"}) {
    check(faults.contains(kind), kind);
  }
  check(!repeated.grown().empty(), "ranges are asked for again");
  check(failed.grown().empty(), "no Read fails");
}

TEST_F(DatagramOptions, reads_are_exact_over_a_path_that_loses_doubles_and_reorders) {
  EXPECT_EXIT(with({{"WEFT_FAULT", "loss:10%,duplicate:10%,reorder:20%,way:out,seed:11"}},
                   reads_over_a_bad_path),
              ::testing::ExitedWithCode(0), "");
}

// spec/wdp-uc 6: nothing is exchanged before the data.
void without_a_handshake() {
  Side a;
  Side b;
  a.pattern(9);
  // One side is up and sends before the other has heard of anything.
  to_rtr(b.qp.get(), a.qp->qp_num, own_gid(a.a), kUc);
  to_rts(b.qp.get(), kUc);
  b.receive(kMemory);
  to_rtr(a.qp.get(), b.qp->qp_num, own_gid(b.a), kUc);
  to_rts(a.qp.get(), kUc);
  a.send(a.request(IBV_WR_SEND), 300'000);
  check(b.one().byte_len == 300'000, "a Send");
  check(std::memcmp(a.memory.data(), b.memory.data(), 300'000) == 0, "the bytes of the Send");
  b.pattern(11);
  a.receive(0);
  b.send(a.request(IBV_WR_RDMA_WRITE_WITH_IMM), 500'000);
  b.one();
  a.one();  // of the Send
  check(a.one().opcode == IBV_WC_RECV_RDMA_WITH_IMM, "a Write with immediate");
  check(std::memcmp(a.memory.data(), b.memory.data(), 500'000) == 0, "the bytes of the Write");
}

TEST_F(DatagramOptions, uc_static_needs_no_handshake) {
  EXPECT_EXIT(with({{"WEFT_UC", "static"}}, without_a_handshake), ::testing::ExitedWithCode(0), "");
}

// A sender that is a circuit: it fills in the 48 bytes of spec/wdp-uc 2 and hears nothing.
class Circuit {
 public:
  explicit Circuit(const Side& to) : fd_(::socket(AF_INET6, SOCK_DGRAM, 0)), to_(to) {}
  ~Circuit() { ::close(fd_); }
  Circuit(const Circuit&) = delete;
  Circuit& operator=(const Circuit&) = delete;

  // A Write with immediate in one datagram.
  void write(uint32_t psn, uint32_t msn, size_t offset, const std::vector<uint8_t>& data) {
    const auto qpn = to_.qp->qp_num;
    std::vector<uint8_t> d(48);
    d[0] = 0xd1;
    d[1] = 0x14;  // class 1, F_IMM
    d[2] = static_cast<uint8_t>(qpn);
    put(d, 4, qpn);
    put(d, 8, psn);
    put(d, 16, msn);
    put(d, 24, static_cast<uint32_t>(data.size()));
    d[28] = 0xc1;  // tagged, last
    d[29] = 0x40;  // Write
    d[30] = 0x05;
    d[31] = 0x90;
    put(d, 32, to_.mr->rkey);
    put(d, 36, msn);
    const auto at = reinterpret_cast<uintptr_t>(to_.memory.data()) + offset;
    put(d, 40, static_cast<uint32_t>(at >> 32));
    put(d, 44, static_cast<uint32_t>(at));
    d.insert(d.end(), data.begin(), data.end());
    sockaddr_in6 a{};
    a.sin6_family = AF_INET6;
    a.sin6_port = htons(static_cast<uint16_t>(qpn >> 8));
    const ibv_gid gid = own_gid(to_.a);
    std::memcpy(&a.sin6_addr, gid.raw, 16);
    check(::sendto(fd_, d.data(), d.size(), 0, reinterpret_cast<sockaddr*>(&a), sizeof a) ==
              static_cast<ssize_t>(d.size()),
          "sendto");
  }
  bool hears() const {
    uint8_t byte;
    return ::recv(fd_, &byte, 1, MSG_DONTWAIT) >= 0;
  }

 private:
  static void put(std::vector<uint8_t>& d, size_t at, uint32_t v) {
    v = htonl(v);
    std::memcpy(&d[at], &v, 4);
  }
  int fd_;
  const Side& to_;
};

void a_circuit_sends() {
  Side b;
  // The peer's number says nothing here but that there is one.
  to_rtr(b.qp.get(), 1, own_gid(b.a), kUc);
  to_rts(b.qp.get(), kUc);
  Circuit circuit(b);
  for (int i = 0; i < 40; ++i) b.receive(0);
  std::vector<uint8_t> data(1424);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 13 + (i >> 8) + 1);
  // Its first number is any; after a reset it begins anew, far behind, and the 16th datagram of
  // those shows that it means it (spec/wdp-uc 3.2).
  circuit.write(0xfffffff0, 7, 0, data);
  circuit.write(0xfffffff1, 8, 1424, data);
  check(b.one().imm_data == htonl(7) && b.one().imm_data == htonl(8), "the immediates");
  check(std::memcmp(&b.memory[0], data.data(), 1424) == 0, "the first");
  check(std::memcmp(&b.memory[1424], data.data(), 1424) == 0, "the second");
  for (uint32_t i = 0; i < 20; ++i) circuit.write(0x80000000 + i, 100 + i, i * 1424, data);
  const ibv_wc again = b.one();
  check(ntohl(again.imm_data) >= 100, "what came after the reset");
  check(!circuit.hears(), "nothing is answered");
}

TEST_F(DatagramOptions, uc_static_takes_what_a_circuit_sends) {
  EXPECT_EXIT(with({{"WEFT_UC", "static"}}, a_circuit_sends), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace weft::test
