#include "drive/peer_wait.h"

namespace weft::drive {
namespace {

using namespace std::chrono_literals;
// As long as a peer that answers nothing has on a channel (spec/wdp-rd 7.4).
constexpr Duration kComesWithin = 15s;
constexpr Duration kLooksEach = 50ms;

}  // namespace

PeerWait& PeerWait::start(Token& token, wdp::RdStream& stream, DatagramDriver& driver,
                          GivenUp given_up) {
  auto owned = std::unique_ptr<PeerWait>{
      new PeerWait(stream, driver, std::move(given_up), token.now() + kComesWithin)};
  PeerWait& wait = *owned;
  token.runtime().add(token, std::move(owned), -1, false, false);
  token.runtime().set_deadline(token, wait, token.now() + kLooksEach);
  return wait;
}

void PeerWait::on_deadline(Token& token) {
  token.runtime().set_deadline(token, *this, token.now() + kLooksEach);
  const bool given_up = given_up_->load(std::memory_order_relaxed);
  if (token.now() < until_ && !given_up) return;
  if (!given_up) {
    // It may come yet.
    driver_.open_channel(token, stream_.path());
    stream_.turn_away();
  }
  stream_.peer_lost();
  driver_.settle(token);
}

}  // namespace weft::drive
