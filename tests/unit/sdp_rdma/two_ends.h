// Two ends of a connection, on queue pairs of a test's own: what one end posts stays where it is
// until the test carries it to the other.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <vector>

#include "sdp/rdma/stream_in.h"
#include "sdp/rdma/stream_out.h"

// Memory is registered with no adapter. The key is the same for all.
#undef ibv_reg_mr
extern "C" {
inline __attribute__((used)) ibv_mr* ibv_reg_mr(ibv_pd* pd, void* at, size_t bytes, int) {
  return new ibv_mr{.pd = pd, .addr = at, .length = bytes, .lkey = 7, .rkey = 8};
}
inline __attribute__((used)) ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* at, size_t bytes, uint64_t,
                                                      unsigned) {
  return ibv_reg_mr(pd, at, bytes, 0);
}
inline __attribute__((used)) int ibv_dereg_mr(ibv_mr* mr) {
  delete mr;
  return 0;
}
}

namespace weft::sdp::testing {

// Byte `i` of a stream.
inline std::byte stream_byte(size_t i) {
  return static_cast<std::byte>((i * 131 + (i >> 8) * 17 + 5) & 0xff);
}

class End final : public Completions::Member {
 public:
  End() {
    device_.ops.post_send = [](ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr**) {
      static_cast<End*>(qp->qp_context)->post(*wr);
      return 0;
    };
    device_.ops.post_recv = [](ibv_qp* qp, ibv_recv_wr* wr, ibv_recv_wr**) {
      static_cast<End*>(qp->qp_context)->receives.push_back({*wr->sg_list, wr->wr_id});
      return 0;
    };
    qp_.context = &device_;
    qp_.qp_context = this;
    id_.qp = &qp_;
    id_.pd = &domain_;
    link.queue_pair().own(&id_);
  }
  ~End() override = default;
  void on_mail() override {}

  void allocate(uint32_t receive_bytes = 0) {
    ASSERT_TRUE(out.allocate(&domain_));
    ASSERT_TRUE(in.allocate(&domain_, receive_bytes));
  }
  void open(const End& peer) {
    out.limit_message(Link::kMessage);
    link.open({.own_bufs = in.count_posted(),
               .peer_bufs = peer.in.count_posted(),
               .own_receive_size = Link::kMessage,
               .peer_receive_size = Link::kMessage});
  }

  // As many of the next bytes of the stream as there is room for, up to so many. Returns how many.
  size_t fill(size_t most) {
    size_t done = 0;
    while (done < most) {
      const MutableBytes room = out.room();
      if (room.empty()) break;
      const size_t n = std::min(room.size(), most - done);
      for (size_t i = 0; i < n; ++i) room[i] = stream_byte(filled_ + i);
      filled_ += n;
      done += n;
      out.filled(static_cast<uint32_t>(n));
    }
    return done;
  }
  // Takes all that was received.
  std::vector<std::byte> drain() {
    std::vector<std::byte> all(in.received().bytes());
    (void)in.received().peek(all);
    in.take(all.size());
    return all;
  }

  // The oldest request that was posted takes place, and completes at both ends.
  std::optional<Violation> carry_one(End& peer) {
    const Posted request = std::move(posted.front());
    posted.pop_front();
    using Work = QueuePair::Work;
    auto* const here = reinterpret_cast<std::byte*>(request.piece.addr);
    auto* const there = reinterpret_cast<std::byte*>(request.remote);
    QueuePair& pair = link.queue_pair();
    switch (request.opcode) {
      case IBV_WR_RDMA_READ:
        std::memcpy(here, there, request.piece.length);
        pair.completed(Work::read, true);
        in.on_read();
        return std::nullopt;
      case IBV_WR_RDMA_WRITE:
        std::memcpy(there, here, request.piece.length);
        pair.completed(Work::write, true);
        return std::nullopt;
      default:
        break;
    }
    const bool data = request.message.empty();
    const Bytes message = data ? Bytes{here, request.piece.length} : Bytes{request.message};
    const auto violation = peer.receive(message);
    pair.completed(data ? Work::data : Work::control, true);
    if (data) out.completed();
    return violation;
  }
  std::optional<Violation> receive(Bytes message) {
    const Receive buffer = receives.front();
    receives.pop_front();
    std::copy(message.begin(), message.end(), reinterpret_cast<std::byte*>(buffer.piece.addr));
    link.queue_pair().completed(QueuePair::Work::receive, true);
    return in.on_message(static_cast<uint8_t>(buffer.wr_id), static_cast<uint32_t>(message.size()));
  }

  struct Receive {
    ibv_sge piece{};
    uint64_t wr_id = 0;
  };
  struct Posted {
    ibv_wr_opcode opcode{};
    ibv_sge piece{};
    uint64_t remote = 0;
    std::vector<std::byte> message;  // what was sent inline
  };

  Link link{*this};
  StreamOut out{link};
  StreamIn in{link};
  std::deque<Receive> receives;
  std::deque<Posted> posted;

 private:
  void post(const ibv_send_wr& wr) {
    Posted& request = posted.emplace_back();
    request.opcode = wr.opcode;
    request.piece = *wr.sg_list;
    request.remote = wr.wr.rdma.remote_addr;
    if ((wr.send_flags & IBV_SEND_INLINE) == 0) return;
    const auto* const at = reinterpret_cast<const std::byte*>(request.piece.addr);
    request.message.assign(at, at + request.piece.length);
  }

  ibv_context device_{};
  ibv_qp qp_{};
  ibv_pd domain_{};
  rdma_cm_id id_{};
  size_t filled_ = 0;
};

class TwoEnds : public ::testing::Test {
 protected:
  void SetUp() override {
    one.allocate();
    other.allocate();
    one.open(other);
    other.open(one);
  }

  // Until neither has anything to say.
  void carry_all() {
    do {
      while (!one.posted.empty()) EXPECT_FALSE(one.carry_one(other).has_value());
      while (!other.posted.empty()) EXPECT_FALSE(other.carry_one(one).has_value());
      one.out.send();
      other.out.send();
    } while (!one.posted.empty() || !other.posted.empty());
  }
  static bool are_stream(const std::vector<std::byte>& bytes, size_t from = 0) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != stream_byte(from + i)) return false;
    }
    return true;
  }

  End one;
  End other;
};

}  // namespace weft::sdp::testing
