// A UC connection on a datagram socket: its deadlines, its turn to send, and its life after the
// queue pair has gone, until the peer knows and the token has rested (spec/wdp 5.2).
#pragma once

#include "drive/datagram_driver.h"
#include "drive/datagram_tally.h"
#include "drive/port_check.h"

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

// Engine holder only. Owned by the engine. What is done to the connection, or to the WdpSocket for
// it, is done directly, and then comes settle().
class UcLink final : public engine::EventHandler,
                     public DatagramSender,
                     private wdp::UcConnectionOwner,
                     private PortCheckOwner {
 public:
  // The link is on the driver's engine; both outlive the call of leave().
  static UcLink& start(Token& token, DatagramDriver& driver, UcLinkOwner& owner,
                       wdp::UcConsumer& consumer);
  ~UcLink() override;

  wdp::UcConnection& connection() { return connection_; }
  DatagramDriver& driver() { return driver_; }

  // Where it counts; by default for the engine.
  void count_in(stats::QpBlock& block) { counters_ = &block; }
  // Something was done to the connection.
  void settle(Token& token);
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
      : DatagramSender(false),
        driver_(driver),
        owner_(&owner),
        connection_(consumer, *this, driver.random(), driver.wdp_socket().windows()),
        engine_(token.runtime().counter_block()),
        counters_(&engine_.gone) {
    set_source(&connection_);
  }
  void reached() override { driver_.reached(*this); }
  void settled(Token& token) override;
  void end(Token& token);
  void look_for_answers(Token& token);
  void look_for_port(Token& token);
  void port_checked(Token& token, bool closed) override;
  void stop_check(Token& token);
  void publish_counts();

  DatagramDriver& driver_;
  UcLinkOwner* owner_;
  wdp::UcConnection connection_;
  bool ended_ = false;
  bool silence_told_ = false;
  PortCheck* check_ = nullptr;  // while the peer answers nothing
  stats::EngineBlock& engine_;
  stats::QpBlock* counters_;
  DropTally drops_;
  UcTally tally_;
  HandshakeTally handshake_;
};

}  // namespace weft::drive
