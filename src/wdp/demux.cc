#include "wdp/demux.h"

#include <algorithm>

namespace weft::wdp {

using wire::WdpDrop;

SessionToken Demux::fresh_token(Random& random, Time now) {
  while (!quarantine_.empty() && now >= quarantine_.front().until) quarantine_.pop_front();
  for (;;) {
    const SessionToken token{static_cast<uint32_t>(random.next())};
    const bool rests = std::any_of(quarantine_.begin(), quarantine_.end(),
                                   [&](const Quarantined& q) { return q.token == token; });
    if (token != SessionToken{} && !sessions_.contains(token) && !rests) return token;
  }
}

void Demux::remove(SessionToken token, Time now) {
  last_found_ = nullptr;
  if (sessions_.erase(token) != 0) quarantine_.push_back({token, now + kTimeWait});
}

// spec/wdp 2.5: Demux by token (unique per socket); check class and source address. didx
// must equal the QP's index, or be 0 for sessions accepted by a listener. The class is the
// session's to check.
Result<UcConnection*, WdpDrop> Demux::find(const wire::WdpCommon& common,
                                           const Endpoint& from) const {
  // Datagrams come in trains, of one session each.
  if (last_found_ == nullptr || last_found_->first != common.token) {
    const auto it = sessions_.find(common.token);
    if (it == sessions_.end()) return fail(WdpDrop::unknown_token);
    last_found_ = &*it;
  }
  const Session& s = last_found_->second;
  if ((!s.from.address.is_zero() && s.from.address != from.address) ||
      (s.from.port != 0 && s.from.port != from.port)) {
    return fail(WdpDrop::wrong_address);
  }
  if (!s.any_index && common.didx != s.index && !(s.or_zero && common.didx == wire::kPortIndex)) {
    return fail(WdpDrop::wrong_index);
  }
  return s.connection;
}

const Demux::Request* Demux::find(const RequestKey& key) const {
  const auto it = requests_.find(key);
  return it == requests_.end() ? nullptr : &it->second;
}

// spec/wdp 2.5: QN is the full QPN; that its low byte is didx the parser has seen to.
Result<UdQueue*, WdpDrop> Demux::find(Qpn qpn) const {
  const auto it = queues_.find(qpn);
  if (it == queues_.end()) return fail(WdpDrop::no_such_qp);
  return it->second;
}

void Demux::detach(const Gid& group, UdQueue& queue) {
  const auto [from, to] = groups_.equal_range(group);
  for (auto it = from; it != to; ++it) {
    if (it->second == &queue) {
      groups_.erase(it);
      return;
    }
  }
}

}  // namespace weft::wdp
