// How a queue pair reaches its peer, or its peers: one kind for each type of queue pair.
#pragma once

#include <memory>
#include <optional>

#include "engine/event_handler.h"
#include "rdmap/consumer.h"
#include "verbs/types.h"

namespace weft::verbs {

class QueuePair;

// Engine holder only. Owned by its queue pair.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  // The bell rang: requests were posted, or receives that somebody waits for.
  virtual void posted(engine::Token& token) = 0;
  // The program changed attributes or the state; it is neither RESET nor ERR.
  virtual void changed(engine::Token& token, QpState from) = 0;
  virtual void on_deadline(engine::Token&) {}

  virtual bool connected() const = 0;
  // In error already, and still has something to say.
  virtual bool draining() const { return false; }
  // Every request that was begun is complete.
  virtual bool idle() const = 0;

  // Orderly end: what is posted by now still goes out. Connected ones only.
  virtual void close(engine::Token& token) = 0;
  // What there is of a connection goes away. `abort`: the program gave it up; else it just leaves.
  virtual void drop(engine::Token& token, bool abort) = 0;
  // The queue pair is in error, or reset: requests of the program's are not looked at any more, nor
  // its receives.
  virtual void stopped(engine::Token& token) = 0;
  // In place of what the program asked for, what its peer and it agreed on; nothing changes where
  // there is no connection.
  virtual void tell_agreed(QpAttributes&) const {}
  // wr_id of the receive that a half-arrived message holds.
  virtual std::optional<uint64_t> abandon_receive() = 0;
};

// The one for the type of `qp`. Throws std::bad_alloc.
std::unique_ptr<Transport> make_transport(engine::Token& token, QueuePair& qp);

}  // namespace weft::verbs
