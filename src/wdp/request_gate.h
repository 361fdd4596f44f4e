// What a port does with REQs before anybody keeps state for them (spec/wdp 4.3, 4.4): beyond 128
// half-open handshakes it asks for a cookie, which costs it nothing. One for each port.
#pragma once

#include <optional>

#include "base/random.h"
#include "wdp/endpoint.h"
#include "wdp/limits.h"
#include "wire/wdp_cookie.h"
#include "wire/wdp_ctl.h"

namespace weft::wdp {

class RequestGate {
 public:
  static constexpr size_t kMostHalfOpen = 128;
  static constexpr Duration kSecretLives = 30s;
  static constexpr uint32_t kVersionAnswersPerSecond = 10;
  static constexpr uint32_t kDisownedPerSecond = 1000;

  RequestGate(Random& random, Time now);

  struct Admission {
    bool admitted = false;   // else it is to be answered by answer
    bool validated = false;  // the cookie shows that the peer is where it says
    wire::WdpCtl answer;     // COOKIE or REJ; goes to where the REQ came from
  };
  // `half_open`: handshakes of this port that wait for an application or for an RTU.
  Admission judge(const wire::WdpCtl& req, const Endpoint& from, size_t half_open, Time now);
  // Does its cookie show that it came from where it says?
  bool validated(const wire::WdpCtl& req, const Endpoint& from, Time now);

  // The REJ that answers a REQ for which there is nobody.
  static wire::WdpCtl rejection(const wire::WdpCtl& req, wire::RejReason reason);
  // The answer to a REQ in another version of WDP (spec/wdp 6.1); at most 10 a second.
  std::optional<wire::WdpCtl> other_version(Bytes datagram, Time now);
  // The DREP that answers a KA or DREQ of a channel that is not known here (spec/wdp-rd 2.4), at
  // most 1000 a second: silence says that a token is in use.
  std::optional<wire::WdpCtl> disowned(const wire::WdpCommon& common, Bytes datagram, Time now);

 private:
  // What is said so often a second at most.
  struct Budget {
    Time since;
    uint32_t said = 0;
    bool allows(uint32_t most, Time now);
  };
  void rotate(Time now);
  wire::CookieSecret fresh_secret();

  Random& random_;
  wire::CookieSecret secret_;
  wire::CookieSecret last_secret_;
  Time secret_since_;
  Budget versions_;
  Budget disowned_;
};

}  // namespace weft::wdp
