// What is to go wrong on purpose, as people write it: WEFT_FAULT, and what tests give to the
// simulator (docs/faults.md). Datagrams are lost, doubled, late and damaged; TCP carries all
// bytes in order whatever the network does, so streams know delays and odd cuts alone.
//
//   loss:0.01,burst:4,reorder:0.05,seed:7
//
// Words in any order, each once, `name:value`, between commas. A share is a number from 0 to 1,
// also as 1e-3 or 2%. A time is a number with ns, us, ms or s behind it. A direction is in, out or
// both.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace weft {

// In which direction a socket suffers; for a link of the simulator, as seen from its end A.
enum class FaultDirection : uint8_t { both, in, out };

// A value type; nothing goes wrong by default.
struct FaultSpec {
  double loss = 0;       // share of the datagrams that vanish
  double burst = 1;      // so many vanish in a row, on average; the share stays what it is
  double duplicate = 0;  // share that comes twice; the copy takes a way of its own
  double reorder = 0;    // share that takes up to reorder_delay longer, so that others overtake it
  Duration reorder_delay = std::chrono::microseconds{200};
  Duration delay{0};   // of every datagram; on streams of what comes or goes after a pause
  Duration jitter{0};  // added to it, 0 to this much; order is kept
  double corrupt = 0;  // share in which 1 to 3 bits are flipped
  double split = 0;    // share of the calls on a stream that move a part only
  FaultDirection direction = FaultDirection::both;
  uint64_t seed = 1;  // the same seed makes the same faults

  friend constexpr bool operator==(const FaultSpec&, const FaultSpec&) = default;

  bool late() const { return delay != Duration{0} || jitter != Duration{0}; }
  bool nothing_for_datagrams() const {
    return loss == 0 && duplicate == 0 && reorder == 0 && corrupt == 0 && !late();
  }
  bool nothing_for_streams() const { return split == 0 && !late(); }
  bool applies_to(FaultDirection one) const {
    return direction == FaultDirection::both || direction == one;
  }
  // The error is a sentence for the user. An empty text is a spec of nothing.
  static Result<FaultSpec, std::string> parse(std::string_view text);
  // In a form that parse() reads: what differs from the defaults.
  std::string to_string() const;
};

// The words that parse() knows, each with its sentence, for documentation.
std::string fault_spec_help();

}  // namespace weft
