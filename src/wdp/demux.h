// Whom a datagram on a socket is for (spec/wdp 2.2, spec/wdp-uc 3.1, spec/wdp-uc 3): sessions by
// their token, which is unique on a socket; UD queue pairs by the QN; REQs by what names their
// handshake.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/random.h"
#include "wdp/limits.h"
#include "wdp/request_key.h"
#include "wdp/ud_queue.h"
#include "wire/wdp_ud.h"

namespace weft::wdp {

class Handshake;
class UcConnection;

// One for each socket. Engine holder only. Does not own what it finds.
class Demux {
 public:
  // --- sessions
  // Not 0, not in use, and not used within the last 2 s (part IV).
  SessionToken fresh_token(Random& random, Time now);
  // Where datagrams with this token must come from: an address of 0, a port of 0 are any.
  // `connection`: null of a question, and of a channel (rd_channels.h).
  struct Session {
    UcConnection* connection = nullptr;
    Endpoint from;
    uint8_t index = 0;
    bool or_zero = false;    // a didx of 0 is taken, too
    bool any_index = false;  // a channel's, whose datagrams name queue pairs of both ends
  };
  void add(SessionToken token, const Session& session) { sessions_[token] = session; }
  // The token is kept from use for 2 s.
  void remove(SessionToken token, Time now);
  Result<UcConnection*, wire::WdpDrop> find(const wire::WdpCommon& common,
                                            const Endpoint& from) const;

  // --- handshakes that were asked for
  // Exactly one of the two is set: the application has not decided, or it has. An entry stays as
  // long as what it names, for a copy of the REQ that comes late must not begin anything.
  struct Request {
    Handshake* waiting = nullptr;
    UcConnection* connection = nullptr;
  };
  void add(const RequestKey& key, const Request& request) {
    requests_[key] = request;
    half_open_.insert(key);
  }
  void established(const RequestKey& key) { half_open_.erase(key); }
  void remove(const RequestKey& key) {
    requests_.erase(key);
    half_open_.erase(key);
  }
  const Request* find(const RequestKey& key) const;
  // Those that wait for an application or for an RTU.
  size_t half_open() const { return half_open_.size(); }

  // --- UD
  void add(Qpn qpn, UdQueue& queue) { queues_[qpn] = &queue; }
  void remove(Qpn qpn) { queues_.erase(qpn); }
  Result<UdQueue*, wire::WdpDrop> find(const wire::WdpUd& ud) const { return find(ud.destination); }
  Result<UdQueue*, wire::WdpDrop> find(Qpn qpn) const;
  // Multicast: every queue pair that is attached to the group.
  void attach(const Gid& group, UdQueue& queue) { groups_.emplace(group, &queue); }
  void detach(const Gid& group, UdQueue& queue);
  template <class F>
  void each_attached(const Gid& group, F&& f) const {
    const auto [from, to] = groups_.equal_range(group);
    for (auto it = from; it != to; ++it) f(*it->second);
  }

 private:
  struct Quarantined {
    SessionToken token;
    Time until;
  };
  std::unordered_map<SessionToken, Session> sessions_;
  mutable const std::pair<const SessionToken, Session>* last_found_ = nullptr;  // in sessions_
  std::deque<Quarantined> quarantine_;
  std::map<RequestKey, Request> requests_;
  std::set<RequestKey> half_open_;
  std::unordered_map<Qpn, UdQueue*> queues_;
  std::multimap<Gid, UdQueue*> groups_;
};

}  // namespace weft::wdp
