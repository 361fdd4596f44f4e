// A UC connection on a datagram socket: its deadlines, its turn to send, and its life after the
// queue pair has gone, until the peer knows and the token has rested (spec/wdp 5.2).
#pragma once

#include "drive/datagram_driver.h"
#include "drive/datagram_tally.h"

namespace weft::drive {

// The queue pair behind a link.
class UcLinkOwner {
 public:
  virtual ~UcLinkOwner() = default;
  // A visit is over in which completions or another state may have come up: publish them, look at
  // link.connection().state(). May leave the link.
  virtual void visited(Token& token, UcLink& link) = 0;
  // There was no memory for the connection. The link is gone.
  virtual void link_lost(Token& token, UcLink& link) = 0;
};

// Engine holder only. Owned by the engine.
class UcLink final : public engine::EventHandler, public DatagramSender {
 public:
  // The link is on the driver's engine; both outlive the call of leave().
  static UcLink& start(Token& token, DatagramDriver& driver, UcLinkOwner& owner,
                       wdp::UcConsumer& consumer);
  ~UcLink() override;

  wdp::UcConnection& connection() { return connection_; }
  DatagramDriver& driver() { return driver_; }

  // Where it counts; by default for the engine.
  void count_in(stats::QpBlock& block) { counters_ = &block; }
  // Calls the peer: WdpSocket::connect().
  void connect(Token& token, const wdp::Offer& offer, const wdp::Path& path, Qpn destination,
               bool ib_style);
  // Without a handshake: a static session, or one with itself. `parameters` without the token where
  // it is with itself: WdpSocket::start_static().
  void start_session(Token& token, wdp::UcParameters parameters, const wdp::Endpoint& from);
  // Answers one that called a listener: WdpSocket::accept(). False: it is not there any more.
  bool accept(Token& token, const wdp::Demux::RequestKey& key, const wdp::Offer& offer);

  // The program has posted requests.
  void posted(Token& token) { driver_.posted(token, *this); }
  // Something was done to the connection.
  void settle(Token& token);
  // Orderly end: what is posted by now goes out first.
  void close(Token& token);
  // The owner goes away; nobody calls it or its consumer any more. The link lives until the peer
  // has been told.
  void leave(Token& token);

  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token& token) override;
  void on_doorbell(Token& token) override { settle(token); }
  void on_idle(Token& token) override;
  void abandon_in_child() override {}

  // DatagramSender, EventHandler
  void on_no_memory(Token& token) override;

 private:
  UcLink(Token& token, DatagramDriver& driver, UcLinkOwner& owner, wdp::UcConsumer& consumer)
      : driver_(driver),
        owner_(&owner),
        connection_(consumer, driver.random(), driver.wdp_socket().windows()),
        engine_(token.runtime().counter_block()),
        counters_(&engine_.gone) {}
  bool ready(Token& token) override { return connection_.ready(token.now()); }
  void fill(Token& token, wdp::Train& train) override { connection_.fill(train, token.now()); }
  bool urgent(Token& token) override { return connection_.urgent(token.now()); }
  void llp_took_all(Token& token) override { connection_.llp_took_all(token.now()); }
  void path_carries(Token& token, size_t max_payload) override;
  void own_memory_lost(Token& token) override;
  void settled(Token& token) override;
  void end(Token& token);
  void look_for_answers(Token& token);
  void publish_counts();

  DatagramDriver& driver_;
  UcLinkOwner* owner_;
  wdp::UcConnection connection_;
  bool ended_ = false;
  bool silence_told_ = false;
  stats::EngineBlock& engine_;
  stats::QpBlock* counters_;
  DropTally drops_;
  UcTally tally_;
  HandshakeTally handshake_;
};

}  // namespace weft::drive
