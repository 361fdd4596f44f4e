// A UC session with its program, and a peer that says anything: what the target uc_receiver is made
// of, together with the ways to its states (uc_start.h). Every byte of a payload follows from its
// place in its message, so that whatever is delivered shows where it came from.
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

using wire::Opcode;
using wire::WdpClass;
using wire::WdpCommon;
using wire::WdpCtl;
using wire::WdpData;
using work::Arrival;
using work::Operation;
using work::Receive;
using work::SendWqe;
using work::Status;

class UcPeer {
 public:
  struct Shape {
    bool crc = false;
    bool is_static = false;
    bool probes_path = false;
  };
  explicit UcPeer(const Shape& shape);

  // What a Write, a Read Request or a Send with Invalidate names.
  enum class Region : uint8_t { writable, readable, foreign, gone, none };
  static constexpr uint64_t kBase = 0x10'0000;  // TO of each region's first byte
  static constexpr size_t kRegion = 600;
  static constexpr uint16_t kStride = 64;
  // Of a session that probes: what it tries first, and what is left after one step down.
  static constexpr size_t kProbed = 1472;
  static constexpr size_t kNarrowed = 1422;

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
  // A KAA or PROBEA answers what was asked last where `psn` is 0. What a PROBEA says of the size
  // follows from the reason.
  void say_ctl(wire::CtlType type, uint32_t reason, uint32_t psn, Bytes private_data);
  static constexpr uint32_t kSmallProbe = 0x0101;  // that reason
  // Answers a Read of ours that it heard of: segment `index` of it.
  void respond(unsigned which, uint32_t index);
  void repeat_last();

  // --- the program
  void post_receive(size_t size);
  void post(work::Operation op, size_t size, bool bad_key);
  void deregister(Region r);
  // The memory of a request of its own.
  void withdraw(uint64_t request);
  void resume();
  void later(Duration d);
  void close() { session_->close(now_); }
  void abort();
  void own_memory_lost();
  void hold(bool on) { session_->hold_requests(on); }
  void path_carries(size_t n) {
    kernel_carries_ = std::min(kernel_carries_, n);
    session_->path_carries(n);
  }
  void trim() { session_->trim(); }
  // Takes what the session says, and judges it.
  void listen(size_t trains);
  // All CTL, and no data.
  void hear_control();

  void check();
  void finish();

  // --- how it stands
  uint32_t next_msn() const { return msn_; }
  const wdp::UcSession& session() const { return *session_; }
  Time now() const { return now_; }
  // A request was at fault, and the program has not asked for more since (SQE).
  bool stopped() const { return host_.send_failures != resumed_; }
  int failures() const { return host_.send_failures; }
  // Requests are there, and nothing is to be sent.
  bool waits() { return posted_ > done_ && !session_->ready(now_); }
  bool said_goodbye() const { return goodbye_; }
  uint64_t requests_under_way() const { return posted_ - done_; }
  size_t reads_heard() const { return heard_.size(); }
  size_t questions() const { return questions_; }
  bool probed() const { return probe_.has_value(); }

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
  void received(const work::Receive& r, work::Status status, const work::Arrival& a);
  void sent(const work::SendWqe& w);
  bool answers_probe(wire::CtlType type) const {
    return type == wire::CtlType::probea && probe_.has_value();
  }
  uint32_t answered_by(wire::CtlType type) const;
  uint16_t probed_size(uint32_t reason) const;
  void freeze(const Area& a);
  void freeze_request(uint64_t request);
  void freeze_all();
  void account_for_flushed();
  void check_path();

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
  size_t questions_ = 0;
  std::optional<wdp::PathProbe::Probe> probe_;  // the last large one
  uint32_t small_answers_ = 0;                  // to its XID, since the path was last narrowed
  size_t carried_ = 0;                          // by the path, when that was last looked at
  size_t kernel_carries_ = SIZE_MAX;            // as it says
  uint32_t psn_ = kFirstPsn;
  uint32_t msn_ = 1;
  uint64_t posted_receives_ = 0;
  uint64_t done_receives_ = 0;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  std::optional<Psn> last_psn_;
  bool over_ = false;         // the program ended it
  bool goodbye_ = false;      // the peer did
  int resumed_ = 0;           // failures that the program has dealt with
  bool was_stopped_ = false;  // before the train that is judged
  struct Frozen {
    const Area* area;
    std::vector<std::byte> bytes;
  };
  std::vector<Frozen> frozen_;
  bool all_frozen_ = false;

  static constexpr uint32_t kFirstPsn = 1000;
  static constexpr uint32_t kRequestKeys = 0x4000;
};

}  // namespace weft::fuzz
