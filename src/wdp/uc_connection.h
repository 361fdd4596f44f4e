// A UC queue pair's whole life with its peer: handshake, session, end (spec/wdp 4, spec/wdp 5).
// What the owner of a socket has one of for each UC queue pair.
//
//   connect()  ─► Handshake (active)  ─REP─►  UcSession, open
//   accept()   ─► Handshake (passive) ─REP─►  UcSession ─RTU, data─► open
//   static     ─────────────────────────────► UcSession, open
#pragma once

#include <memory>
#include <optional>

#include "wdp/handshake.h"
#include "wdp/uc_session.h"

namespace weft::wdp {

class UcConnection {
 public:
  // `random` is kept, and so is `windows`: of the socket.
  UcConnection(UcConsumer& consumer, Random& random, SendWindows& windows)
      : consumer_(consumer), random_(random), windows_(windows) {}
  UcConnection(const UcConnection&) = delete;
  UcConnection& operator=(const UcConnection&) = delete;

  // --- set-up: one of these
  void connect(const Offer& offer, const Path& path, Qpn destination, bool ib_style, Time now);
  // `handshake` stands in req_received: a REQ came, and somebody wants it.
  void accept(std::unique_ptr<Handshake> handshake, const Offer& offer, Time now);
  void start_static(const UcParameters& parameters, Time now);

  // --- datagrams in; token, address and index were right (demux.h)
  void received(Bytes datagram, Time now);
  // The same in two steps, for data that can go straight to its place: see UcSession::direct().
  bool direct(Bytes front, size_t size, PieceList& places);
  void direct_received(Time now);
  // Instead: the places cannot be reached, and the payload is lost.
  void direct_unreachable(Time now);
  // A REQ that belongs to the handshake that there is: it came again, or two queue pairs call each
  // other.
  void requested_again(const wire::WdpCtl& req, size_t size, bool validated, Time now);

  // --- trains out: see UcSession
  bool ready(Time now);
  void fill(Train& train, Time now);
  // fill() would write control, and no data.
  bool urgent(Time now) const;
  void llp_took_all(Time now);

  // --- time
  Time deadline() const;
  void tick(Time now);

  // --- the end
  // What is posted goes out first; where nothing stands yet, as abort().
  void close(Time now);
  // At once. The peer hears of it; the consumer hears nothing any more.
  void abort(uint32_t reason, Time now);

  // --- how it stands
  enum class State : uint8_t { setting_up, open, ended, failed };
  State state() const;
  // Why it failed; see Handshake::failure() and peer(). Null where there was none.
  const Handshake* handshake() const { return handshake_.get(); }
  // Null before there is one.
  UcSession* session() { return session_ ? &*session_ : nullptr; }
  const UcSession* session() const { return session_ ? &*session_ : nullptr; }
  // Since when the peer answers nothing, though it is called or asked; never where it is not so.
  Time unanswered_since() const;
  // Once it is being set up.
  const Path& path() const { return session_ ? session_->parameters().path : handshake_->path(); }
  // Nothing will be sent any more, and its token may go into quarantine.
  bool gone() const;
  const DropCounts& drops() const { return drops_; }

 private:
  void received_ctl(Bytes datagram, Time now);
  void confirm(Time now);
  void look_at_handshake(Time now);
  void stand();
  bool speaks() const;

  UcConsumer& consumer_;
  Random& random_;
  SendWindows& windows_;
  std::unique_ptr<Handshake> handshake_;
  std::optional<UcSession> session_;
  DropCounts drops_;  // of what came before there was a session, or was no message of one
};

}  // namespace weft::wdp
