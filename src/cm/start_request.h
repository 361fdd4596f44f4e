// A peer's MPA Request that waits for an answer, whichever way it has come: on a TCP connection of
// its own (passive_start.h), or through a channel (channel_request.h).
#pragma once

#include "cm/started.h"
#include "engine/engine.h"
#include "mpa/startup.h"
#include "verbs/context.h"

namespace weft::cm {

// Engine holder calls. Gone after accept(), reject() and drop().
class StartRequest {
 public:
  // Where it comes from.
  virtual Gid sender() const = 0;
  // May its sender's process speak for that queue pair of its host (spec/addressing 5.6)?
  virtual bool speaks_for(const verbs::Context& context, Qpn peer) const = 0;

  // The connection; nothing when it broke. `rd`: where this end would have datagrams.
  virtual std::optional<Started> accept(engine::Token& token, const mpa::Offer& limits,
                                        Bytes private_data,
                                        const std::optional<wire::RdOffer>& rd) = 0;
  virtual void reject(engine::Token& token, Bytes private_data) = 0;
  // The handler wants to hear when it still waits then.
  virtual void wait_until(engine::Token& token, Time when) = 0;
  // Without a word.
  virtual void drop(engine::Token& token) = 0;

  // The handler's own.
  void* tag = nullptr;

 protected:
  ~StartRequest() = default;
};

// Why there is no answer to a frame that is no Request, or one that cannot be read.
stats::StartRefusal refusal_of(mpa::Responder::Error error);

}  // namespace weft::cm
