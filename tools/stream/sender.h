// `weft stream send`: keeps the packet clock of some streams, and finds its receiver again.
//
// Above 400 lines with its source: finding a receiver, sending and parting are three stages of one
// run, each of which goes on with what the one before it left for every stream.
#pragma once

#include <optional>
#include <set>

#include "stream/counters.h"
#include "stream/outlet.h"
#include "stream/pace.h"
#include "stream/report.h"
#include "stream/source.h"

namespace weft::stream {

struct SenderOptions {
  OutletOptions outlet;
  SourceOptions source;
  std::string receiver;      // "ADDRESS[:PORT]"
  std::string udp_receiver;  // the same, of plain UDP to a port for each stream, and no control
  uint32_t first_stream = 0;
  double packets_per_second = 0;  // of each stream; 0: as fast as it goes
  bool own_pace = false;          // that of the packets, where the source knows their times
  std::optional<uint64_t> first;  // number; else by the clock
  double duration = 0;            // seconds; 0: for ever
  uint64_t packets = 0;           // of each stream; 0: no limit
  double tick_us = 250;           // between two wake-ups at least
  double max_late_ms = 1000;      // older packets are skipped, of UDP and UC; 0: never
  double delay = 0;               // seconds from being connected to the first packet
  ReportOptions report;
};

inline constexpr int kAnswerMs = 15'000;  // for the receiver's words

class Sender {
 public:
  explicit Sender(const SenderOptions& options);
  // Until all is sent, or a signal. The exit status.
  int run();

 private:
  struct Stream {
    uint64_t next = 0;       // number
    uint64_t last = 0;       // the first that is not to be sent any more, of a limited run
    uint64_t end = 0;        // behind the highest number sent in this session
    uint64_t base = 0;       // what the clock said when it began
    uint64_t shift = 0;      // how far its numbers are ahead of the clock's
    uint64_t phase = 0;      // where its trains end
    int64_t stagger_ns = 0;  // so that the streams do not all send at the same moment
    uint64_t sent = 0;
    uint64_t skipped = 0;
    uint64_t passed = 0;        // of these, such as came with numbers of their own and too late
    std::set<uint64_t> landed;  // numbers in the blocks that the receiver keeps open
    bool done = false;
    bool begun = false;
    bool set_anew = false;  // its count begins anew in this session
    bool jumps = false;     // the next number does not go on from those of this session
  };
  // What a receiver says of its memory.
  struct ReceiverRing {
    uint32_t packets_per_block = 1;
    uint32_t open_blocks = 0;  // stay open behind the newest one
    uint64_t packets = 0;      // of all blocks; 0: nobody told
  };
  // `jump`: what comes next of a stream takes a session of its own.
  enum class Ending : uint8_t { complete, jump, lost };

  std::unique_ptr<Outlet> make_outlet() const;
  // Until it is connected or the run is over: false.
  bool find_receiver();
  void greet(Control& control);
  // What the receiver says next. Throws kit::Failure where this sender may try again, and another
  // std::runtime_error where the receiver refuses it.
  static nlohmann::json answer_of(Control& control, int most_ms);
  static ReceiverRing ring_of(const nlohmann::json& answer);
  std::vector<uint32_t> own_streams() const;
  static bool counts_anew(const Stream& s, uint64_t first);
  std::vector<uint64_t> numbers_after_jump();
  void adopt_first_numbers(const std::vector<uint64_t>& first);
  std::vector<uint64_t> wished_numbers();
  Ending stream_out();
  // Sends what is due of a stream; when it wants to be called again.
  int64_t serve(uint32_t i, int64_t now_ns);
  uint32_t send_some(uint32_t i, uint32_t most);
  // As send_some(), and notes how late each packet was.
  uint32_t send_what_is_due(uint32_t i, uint32_t packets);
  // How many packets from `number` on leave as one.
  uint64_t together(const Stream& s, uint64_t number) const;
  void skip_what_is_too_old(uint32_t i, int64_t now_ns);
  int64_t due_ns(uint32_t i, uint64_t number) const;
  void follow_clock_set_anew(uint32_t i, int64_t now_ns);
  void plan_own_pace(const std::vector<uint64_t>& first);
  void begin_own_pace(int64_t now_ns);
  // The first number of a stream that is not due yet.
  uint64_t due_before(const Stream& s, int64_t now_ns) const;
  // Whether the receiver closed the control connection. Throws std::runtime_error when it sent
  // this sender away.
  bool receiver_is_gone(int patience_ms);
  // Whether a number is further from those sent than the receiver's memory reaches.
  bool is_jump(const Stream& s, uint64_t number) const;
  // Whether the receiver has no place for it any more. Of sources with numbers of their own.
  bool too_late_to_land(Stream& s, uint64_t number) const;
  // `more`: a session of its own follows at once.
  void say_goodbye(bool more);
  bool over(int64_t now_ns) const;
  void show_now_and_then(int64_t now_ns);
  Snapshot snapshot() const;

  SenderOptions options_;
  Report report_;
  const std::unique_ptr<Source> source_;
  std::unique_ptr<Outlet> outlet_;
  std::optional<Control> control_;
  std::vector<Stream> streams_;
  PacketClock clock_;
  std::optional<OwnPace> own_pace_;
  bool pace_begins_ = true;  // in this session
  Lateness lateness_;
  std::vector<Lateness> lateness_of_;  // each stream
  bool ever_connected_ = false;
  bool own_numbers_;
  uint64_t train_ = 1;  // packets of a stream that leave at once
  ReceiverRing ring_;
  uint64_t connections_ = 0;
  Faults faults_before_;          // before the first packet
  std::optional<Faults> faults_;  // and from then on to the last one
  nlohmann::json counts_;         // what the receiver counted, at the end
  int64_t sending_since_ns_ = 0;  // the first packet of the first connection; 0 before it
  int64_t left_ns_ = 0;           // when the last one left so far, of those with a pace
  int64_t sent_until_ns_ = 0;     // that, of a run that came to its end
  int64_t start_ns_ = 0;
  int64_t shown_ns_ = 0;
};

}  // namespace weft::stream
