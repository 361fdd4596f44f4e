#include "stream/lane.h"

namespace weft::stream {

bool Lane::believe(uint32_t stream, const Continuity::Judgement& judgement,
                   const std::function<void(const nlohmann::json&)>& tell) {
  const bool begins = !ledger.running();
  const uint64_t from = ledger.next();
  uint64_t to = judgement.first;
  if (begins) {
    // What lies in a block that is published, as after a silence in it, is late.
    to = ledger.may_begin(to);
    ledger.begin(to, std::nullopt);
  } else if (judgement.anew) {
    ledger.begin_anew(to);
  }
  const bool jumps = begins ? to < from : judgement.anew;
  if (jumps && tell) tell({{"event", "jump"}, {"stream", stream}, {"from", from}, {"to", to}});
  return begins;
}

}  // namespace weft::stream
