// Holds a connection whose start-up is done while no queue pair is at hand for it: until the
// program brings its own along, or for good when it uses the connection for its private data alone,
// as UCX does. Hears the peer's first word, and when it goes away.
#pragma once

#include "cm/started.h"
#include "engine/engine.h"

namespace weft::cm {

class ParkedConnection;
// Engine holder calls.
class ParkedConnectionHandler {
 public:
  virtual ~ParkedConnectionHandler() = default;
  // The first bytes of the peer's stream are there. Told once.
  virtual void parked_connection_heard(engine::Token& token) = 0;
  // The peer closed, or the connection broke. The parked connection is gone.
  virtual void parked_connection_lost(engine::Token& token) = 0;
};

class ParkedConnection final : public engine::EventHandler {
 public:
  // The engine owns it.
  static ParkedConnection& start(engine::Token& token, ParkedConnectionHandler& handler,
                                 Started started);
  // Gives the connection back, with what the peer has sent meanwhile. The parked connection is
  // gone.
  Started release(engine::Token& token);
  // Of the Initiator, once: its program is ready, and without a queue pair. Tells the peer, where
  // it waits for that (spec/mpa 2.9). Throws std::bad_alloc.
  void say_ready();
  // Closes. The parked connection is gone.
  void close(engine::Token& token);

  void on_ready(engine::Token& token, bool readable, bool writable) override;
  void on_deadline(engine::Token&) override {}
  void on_doorbell(engine::Token&) override {}
  void abandon_in_child() override { started_.tcp.close(); }

 private:
  ParkedConnection(ParkedConnectionHandler& handler, Started started)
      : handler_(handler), started_(std::move(started)) {}
  void send(std::span<const IoVec> pieces);
  bool stream_has_begun() const;

  ParkedConnectionHandler& handler_;
  Started started_;
  bool heard_ = false;
};

}  // namespace weft::cm
