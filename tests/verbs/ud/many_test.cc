// UD: many queue pairs on one socket (spec/wdp-ud 1, spec/addressing 2), and a queue pair that
// hears from many.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>

#include "tests/support/counted.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/raw_peer.h"
#include "wire/wdp_ud.h"

namespace weft::test {
namespace {

constexpr size_t kGrh = 40;
constexpr size_t kEach = 60;  // bytes of a message

size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

QpPtr ready_qp(const Adapter& a, ibv_cq* cq, uint32_t depth) {
  QpPtr qp = make_qp(a, cq, {.depth = depth, .type = IBV_QPT_UD});
  to_rtr(qp.get(), 0, {});
  to_rts(qp.get());
  return qp;
}

void queue_pairs_on_one_socket() {
  constexpr size_t kOfAPort = 254;  // numbers that a port has
  const Adapter a;
  const CqPtr cq = a.cq(2 * kOfAPort);
  std::vector<uint8_t> out(kOfAPort + kEach);
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  std::vector<uint8_t> in(kOfAPort * (kGrh + kEach));
  const MrPtr out_mr = a.reg(out.data(), out.size());
  const MrPtr in_mr = a.reg(in.data(), in.size());
  std::vector<QpPtr> all;
  all.push_back(ready_qp(a, cq.get(), kOfAPort));
  const uint32_t port = all[0]->qp_num >> 8;

  const Counted opened("ports_opened");
  const size_t before = descriptors();
  while (all.size() < kOfAPort) all.push_back(ready_qp(a, cq.get(), 2));
  check(opened.grown().empty(), "no other port is opened");
  check(descriptors() == before, "no descriptor is opened");
  for (const QpPtr& qp : all) check(qp->qp_num >> 8 == port, "all are on the port");

  // What comes there is for the one that it names.
  ibv_ah_attr to{};
  to.is_global = 1;
  to.port_num = 1;
  to.grh.dgid = own_gid(a);
  ibv_ah* ah = ibv_create_ah(a.pd.get(), &to);
  check(ah != nullptr, "ibv_create_ah");
  // Two receives, of which one stays: after the last one the socket is not read for a moment.
  for (size_t i = 0; i < 2 * kOfAPort; ++i) {
    const size_t n = i % kOfAPort;
    const ibv_sge place = sge(&in[n * (kGrh + kEach)], kGrh + kEach, in_mr.get());
    check_errno(post_recv(all[n].get(), n, {place}), "post_recv");
  }
  for (size_t i = 0; i < kOfAPort; ++i) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud = {.ah = ah, .remote_qpn = all[i]->qp_num, .remote_qkey = kQKey};
    check_errno(post_send(all[0].get(), wr, {sge(&out[i], kEach, out_mr.get())}), "post_send");
  }
  const auto came = collect(cq.get(), kOfAPort);
  check(came.size() == kOfAPort, "each gets one");
  for (const ibv_wc& wc : came) {
    check(wc.status == IBV_WC_SUCCESS && wc.qp_num == all[wc.wr_id]->qp_num, "its own");
    check(std::memcmp(&in[wc.wr_id * (kGrh + kEach) + kGrh], &out[wc.wr_id], kEach) == 0,
          "the bytes");
  }
  ibv_destroy_ah(ah);

  all.push_back(ready_qp(a, cq.get(), 1));
  check(all.back()->qp_num >> 8 != port, "the port is full");
  check(opened.grown()[""] == 1, "the next one opens another");
}

TEST(UdMany, queue_pairs_share_a_socket_until_its_numbers_are_used_up) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_ENGINES", "1"}}, queue_pairs_on_one_socket),
              ::testing::ExitedWithCode(0), "");
}

// A peer with an address, a port and a number of its own, that says one thing.
class Peer {
 public:
  explicit Peer(uint32_t i)
      : address_(0x7f010001 + i / 250 * 256 + i % 250),  // 127.1.0.1 and so on
        fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own = at(address_, 0);
    socklen_t n = sizeof own;
    check(::bind(fd_, reinterpret_cast<sockaddr*>(&own), n) == 0, "bind");
    check(::getsockname(fd_, reinterpret_cast<sockaddr*>(&own), &n) == 0, "getsockname");
    number_ = make_qpn(ntohs(own.sin_port), static_cast<uint8_t>(1 + i % 254));
  }
  ~Peer() { ::close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void say(uint32_t to, const uint8_t* message) const {
    std::byte datagram[wire::WdpUd::kSize + kEach];
    const wire::WdpUd header{.q_key = QKey{kQKey},
                             .source = number_,
                             .destination = Qpn{to},
                             .msn = Msn{1},
                             .length = kEach};
    header.encode(datagram);
    std::memcpy(datagram + wire::WdpUd::kSize, message, kEach);
    const sockaddr_in there = at(INADDR_LOOPBACK, static_cast<uint16_t>(to >> 8));
    check(::sendto(fd_, datagram, sizeof datagram, 0, reinterpret_cast<const sockaddr*>(&there),
                   sizeof there) == static_cast<ssize_t>(sizeof datagram),
          "sendto");
  }
  uint32_t number() const { return number_.value(); }
  Gid gid() const { return Gid::from_ipv4(address_); }

 private:
  static sockaddr_in at(uint32_t address, uint16_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    a.sin_addr.s_addr = htonl(address);
    return a;
  }
  const uint32_t address_;
  const int fd_;
  Qpn number_;
};

// "Errors never produce packets. UD data has no handshake": nor is anything kept of who sent. A
// byte for each peer would be more than what is allowed here.
TEST(UdMany, nothing_is_kept_of_five_thousand_peers) {
  constexpr uint32_t kPeers = 5000;
  constexpr uint32_t kSettled = 1000;
  const Adapter a;
  const CqPtr cq = a.cq(16);
  const QpPtr qp = ready_qp(a, cq.get(), 4);
  std::vector<uint8_t> messages(kPeers + kEach);
  for (size_t i = 0; i < messages.size(); ++i) messages[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  std::vector<uint8_t> in(kGrh + kEach);
  const MrPtr mr = a.reg(in.data(), in.size());
  const Counted opened("ports_opened");
  const size_t before = descriptors();
  size_t in_use = 0;  // bytes that malloc has given out
  for (uint32_t i = 0; i < kPeers; ++i) {
    if (i == kSettled) in_use = mallinfo2().uordblks + mallinfo2().hblkhd;
    const Peer peer(i);
    ASSERT_EQ(post_recv(qp.get(), i, {sge(in.data(), in.size(), mr.get())}), 0);
    peer.say(qp->qp_num, &messages[i]);
    const auto came = collect(cq.get(), 1);
    ASSERT_EQ(came.size(), 1U) << i;
    ASSERT_EQ(came[0].wr_id, i);
    ASSERT_EQ(came[0].src_qp, peer.number());
    ASSERT_EQ(came[0].byte_len, kGrh + kEach);
    ibv_grh grh;
    std::memcpy(&grh, in.data(), sizeof grh);
    ASSERT_EQ(gid_of(grh.sgid), peer.gid()) << i;
    ASSERT_EQ(std::memcmp(&in[kGrh], &messages[i], kEach), 0) << i;
  }
  EXPECT_LT(mallinfo2().uordblks + mallinfo2().hblkhd, in_use + (kPeers - kSettled));
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(opened.grown(), Counted::Kinds{});
}

}  // namespace
}  // namespace weft::test
