// A UC session that stands: the protocol core of a UC queue pair (spec/wdp-uc 3, spec/wdp-uc 5). No
// I/O, no threads, no clock: datagrams, time and posted work come in; trains of datagrams,
// completions and a deadline go out.
//
//                   +------------------------- UcSession ---------------------------+
//   datagrams in -> | UcReceivePath  (windows, Resequencer, Send- and WriteAssembly)| -> Consumer:
//                   |      |  |                                                     |    receives
//                   |      |  +-> ReadResponder --+                                 |
//                   |      +----> ReadRequester --+-> UcWriter                      |
//   trains out   <- | SessionControl, UcSendPath -+                                 | <- Consumer:
//                   +---------------------------------------------------------------+    send queue
//
// Whoever owns the socket has seen to it that datagrams bear the session's token and come from its
// address (demux.h).
#pragma once

#include "wdp/read_requester.h"
#include "wdp/read_responder.h"
#include "wdp/send_window.h"
#include "wdp/session_control.h"
#include "wdp/uc_receive_path.h"
#include "wdp/uc_send_path.h"

namespace weft::wdp {

// Above 400 lines with its source: the parts meet here, and each event passes several.
class UcSession final : private SendWindow::Waiter {
 public:
  // `random` is for RIDs and XIDs, and used here alone, as is `windows`: of the socket.
  UcSession(UcConsumer& consumer, const UcParameters& parameters, Random& random,
            SendWindows& windows, Time now);
  UcSession(const UcSession&) = delete;
  UcSession& operator=(const UcSession&) = delete;

  // --- datagrams in
  // A data datagram, class 1. `common`: of the datagram.
  void received(const wire::WdpCommon& common, Bytes datagram, Time now);
  void received(const wire::WdpCtl& ctl, Time now);
  // For who reads the header before the payload: `front` has the first WdpData::kLook bytes of a
  // datagram of `size` bytes, or all of it. True: the payload belongs into `places`, and then comes
  // direct_received(). False: the whole datagram belongs into received(). So it is wherever there
  // is a CRC: it decides before anything is placed, or a damaged header could name another place.
  bool direct(const wire::WdpCommon& common, Bytes front, size_t size, PieceList& places);
  void direct_received(Time now);
  // Instead: the places cannot be reached, and the payload is lost.
  void direct_unreachable(Time now);

  // --- trains out: as TrainSource says, for its UcConnection
  bool ready(Time now);
  void fill(Train& train, Time now);
  bool urgent(Time now) const { return control_.ready(now); }
  void llp_took_all(Time now);
  void path_carries(size_t max_payload);
  void own_memory_lost(Time now);

  // --- time
  Time deadline() const;
  void tick(Time now);

  // --- the adapter
  // What the handshake took, there and back, for who did not know it when the session was made.
  void met(std::optional<Duration> round_trip);
  // Until this says so nothing but CTL goes out: the handshake is not through.
  void open();
  bool is_open() const { return open_; }
  // Orderly end: what is posted by now goes out, then DREQ.
  void close(Time now);
  // At once: DREQ.
  void abort(uint32_t reason, Time now);
  // Nobody has the port of a peer that answers nothing: it is lost.
  void port_closed() { handle(control_.port_closed()); }
  void hold_requests(bool on) { send_path_.hold(on); }
  // The consumer flushes its send queue, as after send_failed(); what it posts later goes out
  // again.
  void stop_requests();
  void resume_requests() { send_path_.resume(); }
  bool requests_idle() const { return send_path_.idle(); }
  // The consumer goes away; the session lives on until its DREQ is answered.
  void detach() {
    consumer_gone_ = true;
    Waiter::unlink();
  }
  // That of a half-arrived message.
  void give_back_receive() { receive_path_.give_back_receive(); }
  // Nothing is left to do; the token may be used anew (it was kept for 2 s).
  bool gone() const { return control_.state() == SessionControl::State::gone; }
  bool ended() const { return !stands() && !peer_leaves(); }
  void trim();

  const UcParameters& parameters() const { return parameters_; }
  const UcCounters& counters() const { return counters_; }
  // Datagrams of the peer that never came, as far as later ones or its CTL show.
  uint64_t lost() const { return receive_path_.psns().lost(); }
  // Those that came, copies not counted.
  uint64_t unique() const { return receive_path_.psns().unique(); }
  const Rtt& rtt() const { return rtt_; }
  // See SessionControl.
  Time unanswered_since() const { return control_.unanswered_since(); }

 private:
  static constexpr Duration kLinger = 1s;

  bool stands() const { return control_.state() == SessionControl::State::open; }
  // It has said goodbye. Its last data is taken, and nothing is said to it any more.
  bool peer_leaves() const { return control_.state() == SessionControl::State::peer_left; }
  bool active() const { return !consumer_gone_ && !ended(); }
  bool speaks() const { return !consumer_gone_ && stands() && open_; }
  void see_peer_off(Time now);
  void settle(Time now);
  void fill_requests(Train& train, Time now);
  bool may_send(Time now);
  void ask_if_due(Time now);
  void window_opened() override;
  // The window's deadlines are this session's, too.
  bool concerned() const { return Waiter::linked() || window_->is_open_question(question_); }
  void handle(SessionControl::Event event);
  void refused();
  void look_at_probe();
  void narrow(size_t max_payload);
  void end(work::StreamEnd::Kind kind, wire::TermError error = {});

  UcConsumer& consumer_;
  UcParameters parameters_;
  UcCounters counters_;
  Rtt rtt_;
  UcWriter writer_;
  SessionControl control_;
  ReadRequester requester_;
  ReadResponder responder_;
  UcSendPath send_path_;
  UcReceivePath receive_path_;
  std::shared_ptr<SendWindow> window_;
  uint32_t question_ = 0;  // of the window, that it was asked last by this session
  bool consumer_gone_ = false;
  bool open_ = false;
  bool answers_first_ = false;  // answers and own requests take turns
  bool closing_ = false;
  uint64_t sent_by_then_ = 0;  // datagrams, when close_by_ was set
  Time close_by_ = Time::never();
  wire::WdpData direct_;  // the header of the last direct()
};

}  // namespace weft::wdp
