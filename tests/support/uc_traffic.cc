#include "tests/support/uc_traffic.h"

#include <algorithm>

#include "tests/support/uc_flow.h"

namespace weft::test {
namespace {

constexpr size_t kLastWords = 5;
constexpr uint64_t kLastWord = uint64_t{1} << 32;  // wr_id of the first receive for them

}  // namespace

UcTraffic::UcTraffic(UcPair& pair, const UcTrafficOptions& options)
    : pair_(pair), options_(options) {
  forth_ = std::make_unique<Flow>(pair, pair.a, pair.b, options_, 1, wrong_);
  back_ = std::make_unique<Flow>(pair, pair.b, pair.a, options_, 2, wrong_);
}

UcTraffic::~UcTraffic() = default;

void UcTraffic::finish() {
  for (const UcSide* side : {&pair_.a, &pair_.b}) {
    const auto& end = side->consumer.host.end;
    const bool lost = end && end->kind == work::StreamEnd::Kind::lost;
    if (end && !(lost && options_.deaf)) wrong_.emplace_back("a session ended");
  }
  forth_->finish();
  back_->finish();
  last_words();
  pair_.a.close();
  pair_.drive();
  check_last_words();
  check_lost(pair_.a, pair_.b);
  if (!pair_.a.host().end) wrong_.emplace_back("close() does not end");
}

// The goodbye stands right behind them, and may overtake them.
void UcTraffic::last_words() {
  UcSide& a = pair_.a;
  UcSide& b = pair_.b;
  if (a.host().end || b.host().end) return;
  for (size_t i = 0; i < kLastWords; ++i) {
    words_.push_back(pattern_bytes(1 + i * 700, options_.seed * kLastWords + i));
    heard_.emplace_back(words_.back().size());
  }
  a.consumer.on_send = nullptr;
  b.consumer.on_receive = [this](const work::Receive& r, work::Status, const work::Arrival& n) {
    // The flows leave receives where something was lost.
    if (r.wr_id < kLastWord) return;
    const size_t i = n.length / 700;
    const Buffer& place = heard_[r.wr_id - kLastWord];
    if (n.length > place.size() || i >= words_.size() || words_[i].size() != n.length ||
        !std::equal(words_[i].begin(), words_[i].end(), place.begin())) {
      wrong_.emplace_back("last words are not as they were said");
    }
    ++words_heard_;
  };
  for (size_t i = 0; i < kLastWords; ++i) {
    b.post_receive(kLastWord + i, {segment(b.host(), heard_[i])});
    a.host().post({.operation = work::Operation::send}, {segment(a.host(), words_[i])});
  }
}

void UcTraffic::check_last_words() {
  const bool certain = !options_.lossy && !options_.disorderly && !options_.scarce;
  if (certain && words_heard_ != words_.size()) wrong_.emplace_back("last words did not arrive");
}

// What is lost is known exactly once the sender has said how far it came (spec/wdp 5.1, DREQ).
void UcTraffic::check_lost(UcSide& sender, UcSide& receiver) {
  const auto& end = receiver.host().end;
  if (!end || end->kind != work::StreamEnd::Kind::peer_closed) return;
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
