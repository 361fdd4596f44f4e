// A queue pair of UD with memory for one message out and several in, and groups for it to be
// attached to.
#pragma once

#include <optional>

#include "tests/verbs/endpoint.h"

namespace weft::test {

using AhPtr = std::unique_ptr<ibv_ah, Freer<ibv_ah, ibv_destroy_ah>>;

struct Member {
  static constexpr size_t kGrh = 40;
  static constexpr size_t kSize = 500;
  static constexpr size_t kRoom = 1000;
  static constexpr size_t kRooms = 8;
  static constexpr QpOptions kUd{.type = IBV_QPT_UD};

  // In INIT alone, or ready to send and to receive.
  explicit Member(bool ready = true, uint32_t create_flags = 0)
      : memory((kRooms + 1) * kRoom),
        mr(a.reg(memory.data(), memory.size())),
        cq(a.cq(64)),
        qp(make_qp(a, cq.get(), {.type = IBV_QPT_UD, .create_flags = create_flags})) {
    if (ready) begin();
  }
  ~Member() {
    // One that is attached is not destroyed.
    if (qp == nullptr) return;
    for (const ibv_gid& g : groups) (void)detach(g);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  void begin() const {
    to_rtr(qp.get(), 0, {}, kUd);
    to_rts(qp.get(), kUd);
  }
  void to_state(ibv_qp_state state, int mask = IBV_QP_STATE) const {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    attr.qkey = kQKey;
    check_errno(ibv_modify_qp(qp.get(), &attr, mask), "ibv_modify_qp");
  }

  int attach(ibv_gid g) const {
    groups.push_back(g);
    return ibv_attach_mcast(qp.get(), &g, 0);
  }
  int detach(ibv_gid g) const { return ibv_detach_mcast(qp.get(), &g, 0); }
  AhPtr handle_to(const ibv_gid& g, uint8_t hop_limit = 0) const {
    ibv_ah_attr attr{.grh = {.dgid = g, .hop_limit = hop_limit}, .is_global = 1, .port_num = 1};
    AhPtr ah{ibv_create_ah(a.pd.get(), &attr)};
    check(ah != nullptr, "ibv_create_ah");
    return ah;
  }

  // The message: kSize bytes, others for each seed.
  static uint8_t byte_at(uint8_t seed, size_t i) {
    return static_cast<uint8_t>(i * 7 + (i >> 8) + size_t{seed} * 31 + 1);
  }
  // Returns when its completion is there.
  void send(ibv_ah* ah, uint8_t seed, uint32_t qpn = 0xffffff) {
    for (size_t i = 0; i < kSize; ++i) memory[i] = byte_at(seed, i);
    ibv_send_wr wr{};
    wr.wr_id = kSent;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = kQKey};
    check_errno(post_send(qp.get(), wr, {sge(memory.data(), kSize, mr.get())}), "post_send");
    const auto done = next();
    check(done && done->wr_id == kSent, "it is sent, and nothing else happens");
  }

  // Room `i` of kRooms; its completion has this wr_id.
  void receive(size_t i = 0) const {
    check_errno(post_recv(qp.get(), i, {sge(room(i), kRoom, mr.get())}), "post_recv");
  }
  // The next completion alone; nothing where none comes within 10 s.
  std::optional<ibv_wc> next() const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{10};
    ibv_wc wc{};
    int n = 0;
    while ((n = ibv_poll_cq(cq.get(), 1, &wc)) == 0 && std::chrono::steady_clock::now() < until) {
    }
    return n == 1 ? std::optional{wc} : std::nullopt;
  }
  // The next completion is this message, in room `i`.
  bool hears(uint8_t seed, uint32_t source, size_t i = 0) const {
    const auto came = next();
    if (!came || came->status != IBV_WC_SUCCESS || came->wr_id != i ||
        came->byte_len != kGrh + kSize || came->src_qp != source) {
      return false;
    }
    for (size_t at = 0; at < kSize; ++at) {
      if (room(i)[kGrh + at] != byte_at(seed, at)) return false;
    }
    return true;
  }
  bool silent() const {
    ibv_wc none;
    return ibv_poll_cq(cq.get(), 1, &none) == 0;
  }
  const uint8_t* room(size_t i) const { return &memory[(i + 1) * kRoom]; }

  static constexpr uint64_t kSent = 77;
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
  mutable std::vector<ibv_gid> groups;  // asked for
};

// --- groups, each process's own, so that two at once do not hear each other

inline bool is_ipv4(const ibv_gid& g) {
  const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(g.raw, mapped, sizeof mapped) == 0;
}
// For either family, as rdma_cm's are.
inline ibv_gid any_group(uint8_t number = 0) {
  ibv_gid g{};
  g.raw[0] = 0xff;
  g.raw[1] = 0x12;
  const auto own = static_cast<uint32_t>(getpid());
  std::memcpy(&g.raw[8], &own, sizeof own);
  g.raw[15] = number;
  return g;
}
// One of IPv4, as ::ffff:239.x.y.z, or as RoCE writes it: ff0e::ffff:239.x.y.z.
inline ibv_gid ipv4_group(bool as_roce = false) {
  ibv_gid g{};
  if (as_roce) {
    g.raw[0] = 0xff;
    g.raw[1] = 0x0e;
  }
  const auto own = static_cast<uint32_t>(getpid());
  g.raw[10] = g.raw[11] = 0xff;
  g.raw[12] = 239;
  g.raw[13] = static_cast<uint8_t>(own >> 16 & 0x3f);
  g.raw[14] = static_cast<uint8_t>(own >> 8);
  g.raw[15] = static_cast<uint8_t>(own);
  return g;
}

}  // namespace weft::test
