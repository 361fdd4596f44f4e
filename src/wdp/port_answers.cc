#include "wdp/port_answers.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "wdp/request_gate.h"

namespace weft::wdp {

using wire::CtlType;
using wire::RejReason;
using wire::WdpCtl;

namespace {

std::vector<std::byte> datagram_of(const WdpCtl& c) {
  std::vector<std::byte> datagram(c.size());
  c.encode(datagram.data());
  return datagram;
}

}  // namespace

bool PortAnswers::push(Answer answer) {
  if (answers_.size() >= kMost) return false;
  answers_.push_back(std::move(answer));
  return true;
}

void PortAnswers::say(const WdpCtl& c, const UdReception& how) {
  const bool said = push({back_to(how), datagram_of(c)});
  if (said && c.type == CtlType::rej) rejections_.count(static_cast<RejReason>(c.reason));
}

void PortAnswers::say_of(Handshake& handshake) {
  while (handshake.ready()) {
    Train train;
    handshake.fill(train);
    Answer a{handshake.path(), {}};
    for (const IoVec& v : train.pieces()) {
      const auto* p = static_cast<const std::byte*>(v.iov_base);
      a.datagram.insert(a.datagram.end(), p, p + v.iov_len);
    }
    // A REJ is the last that a handshake says.
    const auto reason = handshake.ready() ? std::nullopt : handshake.rejected_by_us();
    if (reason && !handshake.active()) {
      refusals_.remember(key_of(handshake.peer(), a.path.to), {*reason, a.datagram});
    }
    if (push(std::move(a)) && reason) rejections_.count(*reason);
  }
}

void PortAnswers::refuse(const WdpCtl& req, RejReason reason, const UdReception& how) {
  const WdpCtl rej = RequestGate::rejection(req, reason);
  say(rej, how);
  refusals_.remember(key_of(req, how.from), {reason, datagram_of(rej)});
}

// spec/wdp 4.3: duplicate REQ repeats the last answer.
bool PortAnswers::repeat(const RequestKey& request, size_t size, const UdReception& how) {
  const auto* refusal = refusals_.find(request);
  if (refusal == nullptr) return false;
  // What asks may be a smaller copy: part IV counts for each.
  const bool may = refusal->datagram.size() <= 3 * size;
  if (may && push({back_to(how), refusal->datagram})) rejections_.count(refusal->reason);
  return true;
}

void PortAnswers::fill(Train& train) {
  if (!train.empty() || answers_.empty()) return;
  const Answer& a = answers_.front();
  train.begin(a.datagram.size(), a.path);
  std::copy(a.datagram.begin(), a.datagram.end(), train.stage(a.datagram.size()));
  train.close();
  answers_.pop_front();
}

}  // namespace weft::wdp
