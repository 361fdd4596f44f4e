// Ends a connection whose Reply has come: the program has called it off, or the Reply cannot be
// accepted.
//
// A peer that was promised an RTR frame gets it first, kicks follow, and the connection is closed a
// while later: a kernel with siw crashes if the connection is closed between the MPA Reply and the
// RTR, or before siw has noticed the RTR (spec/siw 2.5, 2.6).
#pragma once

#include <optional>

#include "cm/started.h"
#include "engine/engine.h"
#include "mpa/fpdu_writer.h"
#include "wire/terminate.h"

namespace weft::cm {

class LingeringClose final : public engine::EventHandler {
 public:
  // Closes now, or when it is time; where there is an error to report, a Terminate says so first.
  static void give_up(engine::Token& token, Started started,
                      std::optional<wire::TermError> error = {});

  void on_ready(engine::Token&, bool, bool) override {}
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override { tcp_.close(); }

 private:
  LingeringClose(Started& started, std::optional<wire::TermError> error);
  void begin(engine::Token& token, mpa::Rtr rtr);
  void close(engine::Token& token);
  void drain();
  void say(mpa::TxBatch& batch);
  Time next() const;

  port::TcpStream tcp_;
  const std::optional<wire::TermError> error_;
  mpa::FpduWriter writer_;
  Time begun_;
  size_t kicks_ = 0;
  Time kicked_;  // the last time
};

}  // namespace weft::cm
