#include "tests/support/uc_traffic.h"

#include "tests/support/uc_flow.h"

namespace weft::test {

UcTraffic::UcTraffic(UcPair& pair, const UcTrafficOptions& options)
    : pair_(pair), options_(options) {
  forth_ = std::make_unique<Flow>(pair, pair.a, pair.b, options_, 1, wrong_);
  back_ = std::make_unique<Flow>(pair, pair.b, pair.a, options_, 2, wrong_);
}

UcTraffic::~UcTraffic() = default;

void UcTraffic::finish() {
  for (const UcSide* side : {&pair_.a, &pair_.b}) {
    const auto& end = side->consumer.host.end;
    const bool lost = end && end->kind == rdmap::StreamEnd::Kind::lost;
    if (end && !(lost && options_.deaf)) wrong_.emplace_back("a session ended");
  }
  forth_->finish();
  back_->finish();
  pair_.a.close();
  pair_.drive();
  check_lost(pair_.a, pair_.b);
  if (!pair_.a.host().end) wrong_.emplace_back("close() does not end");
}

// What is lost is known exactly once the sender has said how far it came (wire.md 9.1, DREQ).
void UcTraffic::check_lost(UcSide& sender, UcSide& receiver) {
  const auto& end = receiver.host().end;
  if (!end || end->kind != rdmap::StreamEnd::Kind::peer_closed) return;
  const uint64_t sent = sender.counters().datagrams_sent;
  const uint64_t lost = receiver.session.lost();
  const uint64_t unique = receiver.session.unique();
  if (lost + unique != sent) {
    wrong_.push_back(std::to_string(sent) + " sent, " + std::to_string(unique) + " came and " +
                     std::to_string(lost) + " are said to be lost");
  }
  if (!options_.lossy && lost > 0) wrong_.emplace_back("lost, where nothing was");
}

UcTraffic::Totals UcTraffic::totals() const {
  Totals t = forth_->totals();
  const Totals u = back_->totals();
  t.messages += u.messages;
  t.delivered += u.delivered;
  t.reads += u.reads;
  t.reads_failed += u.reads_failed;
  return t;
}

}  // namespace weft::test
