// Takes connections off a listening socket and hands each one's start-up to a handler. Bounds how
// many may be half open; when others wait, the host that has the most of them gives one up.
#pragma once

#include "cm/passive_start.h"
#include "port/tcp_listener.h"

namespace weft::cm {

class Acceptor final : public engine::EventHandler, private PassiveStartHandler {
 public:
  static constexpr size_t kMostHalfOpen = 256;  // spec/threats 3

  // The engine owns it. `listener` stays its owner's and must outlive the acceptor.
  static Acceptor& start(engine::Token& token, PassiveStartHandler& handler,
                         const port::TcpListener& listener);
  // Leaves connections in the kernel's queue, or takes them again.
  void pause(engine::Token& token, bool on);
  // Stops accepting; connections that have not said anything are closed. The acceptor is gone
  // afterwards.
  void stop(engine::Token& token);

  void on_ready(engine::Token& token, bool readable, bool writable) override;
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token& token) override;
  void abandon_in_child() override { accepted_.reset(); }

 private:
  Acceptor(PassiveStartHandler& handler, const port::TcpListener& listener)
      : handler_(handler), listener_(listener) {
    half_open_.reserve(kMostHalfOpen);
  }
  void request_came(engine::Token& token, PassiveStart& start,
                    const mpa::Responder::Request& request) override;
  void start_gone(engine::Token& token, PassiveStart& start) override;
  void count_no_memory(engine::Token& token) override { handler_.count_no_memory(token); }
  void left(engine::Token& token, PassiveStart& start);
  bool make_room(engine::Token& token);
  void listen_or_not(engine::Token& token);
  void rest(engine::Token& token, stats::AcceptPause why);

  PassiveStartHandler& handler_;
  const port::TcpListener& listener_;
  std::vector<PassiveStart*> half_open_;     // oldest first
  Time full_until_;                          // as far as is known; others may leave before
  std::optional<port::TcpStream> accepted_;  // and there was no memory to go on with it
  bool paused_ = false;
};

}  // namespace weft::cm
