// One direction of a StreamLink: bytes that were written, bytes on the way, bytes that have
// arrived. Internal to sim/.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/random.h"
#include "sim/scheduler.h"
#include "sim/stream_options.h"

namespace weft::sim {

//   offset 0          read_          arrived_             written_
//   ------------------+--------------+--------------------+------->
//    gone to the      | readable     | on the way, cut in |  room: window - (written_ -
//    acknowledged_) reader           |              | segments           |
//
// Calls its callbacks from scheduled actions only.
class StreamPipe {
 public:
  struct Callbacks {
    std::function<void()> arrived;   // bytes, a FIN or a cut that is seen, for the reader
    std::function<void()> writable;  // room again after a short write, for the writer
    std::function<void(Cut)> cut;    // the cut was reached; comes before `arrived`
  };
  StreamPipe(Scheduler& scheduler, Random& random, const StreamOptions& options,
             Callbacks callbacks);

  // The writer's side.
  size_t write(std::span<const Bytes> pieces);
  size_t room() const;
  void write_fin();
  // No more from the writer; what is on the way travels on.
  void close_writer() { mode_ = Mode::closed; }

  // The reader's side.
  size_t readable() const { return arrived_ - read_; }
  size_t read(std::span<const MutableBytes> pieces);
  bool fin_arrived() const { return fin_arrived_; }

  // Faults.
  void corrupt(uint64_t offset, std::byte mask) { corrupt_[offset] ^= mask; }
  void cut_after(uint64_t bytes, Cut kind);
  // What is on the way is lost, and nothing follows it. With Cut::silence the writer fills its
  // window and waits, with the others what it writes vanishes (fin) or is refused (reset).
  void stop(Cut kind);
  // stop(Cut::fin), and the reader sees the FIN.
  void end();

  // How long something takes that leaves now.
  Duration travel();

 private:
  struct Segment {
    Time arrival;
    uint64_t end;  // offset behind its last byte
    bool fin;
  };
  enum class Mode : uint8_t { open, vanish, silent, closed };
  struct PendingCut {
    uint64_t after;
    Cut kind;
  };

  void send_segments();
  uint64_t segment_size(uint64_t left);
  void send(uint64_t end, bool fin);
  void arrive();
  void arrive_bytes(uint64_t end);
  void wake_writer();

  Scheduler& scheduler_;
  Random& random_;
  const StreamOptions& options_;
  Callbacks callbacks_;

  Mode mode_ = Mode::open;
  std::vector<std::byte> bytes_;  // [base_, written_)
  uint64_t base_ = 0;
  uint64_t read_ = 0;
  uint64_t arrived_ = 0;
  uint64_t sent_ = 0;  // put into segments
  uint64_t written_ = 0;
  uint64_t acknowledged_ = 0;
  std::deque<Segment> segments_;
  Time last_arrival_;
  bool fin_written_ = false;
  bool fin_arrived_ = false;
  bool writer_waits_ = false;
  std::map<uint64_t, std::byte> corrupt_;
  std::optional<PendingCut> cut_;
  Alarm arrival_;
  Alarm acknowledgement_;
  Alarm wake_writer_;
};

}  // namespace weft::sim
