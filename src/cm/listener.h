// A listening Id's TCP socket: takes the connections that come and hands each Request to its
// handler.
#pragma once

#include "cm/acceptor.h"

namespace weft::cm {

// Engine holder calls.
class ListenerHandler {
 public:
  virtual ~ListenerHandler() = default;
  // A peer wants to connect. The handler answers now, or hands the start over to whom it may
  // concern. What it has no memory for it begins before that.
  virtual void connection_requested(engine::Token& token, PassiveStart& start,
                                    const mpa::Responder::Request& request) = 0;
};

class Listener final : public engine::EventHandler, private PassiveStartHandler {
 public:
  // The engine owns it. `tcp` is bound, listens before the engine is let go, and stays its owner's,
  // who keeps it until stop(). Throws std::bad_alloc.
  static Listener& start(engine::Token& token, ListenerHandler& handler, port::TcpListener& tcp);
  // Leaves the peers that come in the kernel's queue, or takes them again.
  void pause(engine::Token& token, bool on) { acceptor_->pause(token, on); }
  // Takes no more connections; Requests that were handed on live on. The listener is gone.
  void stop(engine::Token& token);

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token&) override {}
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override { tcp_.close(); }

 private:
  Listener(ListenerHandler& handler, port::TcpListener& tcp) : handler_(handler), tcp_(tcp) {}
  void request_came(engine::Token& token, PassiveStart& start,
                    const mpa::Responder::Request& request) override;
  void start_gone(engine::Token&, PassiveStart&) override {}

  ListenerHandler& handler_;
  port::TcpListener& tcp_;
  Acceptor* acceptor_ = nullptr;  // until it has started
};

}  // namespace weft::cm
