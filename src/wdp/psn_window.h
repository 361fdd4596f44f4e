// Which datagrams of a session have come: the last 4096 PSNs (spec/wdp-uc 3.2). Keeps
// duplicates and late copies from memory, and forged ones from moving the window away.
#pragma once

#include <array>
#include <optional>

#include "base/result.h"
#include "base/types.h"
#include "wdp/limits.h"
#include "wire/wdp_drop.h"

namespace weft::wdp {

class PsnWindow {
 public:
  // `first`: the PSN that the peer announced; none in a static session, where the first one that
  // comes begins. `restarts`: the peer may begin anew without a word, as a circuit does after a
  // reset; then a jump far back that persists is followed, too.
  explicit PsnWindow(std::optional<Psn> first, bool restarts = false);

  // May a datagram with this PSN be looked at? Call once for each that comes, for a jump that
  // persists is followed in the end (took_jump()).
  Result<Ok, wire::WdpDrop> check(Psn psn);
  // It has come. check() said yes.
  void mark(Psn psn);

  bool started() const { return started_; }
  Psn highest() const { return highest_; }
  // Came, or is too old to be asked about.
  bool seen(Psn psn) const;
  // The last check() moved the window to where the peer now is.
  bool took_jump() const { return jumped_; }

  // Datagrams that came once at least, and PSNs that were passed over.
  uint64_t unique() const { return unique_; }
  uint64_t lost() const;
  // The peer says how far it sent: what is missing at the end is lost, too. Words that come late
  // take nothing back.
  void peer_sent(Psn highest) {
    const int32_t d = peer_highest_ ? distance(*peer_highest_, highest) : 1;
    if (d > 0 || d < -kMostPsnJump) peer_highest_ = highest;
  }

 private:
  static constexpr size_t kWords = kPsnWindow / 64;
  uint64_t& word(Psn p) { return bits_[p.value() / 64 % kWords]; }
  static uint64_t bit(Psn p) { return uint64_t{1} << p.value() % 64; }
  bool far(Psn psn);
  void advance(Psn psn);

  const bool restarts_;
  bool started_;
  bool jumped_ = false;
  Psn highest_;
  std::optional<Psn> peer_highest_;
  Psn candidate_;
  uint32_t candidates_ = 0;
  uint64_t unique_ = 0;
  uint64_t passed_ = 0;  // PSNs that the peer has used, as far as is known
  uint64_t span_ = 0;    // of these, since the place where it began
  std::array<uint64_t, kWords> bits_;
};

}  // namespace weft::wdp
