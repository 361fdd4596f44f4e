#include "wdp/rd_answers.h"

#include <algorithm>

namespace weft::wdp {

using wire::WdpData;
using wire::WdpResponse;

namespace {

// spec/wdp-rd 6.4
constexpr Duration kAnswerDelay = kAckDelay;

}  // namespace

void RdAnswers::reserve() {
  if (unsaid_.size() < unsaid_.capacity()) return;
  unsaid_.reserve(std::max<size_t>(2 * unsaid_.size(), kMostResponses));
}

// Of one flow the last ACK says it all.
void RdAnswers::add(const WdpResponse& response, Time since) {
  using Code = WdpResponse::Code;
  const auto last = std::find_if(unsaid_.rbegin(), unsaid_.rend(), [&](const auto& r) {
    return r.qidx == response.qidx && r.ridx == response.ridx;
  });
  if (last != unsaid_.rend() && last->code == Code::ack && response.code == Code::ack) {
    last->msn = response.msn;
    return;
  }
  const bool first = unsaid_.empty();
  unsaid_.push_back(response);
  if (first) until_ = since + kAnswerDelay;
}

// An answer of the program's may follow, and takes them with it. Beside an RDACK that cannot wait
// they cost nothing.
bool RdAnswers::write(bool company, size_t most, Time now) {
  if (unsaid_.empty()) return false;
  const bool go =
      due_ || now >= until_ || unsaid_.size() >= kMostResponses || company || sender_.has_new();
  return go && write_all(most);
}

bool RdAnswers::write_all(size_t most) {
  until_ = Time::never();
  due_ = true;  // until there is room
  bool any = false;
  while (!unsaid_.empty()) {
    const size_t records = std::min(unsaid_.size(), kMostResponses);
    if (!writer_.has_room(records * WdpResponse::kSize)) return any;
    write_one(records, most);
    any = true;
  }
  due_ = false;
  return any;
}

// RESPs are in a flow of their own, that of the ports: an ACK must not overtake an error.
void RdAnswers::write_one(size_t records, size_t most) {
  const auto size = static_cast<uint32_t>(records * WdpResponse::kSize);
  WdpData header{.mlen = size,
                 .last = true,
                 .opcode = wire::Opcode::terminate,
                 .stride = static_cast<uint16_t>(size)};
  // Where many wait, a peer with as many takes no requests, nor what shares a datagram with them.
  const bool many = unsaid_.size() > kMostResponses;
  if (many) sender_.shut();
  std::byte* at = writer_.write(header, true, most);
  if (many) sender_.shut();
  const auto end = unsaid_.begin() + static_cast<ptrdiff_t>(records);
  for (auto r = unsaid_.begin(); r != end; ++r, at += WdpResponse::kSize) r->encode(at);
  unsaid_.erase(unsaid_.begin(), end);
}

bool RdAnswers::tick(Time now) {
  if (now < until_) return false;
  until_ = Time::never();
  due_ = true;
  return true;
}

}  // namespace weft::wdp
