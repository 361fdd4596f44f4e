// A port and its program, and four strangers who say anything to it: what the target uc_listener is
// made of.
#pragma once

#include <set>

#include "fuzz/support/input.h"
#include "tests/support/wdp_node.h"

namespace weft::fuzz {

// New ones at the end, or the corpus changes its meaning.
enum class Start : uint8_t {
  idle,
  waiting,
  rep_sent,
  established,
  cookies_only,
  validated,
  calling,
  crossing,
  asking,
  told,
  closing,
  awaiting_a_call,
  called,
  told_to_wait,
  asked_for_cookie,
  call_taken,
  call_refused,
  request_refused,
  answered,
  peer_left,
  time_wait,
  token_rests,
  static_session,
};

class Strangers {
 public:
  explicit Strangers(Start start);

  struct Shape {
    uint8_t bits = 0;  // 1: between queue pairs; 2: with the cookie that it was given
    wire::CtlService service = wire::CtlService::uc;
    uint16_t max_payload = 1472;
    uint32_t token = 5;
    uint32_t xid = 77;
    size_t private_data = 0;
  };
  void request(size_t who, const Shape& shape);
  void say(size_t who, const wire::WdpCtl& c);
  void give(size_t who, Bytes datagram);
  void repeat(bool another, size_t who);
  // As the peer of a connection, or of a call of ours, says it.
  wire::WdpCtl session_message(size_t who, wire::CtlType type);

  // --- the program
  void accept(size_t i, size_t private_data);
  void reject(size_t i);
  void tell(size_t i);
  void call(size_t who, bool ib_style);
  void ask(size_t who);
  // A queue pair that has not called, and may be called by its number.
  void await_call();
  void start_static(size_t who);
  void later(Duration d);
  void close(size_t i);
  void remove(size_t i);

  void check();
  void finish();

 private:
  static constexpr size_t kCount = 4;
  // What is known of a stranger.
  struct Account {
    uint64_t came = 0;
    uint64_t went = 0;
    bool proven = false;  // said something that it can only have heard here
    std::set<SessionToken> tokens;
    HandshakeCookie cookie;
    HandshakeCookie cookie_back;  // in our own REQ to it
    wire::WdpCtl last_req{.type = wire::CtlType::req};
    Xid xid;  // of our own REQs to it
    SessionToken our_token;
  };
  void begin(Start start);
  bool reached(Start start);
  void say_session(wire::CtlType type);
  void listen();
  void hear(const wdp::Endpoint& to, const test::Buffer& d);
  wdp::Offer offer(size_t private_data = 0);
  test::WdpNode::Peer* peer(size_t i);

  Time now_ = Time::from_ns(1'000'000'000);
  test::WdpNode node_;
  Account accounts_[kCount];
  test::Buffer last_;
  size_t last_who_ = 0;
  test::Buffer text_ = test::pattern_bytes(512, 1);
};

}  // namespace weft::fuzz
