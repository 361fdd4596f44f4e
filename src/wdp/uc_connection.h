// A UC queue pair's whole life with its peer: handshake, session, end (spec/wdp 4, spec/wdp 5).
// What the owner of a socket has one of for each UC queue pair.
//
//   calls      ─► Handshake (active)  ─REP─►  UcSession, open
//   is called  ─► Handshake (passive) ─REP─►  UcSession ─RTU, data─► open
//   static     ─────────────────────────────► UcSession, open
//
// The WdpSocket begins it and brings its datagrams, the driver of the socket takes its trains.
#pragma once

#include <memory>
#include <optional>

#include "wdp/handshake.h"
#include "wdp/request_key.h"
#include "wdp/train_source.h"
#include "wdp/uc_session.h"

namespace weft::wdp {

// Who gives a connection its turns.
class UcConnectionOwner {
 public:
  virtual ~UcConnectionOwner() = default;
  // A datagram is for the connection, which takes it next. Then it may have something to say,
  // another deadline, another state.
  virtual void reached() = 0;
};

class UcConnection final : public TrainSource {
 public:
  // `random` is kept, and so is `windows`: of the socket.
  UcConnection(UcConsumer& consumer, UcConnectionOwner& owner, Random& random, SendWindows& windows)
      : consumer_(consumer), owner_(owner), random_(random), windows_(windows) {}
  UcConnection(const UcConnection&) = delete;
  UcConnection& operator=(const UcConnection&) = delete;

  // --- trains out
  bool ready(Time now) override;
  void fill(Train& train, Time now) override;
  bool urgent(Time now) const override;
  void llp_took_all(Time now) override;
  void path_carries(size_t max_payload) override;
  void own_memory_lost(Time now) override;

  // --- time
  Time deadline() const;
  void tick(Time now);

  // --- the end
  // What is posted goes out first; where nothing stands yet, as abort().
  void close(Time now);
  // Nobody has the port of a peer that answers nothing: a call has failed, a session is lost.
  void port_closed();
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
  // Since when it is worth to ask whether the peer has its port: neither a queue pair that calls
  // another, for it calls again, nor a static session wants to know. Or never.
  Time port_in_doubt_since() const;
  // Once it is being set up.
  const Path& path() const { return session_ ? session_->parameters().path : handshake_->path(); }
  // Nothing will be sent any more, and its token may go into quarantine.
  bool gone() const;
  const DropCounts& drops() const { return drops_; }

 private:
  friend class WdpSocket;
  // Where it stands in the socket's Demux. The WdpSocket sees to it.
  struct Place {
    SessionToken token;                 // 0: nowhere
    std::optional<RequestKey> request;  // that it has answered
  };

  // --- set-up, by the WdpSocket: one of these
  // A call of its own, or its answer to one.
  void begin(std::unique_ptr<Handshake> handshake, Time now);
  void start_static(const UcParameters& parameters, Time now);

  // --- datagrams in; token, address and index were right (demux.h)
  // `common`: of the datagram.
  void received(const wire::WdpCommon& common, Bytes datagram, Time now);
  // A REQ that belongs to the handshake that there is: it came again, or two queue pairs call each
  // other.
  void requested_again(const wire::WdpCtl& req, size_t size, bool validated, Time now);
  // Null before the handshake is through.
  UcSession* open_session() { return speaks() ? &*session_ : nullptr; }

  void received_ctl(const wire::WdpCommon& common, Bytes datagram, Time now);
  void confirm(Time now);
  void look_at_handshake(Time now);
  void stand();
  bool speaks() const;

  UcConsumer& consumer_;
  UcConnectionOwner& owner_;
  Random& random_;
  SendWindows& windows_;
  Place place_;
  std::unique_ptr<Handshake> handshake_;
  std::optional<UcSession> session_;
  DropCounts drops_;  // of what came before there was a session, or was no message of one
};

}  // namespace weft::wdp
