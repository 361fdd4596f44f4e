// The Send that is arriving at a UC queue pair (spec/wdp-uc 3.7). There is one at a time: a
// newer message takes the receive of an older one that is incomplete, and nobody hears of the older
// one.
#pragma once

#include "base/io_vec.h"
#include "wdp/counters.h"
#include "wdp/limits.h"
#include "wdp/msn_window.h"
#include "wdp/segment_map.h"
#include "wdp/uc_consumer.h"
#include "wire/wdp_data.h"

namespace weft::wdp {

class SendAssembly {
 public:
  SendAssembly(UcConsumer& consumer, UcCounters& counters)
      : consumer_(consumer), counters_(counters) {}

  // Its segments may be placed whatever is missing before them.
  bool is_open(Msn msn) const { return open_ && msn == header_.msn; }
  // Is this segment one that the open message waits for?
  bool waits_for(const wire::WdpData& d) const;

  // Opens a newer message, or finds that this one cannot be had; then says where the payload goes.
  Result<Ok, wire::WdpDrop> open(const wire::WdpData& d, PieceList& places);
  // The places that open() named cannot be reached: the receive says so.
  wire::WdpDrop unreachable();
  // The payload of open()'s segment is in its place. True when the message is complete.
  bool placed(const wire::WdpData& d);
  // Hands the complete message over; work::MemoryFault where the STag that it invalidates is not
  // the peer's to invalidate. The receive goes back then.
  Result<Ok, work::MemoryFault> deliver();

  // An immediate takes the receive of an incomplete Send, which is thereby given up (rule 6); else
  // the next one. False when there is none.
  bool take_receive(work::Receive& out);
  // The peer begins anew.
  void restart();
  // Writes and Reads may follow a Send for so long that the numbers of Sends come round again: one
  // that has left the window of messages is not the newest any more (spec/wdp-uc 3.4).
  void forget_stale(const MsnWindow& messages) {
    if (known_ && distance(header_.msn, messages.highest()) >= kMsnWindow) restart();
  }
  // The message will never be complete: its receive goes back to its queue.
  void give_back_receive();
  void trim() {
    if (open_) return;
    came_.release();
    receive_.clear();
  }

 private:
  Result<Ok, wire::WdpDrop> begin(const wire::WdpData& d);
  bool agrees(const wire::WdpData& d) const;
  bool next_receive();
  void give_up();

  UcConsumer& consumer_;
  UcCounters& counters_;
  bool known_ = false;  // header_ is of the newest message, open or not
  bool open_ = false;
  wire::WdpDrop refused_{};  // why the newest message is not open
  wire::WdpData header_;     // of its first segment that came
  SegmentMap came_;
  bool has_receive_ = false;    // outside calls: while a message is open
  work::TakenReceive receive_;  // half a kilobyte: only where Sends come
};

}  // namespace weft::wdp
