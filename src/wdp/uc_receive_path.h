// The receiving half of a UC session: what becomes of a data datagram whose token, address and CRC
// are right (spec/wdp-uc 3). Wrong ones are dropped and counted; none of them ends anything.
//
//   PSN window ─ MSN window ┬─ Write                     place
//                           ├─ Write with immediate      place, note the segment ─┐ complete
//                           ├─ Send of the open message  place, note the segment ─┼─► Consumer
//                           ├─ Send of a newer message   Resequencer, then as above
//                           ├─ Read Request              Resequencer, ReadResponder
//                           └─ Read Response             ReadRequester
#pragma once

#include "wdp/error_reporter.h"
#include "wdp/resequencer.h"
#include "wdp/send_assembly.h"
#include "wdp/uc_parameters.h"
#include "wdp/write_assembly.h"

namespace weft::wdp {

class ReadRequester;
class ReadResponder;

class UcReceivePath {
 public:
  UcReceivePath(UcConsumer& consumer, const UcParameters& parameters, ReadRequester& requester,
                ReadResponder& responder, ErrorReporter& errors, UcCounters& counters);

  // `d` has passed the hard checks of spec/wdp-uc 2.3; `payload` is what stands behind its header.
  void received(const wire::WdpData& d, Bytes payload, Time now);

  // The same in two steps, for who can take the payload out of the kernel straight to its place
  // once the header is known. False: the whole datagram belongs into received(), also to be
  // dropped. Nothing is taken before the second step; but a receive whose own memory is gone ends
  // with the first.
  bool direct(const wire::WdpData& d, PieceList& places);
  // `d` was the header of the last direct(), and the payload is where that said.
  void direct_received(const wire::WdpData& d, Time now);
  // Instead: what that said cannot be reached, and the payload is lost.
  void direct_unreachable(const wire::WdpData& d);

  Time deadline() const { return resequencer_.deadline(); }
  void tick(Time now);

  // Something that the peer sent up to `last` may still come.
  bool misses(Psn last) { return resequencer_.misses(last, psns_); }
  // Nothing more will come: what waited for it waits no longer, and what lacks bytes is given up.
  void finish();

  void give_back_receive() { sends_.give_back_receive(); }
  void trim();

  const PsnWindow& psns() const { return psns_; }
  PsnWindow& psns() { return psns_; }

 private:
  using Verdict = Result<Ok, wire::WdpDrop>;

  // Where the payload comes from.
  struct Source {
    Bytes payload;
    bool in_place = false;  // direct_received()
  };
  Verdict accept(const wire::WdpData& d, const Source& source, Time now);
  Verdict dispatch(const wire::WdpData& d, const Source& source, bool in_order, Time now);
  Verdict write(const wire::WdpData& d, const Source& source, Time now);
  Verdict send(const wire::WdpData& d, const Source& source, bool in_order, Time now);
  Verdict send_in_turn(const wire::WdpData& d, const Source& source);
  Verdict hold(const wire::WdpData& d, const Source& source, Time now);
  Verdict target(const wire::WdpData& d, PieceList& places);
  bool put(const Source& source, const PieceList& places);
  Verdict put_write(const wire::WdpData& d, const Source& source, const PieceList& places);
  Verdict lose_target(const wire::WdpData& d);
  void begin_anew();
  void deliver_immediate(const wire::WdpData& d);
  void drain();

  UcConsumer& consumer_;
  const UcParameters& parameters_;
  ReadRequester& requester_;
  ReadResponder& responder_;
  ErrorReporter& errors_;
  UcCounters& counters_;
  PsnWindow psns_;
  MsnWindow messages_;
  Resequencer resequencer_;
  SendAssembly sends_;
  WriteAssembly writes_;
};

}  // namespace weft::wdp
