// The counters, grouped by their writers. All members are cells, for table.cc gives each its name
// and tests/unit/stats checks that none is left out.
//
//   QpCounters      one for each queue pair; written by the holder of its engine
//   EngineCounters  one for each engine; written by its holder, but for those of the helper thread
//   DeviceCounters  one for the process; any thread, rarely
//
// Nothing is counted twice: what a reader sees of an engine is its own block and those of its queue
// pairs, gone ones included; of the device, that of all engines.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>

#include "base/gid.h"
#include "stats/cell.h"
#include "stats/reasons.h"
#include "wire/refusal.h"
#include "wire/term_errors.h"
#include "wire/wdp_drop.h"

namespace weft::stats {

// Messages by what the requester asks for.
enum class Kind : uint8_t { send, write, read, atomic };

// `weft bench rc` watches what an idle queue pair costs: a counter more here is 8 bytes more for
// each. What can do without belongs into EngineCounters.
struct QpCounters {
  std::array<Cell, 4> messages_sent;
  std::array<Cell, 3> bytes_sent;
  Cell fpdus_sent;
  std::array<Cell, 4> messages_received;
  std::array<Cell, 3> bytes_received;
  Cell fpdus_received;
  Cell rnr_sent;
  Cell rnr_received;
  Cell completion_errors;
  // UC and UD.
  Cell datagrams_lost;
  Cell datagrams_reordered;
  Cell datagrams_late;
  Cell datagrams_duplicate;
  Cell messages_incomplete;
  Cell messages_unreceived;

  void sent(Kind kind) { messages_sent[static_cast<size_t>(kind)].add(); }
  void sent(Kind kind, uint64_t bytes) { bytes_sent[static_cast<size_t>(kind)].add(bytes); }
  void received(Kind kind) { messages_received[static_cast<size_t>(kind)].add(); }
  void received(Kind kind, uint64_t bytes) { bytes_received[static_cast<size_t>(kind)].add(bytes); }
};

struct EngineCounters {
  // Turns.
  Cell polls;
  Cell polls_with_work;
  Cell sleeps;
  Cell helper_wakeups;
  Cell helper_turns;
  // System calls.
  Cell send_calls;
  Cell receive_calls;
  Cell epoll_wait_calls;
  Cell epoll_ctl_calls;
  Cell timer_calls;
  Cell sends_cut;
  Cell out_of_memory;
  Cell receives_empty;
  // Bytes.
  Cell bytes_sent_copied;
  Cell bytes_sent_in_place;
  Cell bytes_received_copied;
  Cell bytes_received_in_place;
  // Streams.
  Cell streams_opened;
  Cell streams_same_host;
  Cell streams_same_host_copying;
  Cell streams_by_udp;
  Cell wake_ups_sent;
  std::array<Cell, kSameHostRefusals> same_host_refused;
  std::array<Cell, kStreamEnds> stream_end;
  Cell kicks;
  Cell early_arrivals;
  std::array<Cell, wire::kRefusalCount> refused;
  std::array<Cell, wire::kTermErrorCount + 1> terminate_sent;
  std::array<Cell, wire::kTermErrorCount + 1> terminate_received;
  std::array<Cell, kErrorStatuses> completion_error;
  // Connections.
  Cell connections_accepted;
  std::array<Cell, kAcceptPauses> accept_paused;
  std::array<Cell, kStartRefusals> start_refused;
  Cell dials;
  Cell dials_connected;
  Cell dials_without_extension;
  Cell dials_with_revision_1;
  Cell channel_starts;
  Cell channel_starts_accepted;
  std::array<Cell, kDialEnds> dial_failed;
  std::array<Cell, kReplyRefusals> reply_refused;
  std::array<Cell, kCmRejections> cm_rejected;
  std::array<Cell, kBringUpRefusals> bring_up_refused;
  std::array<Cell, kBringUpAnswers> bring_up_answer;
  Cell bring_ups_given_up;
  std::array<Cell, kSilences> peer_silent;
  // Datagrams.
  Cell datagrams_sent;
  Cell datagrams_received;
  Cell datagrams_unsent;
  Cell datagrams_too_big;
  Cell socket_overruns;
  Cell gro_switches;
  std::array<Cell, wire::kWdpDropCount> datagram_dropped;
  std::array<Cell, kRejReasons> wdp_rejected;
  std::array<Cell, kCallEnds> wdp_call_failed;
  Cell datagrams_held;
  Cell messages_too_long;
  Cell uc_reads_answered;
  Cell uc_reads_failed;
  Cell uc_ranges_repeated;
  Cell uc_errors_sent;
  Cell uc_errors_received;
  Cell uc_paths_narrowed;
  Cell rd_datagrams_sent;
  Cell rd_datagrams_repeated;
  Cell rd_datagrams_lost;
  Cell rd_probes;
  Cell rd_datagrams_received;
  Cell rd_datagrams_reordered;
  Cell rd_datagrams_marked;
  Cell rd_marks_heard;
  Cell rd_messages_held;
  Cell rd_messages_given_up;
  Cell rd_messages_lost;
  Cell ud_messages_plain;
};

struct DeviceCounters {
  Cell queue_pairs_created;
  Cell queue_pairs_destroyed;
  Cell queue_pairs_hidden;
  Cell regions_registered;
  Cell registrations_refused;
  Cell completion_queue_overruns;
  Cell ports_opened;
  Cell ports_refused;
  Cell private_data_refused;
  std::array<Cell, kInjectedFaults> fault_injected;
};

template <class Reason, size_t N>
void count(std::array<Cell, N>& family, Reason why) {
  const auto i = static_cast<size_t>(why);
  if (i < N) family[i].add();
}

// The Terminate that a queue pair sent or got last.
struct LastTerminate {
  bool received = false;
  wire::TermError error;

