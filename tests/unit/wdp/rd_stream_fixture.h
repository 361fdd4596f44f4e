// Two hosts with one end each of a connection over a channel (spec/wdp-rd 7).
#pragma once

#include "tests/unit/wdp/rd_two_nodes.h"
#include "wdp/rd_stream.h"

namespace weft::wdp {

inline constexpr size_t kMost = 1412;

// One end of a connection.
struct RdStreamEnd final : RdStreamOwner {
  RdStreamEnd(test::RdNode& on, uint8_t index, uint32_t session)
      : node(on),
        offer{.qpn = make_qpn(test::RdNode::kPort, index), .session = session},
        stream(on.socket.channels(), *this, offer) {}
  void stream_changed() override { ++changes; }
  bool bytes_came(Bytes bytes, Time) noexcept override {
    if (!takes_at_once) return false;
    taken.insert(taken.end(), bytes.begin(), bytes.end());
    return true;
  }
  void replied(Bytes frame) override {
    reply.assign(frame.begin(), frame.end());
    if (on_reply) on_reply();
  }

  void begin(const RdStreamEnd& peer) {
    stream.begin(peer.offer, {.to = peer.node.address, .from = node.address.address}, kMost);
  }
  size_t send(const test::Buffer& bytes) {
    const IoVec one{const_cast<std::byte*>(bytes.data()), bytes.size()};
    return stream.send({&one, 1}).bytes;
  }
  test::Buffer read(size_t most = size_t{4} << 20) {
    test::Buffer all(most);
    const IoVec one{all.data(), all.size()};
    all.resize(stream.read({&one, 1}).bytes);
    return all;
  }

  test::RdNode& node;
  const wire::RdOffer offer;
  RdStream stream;
  int changes = 0;
  bool takes_at_once = false;
  test::Buffer taken;
  test::Buffer reply;
  std::function<void()> on_reply;
};

struct RdStreamTest : RdTwoNodes {
  void open() {
    p.begin(q);
    q.begin(p);
    a.open(p.stream.path(), now);
    ASSERT_TRUE(p.stream.has_channel());
  }
  uint64_t drops(test::RdNode& of, wire::WdpDrop why) {
    return of.socket.channels().drops().of(why);
  }

  RdStreamEnd p{a, 3, 0x1111};
  RdStreamEnd q{b, 5, 0x2222};
};

}  // namespace weft::wdp
