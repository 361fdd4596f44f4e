// A UC session with its program, and a peer that says anything: what the target uc_receiver is made
// of. Every byte of a payload follows from its place in its message, so that whatever is delivered
// shows where it came from.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <set>

#include "fuzz/rdmap/area.h"
#include "fuzz/support/input.h"
#include "tests/support/uc_host.h"
#include "wdp/uc_session.h"

namespace weft::fuzz {

class UcPeer {
 public:
  explicit UcPeer(bool crc, bool is_static);

  // What a Write, a Read Request or a Send with Invalidate names.
  enum class Region : uint8_t { writable, readable, foreign, gone, none };
  static constexpr uint64_t kBase = 0x10'0000;  // TO of each region's first byte
  static constexpr size_t kRegion = 600;
  static constexpr uint16_t kStride = 64;

  // --- the peer
  struct Segment {
    wire::Opcode opcode = wire::Opcode::send;
    uint32_t msn = 1;
    uint32_t mo = 0;
    uint32_t mlen = 0;
    uint16_t stride = kStride;
    int32_t psn = 0;  // beside the next one
    bool immediate = false;
    bool solicited = false;
    Region region = Region::writable;
    uint64_t offset = 0;  // of the message in the region
    uint32_t rid = 0;
    uint32_t range = 0;  // of a Read Request
    bool in_two_steps = false;
  };
  void say(const Segment& s);
  // The rest of a message, from byte `mo` on.
  void say_all(Segment s);
  // A header of the peer's making; token, index and payload are made right.
  void say_header(Bytes header, size_t size);
  void say_bytes(Bytes datagram) { give(datagram); }
  void say_ctl(wire::CtlType type, uint32_t reason, uint32_t psn, Bytes private_data);
  // Answers a Read of ours that it heard of: segment `index` of it.
  void respond(unsigned which, uint32_t index);
  void repeat_last();

  // --- the program
  void post_receive(size_t size);
  void post(rdmap::Operation op, size_t size, bool bad_key);
  void deregister(Region r);
  void later(Duration d);
  void close() { session_->close(now_); }
  void abort();
  void own_memory_lost();
  void hold(bool on) { session_->hold_requests(on); }
  void path_carries(size_t n) { session_->path_carries(n); }
  void trim() { session_->trim(); }
  // Takes what the session says, and judges it.
  void listen(size_t trains);

  void check();
  void finish();
  uint32_t next_msn() const { return msn_; }

 private:
  struct Heard {  // a Read Request of the session's
    ReadId id;
    uint32_t mlen = 0;
  };
  static std::byte byte_of(uint32_t msn, uint64_t at);
  void give(Bytes datagram);
  void give_in_two_steps(Bytes datagram);
  void note(const wire::WdpData& d);
  Stag stag(Region r);
  void judge(Bytes datagram);
  void received(const rdmap::Receive& r, rdmap::Status status, const rdmap::Arrival& a);
  void sent(const rdmap::SendWqe& w);

  SeededRandom random_{5};
  wdp::SendWindows windows_;
  Time now_ = Time::from_ns(1'000'000'000);
  test::UcHost host_;
  const bool crc_;
  std::optional<wdp::UcSession> session_;
  Area writable_{kRegion};
  Area readable_{kRegion};
  Area foreign_{kRegion};
  Stag gone_;
  std::list<Area> receives_;
  std::list<Area> sinks_;
  std::vector<Heard> heard_;
  // Of each message: which of its bytes were ever said to belong to it.
  std::map<uint32_t, std::set<uint32_t>> said_;
  std::vector<std::byte> last_;
  uint32_t asked_ = 0;  // by the session's last keepalive
  uint32_t psn_ = kFirstPsn;
  uint32_t msn_ = 1;
  uint64_t posted_receives_ = 0;
  uint64_t done_receives_ = 0;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  std::optional<Psn> last_psn_;
  bool over_ = false;  // the program ended it, or failed

  static constexpr uint32_t kFirstPsn = 1000;
};

}  // namespace weft::fuzz
