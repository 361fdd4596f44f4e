// Gives up a connection whose start-up is done and that nobody wants any more.
//
// A peer that was promised an RTR frame gets it first, kicks follow, and the connection is closed a
// while later: a kernel with siw dies of one that closes between the MPA Reply and the RTR, or
// before it has noticed that (wire.md 2.5 rules 5 and 6).
#pragma once

#include "cm/started.h"
#include "engine/engine.h"
#include "mpa/fpdu_writer.h"

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
  void say(mpa::TxBatch& batch);
  Time next() const;

  port::TcpStream tcp_;
  mpa::FpduWriter writer_;
  Time begun_;
  size_t kicks_ = 0;
};

}  // namespace weft::cm
