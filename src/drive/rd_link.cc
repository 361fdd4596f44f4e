#include "drive/rd_link.h"

#include "config/options.h"

namespace weft::drive {
namespace {

// Before the next look whether the peer has all.
constexpr Duration kLastWords = std::chrono::milliseconds{2};

}  // namespace

RdLink::RdLink(Token& token, DatagramDriver& driver)
    : DatagramSender(config::options().ud_big),
      driver_(driver),
      channel_(driver.wdp_socket().channels(), *this, driver.random(),
               driver.wdp_socket().channels().setup()->window),
      engine_(token.runtime().counter_block()) {
  set_source(&channel_);
}

RdLink::~RdLink() = default;

RdLink& RdLink::start(Token& token, DatagramDriver& driver) {
  auto owned = std::unique_ptr<RdLink>{new RdLink(token, driver)};
  RdLink& link = *owned;
  token.runtime().add(token, std::move(owned), -1, false, false);
  driver.enter();
  return link;
}

void RdLink::on_deadline(Token& token) {
  if (ended_) return;
  token.runtime().guard(
      token, [&] { channel_.tick(token.now()); }, [&] { on_no_memory(token); });
  driver_.schedule(*this);
  driver_.settle(token);
}

void RdLink::settled(Token& token) {
  if (ended_) return;
  tally_.publish(channel_, engine_.counters);
  handshake_.publish(channel_.handshake(), engine_.counters);
  if (!channel_.is_gone()) {
    token.runtime().set_deadline(token, *this, channel_.deadline());
    // What was handed over does not end with the process.
    if (!channel_.sender().idle()) token.runtime().closes_at(token, token.now() + kLastWords);
    return;
  }
  ended_ = true;
  set_source(nullptr);
  driver_.remove(token, *this);
  driver_.leave(token, channel_);
  token.runtime().remove(token, *this);
}

}  // namespace weft::drive
