#include "drive/silence.h"

#include <algorithm>
#include <string>

#include "base/log.h"
#include "engine/runtime.h"

namespace weft::drive {
namespace {

SilentPeers& of_process() {
  static SilentPeers peers;
  return peers;
}

const char* happening(stats::Silence what) {
  switch (what) {
    case stats::Silence::connecting:
      return "does not answer an attempt to connect over TCP";
    case stats::Silence::stream:
      return "acknowledges nothing of what was sent over TCP";
    case stats::Silence::datagrams:
      return "answers nothing over UDP";
  }
  return "answers nothing";
}

const char* causes(stats::Silence what) {
  switch (what) {
    case stats::Silence::connecting:
      return "a firewall drops it, the host is down, or the path carries less than the interface's "
             "MTU";
    case stats::Silence::stream:
      return "the path carries less than the interface's MTU and nobody says so, a firewall drops "
             "packets, or the host is gone";
    case stats::Silence::datagrams:
      return "a firewall drops UDP, the host is gone, or its program does not run";
  }
  return "";
}

}  // namespace

bool SilentPeers::worth_a_warning(const Gid& peer, Time now) {
  // Another thread is just saying something of the kind; a child of fork(2) may find it so for
  // ever.
  if (busy_.test_and_set(std::memory_order_acquire)) return false;
  const auto known =
      std::find_if(told_.begin(), told_.end(), [&](const Told& t) { return t.peer == peer; });
  const auto place = known != told_.end()
                         ? known
                         : std::min_element(told_.begin(), told_.end(),
                                            [](auto& a, auto& b) { return a.at < b.at; });
  const bool worth = now - place->at >= kAgain;
  if (worth) *place = {peer, now};
  busy_.clear(std::memory_order_release);
  return worth;
}

void report_silence(Token& token, stats::Silence what, const port::Address& peer) {
  stats::count(token.runtime().counters().peer_silent, what);
  if (!log::enabled(log::Level::warn)) return;
  const bool worth = of_process().worth_a_warning(peer.gid(), token.now());
  const log::Level level = worth ? log::Level::warn : log::Level::info;
  if (!log::enabled(level)) return;
  log::write(level,
             "%s %s for 3 s or more. Likely: %s. 'weft doctor --listen' there and 'weft doctor "
             "--peer %s' here find out",
             peer.to_string().c_str(), happening(what), causes(what),
             peer.gid().to_string().c_str());
}

}  // namespace weft::drive
