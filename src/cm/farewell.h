// Gives up a connection whose start-up is done and that nobody wants any more.
//
// A peer that was promised an RTR frame gets it first, and the connection is closed a while later:
// a kernel with siw dies of one that closes between the MPA Reply and the RTR, or right behind that
// (wire.md 2.5 rule 6).
#pragma once

#include "cm/started.h"
#include "engine/engine.h"

namespace weft::cm {

class Farewell final : public engine::Source {
 public:
  // Closes now, or when it is time.
  static void give_up(engine::Token& token, Started started);

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override { tcp_.close(); }

 private:
  explicit Farewell(port::TcpStream tcp) : tcp_(std::move(tcp)) {}
  port::TcpStream tcp_;
};

}  // namespace weft::cm
