// A channel of reliable datagrams on a datagram socket: its deadlines and its turn to send, from
// its first datagram until it rests, or the peer knows of its end (spec/wdp-rd 2).
#pragma once

#include "drive/datagram_driver.h"
#include "drive/datagram_tally.h"
#include "drive/port_check.h"
#include "wdp/rd_channel.h"

namespace weft::drive {

// Engine holder only. Owned by the engine; ends by itself.
class RdLink final : public engine::EventHandler,
                     public DatagramSender,
                     private wdp::RdChannelOwner,
                     private PortCheckOwner {
 public:
  // The channel is yet to call, or to answer.
  static RdLink& start(Token& token, DatagramDriver& driver);
  ~RdLink() override;

  wdp::RdChannel& channel() { return channel_; }

  void on_ready(Token&, bool, bool) override {}
  void on_deadline(Token& token) override;
  void on_doorbell(Token&) override {}
  // The program has had its turn.
  void on_gathered(Token& token) override;
  void abandon_in_child() override {}

  // DatagramSender, EventHandler: what was to be sent is tried again; what came comes again.
  void on_no_memory(Token&) override { driver_.schedule(*this); }

 private:
  RdLink(Token& token, DatagramDriver& driver);
  void reached() override { driver_.reached(*this); }
  void small_messages_came(size_t bytes) override { driver_.came_in_small_ones(bytes); }
  void settled(Token& token) override;
  void port_checked(Token& token, bool closed) override;
  void keep_books(Token& token);
  void end(Token& token);
  void look_for_peer(Token& token);
  void look_for_called_port(Token& token);
  void stop_check(Token& token);
  Time next_look(Token& token);

  DatagramDriver& driver_;
  wdp::RdChannel channel_;
  bool ended_ = false;
  Time waits_since_ = Time::never();  // for the peer's word of what was said last
  bool says_goodbye_ = false;
  // Since the peer answers nothing: whether it has its port yet.
  PortCheck* check_ = nullptr;
  uint32_t checked_ = 0;  // after so many questions
  Time silent_since_ = Time::never();
  bool asked_tcp_ = false;  // the last time
  bool asked_ = false;      // before there was an answer to the call
  stats::EngineBlock& engine_;
  RdTally tally_;
  HandshakeTally handshake_;
};

}  // namespace weft::drive