  static constexpr uint32_t kThere = 1U << 31;
  static constexpr uint32_t kReceived = 1U << 30;
  uint32_t pack() const {
    return kThere | (received ? kReceived : 0) | static_cast<uint32_t>(error.layer) << 16 |
           static_cast<uint32_t>(error.etype) << 8 | error.code;
  }
  static LastTerminate unpack(uint32_t bits) {
    return {(bits & kReceived) != 0,
            {static_cast<wire::Layer>(bits >> 16 & 3), static_cast<uint8_t>(bits >> 8),
             static_cast<uint8_t>(bits)}};
  }
};

// What carries the bytes of a connection.
enum class Carrier : uint8_t {
  usual,      // TCP for RC, UDP for UC
  memory,     // RC through memory that both ends have (spec/same-host)
  datagrams,  // RC through a channel over UDP (spec/wdp-rd 7)
};

// Where the other end of a connection is.
struct Peer {
  Gid address;
  uint16_t port = 0;  // of TCP for RC, of UDP for UC
  Carrier carrier = Carrier::usual;
};

// The peer of a queue pair. One thread writes, any process reads.
class PeerCell {
 public:
  void set(const Peer& peer) {
    const auto words = peer.address.words();
    clear();
    // A reader that sees a new word sees the cleared state, too.
    for (size_t i = 0; i < words.size(); ++i) words_[i].store(words[i], std::memory_order_release);
    turn_ = (turn_ + 1) & kTurns;
    state_.store(
        kThere | static_cast<uint32_t>(peer.carrier) << kCarrierShift | turn_ << 16 | peer.port,
        std::memory_order_release);
  }
  // Of the one that is there: what it goes by turns out later.
  void set_carrier(Carrier carrier) {
    const uint32_t state = state_.load(std::memory_order_relaxed);
    if ((state & kThere) == 0) return;
    state_.store((state & ~(kCarrierMask << kCarrierShift)) | static_cast<uint32_t>(carrier)
                                                                  << kCarrierShift,
                 std::memory_order_relaxed);
  }
  void clear() { state_.store(0, std::memory_order_relaxed); }
  // Nothing if there is no connection, or if it changes just now.
  std::optional<Peer> value() const {
    const uint32_t state = state_.load(std::memory_order_acquire);
    if ((state & kThere) == 0) return {};
    std::array<uint64_t, 2> words{};
    for (size_t i = 0; i < words.size(); ++i) words[i] = words_[i].load(std::memory_order_acquire);
    if (state_.load(std::memory_order_relaxed) != state) return {};
    return Peer{.address = {std::bit_cast<std::array<uint8_t, 16>>(words)},
                .port = static_cast<uint16_t>(state),
                .carrier = static_cast<Carrier>(state >> kCarrierShift & kCarrierMask)};
  }

 private:
  static constexpr uint32_t kThere = 1U << 31;
  static constexpr unsigned kCarrierShift = 29;
  static constexpr uint32_t kCarrierMask = 3;
  static constexpr uint32_t kTurns = (1U << 13) - 1;
  std::array<std::atomic<uint64_t>, 2> words_{};
  std::atomic<uint32_t> state_{0};  // kThere, the carrier, the turn, the port; 0: none
  uint32_t turn_ = 0;               // the writer's
};

// A queue pair's place in the shared memory.
struct QpBlock {
  std::atomic<uint32_t> qpn{0};             // 0: free
  std::atomic<uint32_t> last_terminate{0};  // LastTerminate::pack(), or 0
  QpCounters counters;
  PeerCell peer;

  void terminate(const LastTerminate& t) {
    last_terminate.store(t.pack(), std::memory_order_relaxed);
  }
};
static_assert(sizeof(QpBlock) == 232);

// An engine's place in it.
struct EngineBlock {
  // Odd while counters move from a queue pair that goes to `gone`.
  std::atomic<uint64_t> sequence{0};
  EngineCounters counters;
  QpBlock gone;  // the sum of the queue pairs that are gone; their last words are counted here too
};

// The queue pair goes: what it counted stays with its engine, and its block is as new. The caller
// holds the engine.
void retire(QpBlock& block, EngineBlock& engine);

// Where a stream counts. The default is a place that nobody looks at.
struct Where {
  QpBlock* qp;
  EngineBlock* engine;
};
Where nowhere();

}  // namespace weft::stats
