// A host with one WdpSocket, for tests that let sockets talk: what they say is taken out datagram
// by datagram, and handed to whom the test likes.
#pragma once

#include <list>

#include "tests/support/append.h"
#include "tests/support/uc_host.h"
#include "wdp/wdp_socket.h"

namespace weft::test {

class WdpNode final : public wdp::WdpSocketOwner {
 public:
  WdpNode(const wdp::Endpoint& where, uint64_t seed, Time now)
      : random_(seed), address(where), port(random_, now) {}

  // A queue pair that may have a connection.
  struct Peer final : wdp::UcConnectionOwner {
    explicit Peer(WdpNode& of) : connection(host, *this, of.random_, of.port.windows()), node(of) {}
    void reached() override { node.reached_ = &connection; }
    UcHost host;
    wdp::UcConnection connection;
    WdpNode& node;
  };
  Peer& add_peer() { return peers.emplace_back(*this); }

  struct Datagram {
    wdp::Endpoint to;
    Buffer bytes;
  };
  // All that wants to be sent.
  std::vector<Datagram> said(Time now) {
    std::vector<Datagram> all;
    const auto take = [&all](const wdp::Train& t) {
      t.each_datagram([&](std::span<const IoVec> pieces) {
        auto& d = all.emplace_back(Datagram{t.path().to, {}});
        append(d.bytes, pieces);
      });
    };
    while (port.ready()) {
      wdp::Train t;
      port.fill(t);
      take(t);
    }
    for (Peer& p : peers) {
      while (p.connection.ready(now)) {
        wdp::Train t;
        p.connection.fill(t, now);
        if (t.empty()) break;
        take(t);
        p.connection.llp_took_all(now);
      }
    }
    return all;
  }
  // The connection that it was for.
  wdp::UcConnection* hear(Bytes datagram, const wdp::Endpoint& from, Time now) {
    reached_ = nullptr;
    port.received(datagram, {.from = from, .to = address.address}, now, *this);
    return reached_;
  }
  Time deadline() const {
    Time first = port.deadline();
    for (const Peer& p : peers) first = std::min(first, p.connection.deadline());
    return first;
  }
  void tick(Time now) {
    port.tick(now, *this);
    for (Peer& p : peers) p.connection.tick(now);
  }

  // wdp::WdpSocketOwner
  std::optional<wire::RejReason> requested(const wdp::RequestKey& key,
                                           const wdp::Handshake& handshake) override {
    const Bytes d = handshake.peer().private_data;
    requests.push_back({key, handshake.peer().service, Buffer(d.begin(), d.end())});
    return refuse;
  }
  Result<Callee, wire::RejReason> called(const wire::WdpCtl& req, const wdp::Endpoint&) override {
    if (not_ready) return fail(wire::RejReason::not_ready);
    if (callee.connection == nullptr) return fail(wire::RejReason::qpn_unknown);
    if (req.source != callee_expects) return fail(wire::RejReason::bad_parameters);
    return callee;
  }
  void answered(SessionToken, const wdp::Handshake& handshake) override {
    resolved = {handshake.state(), handshake.peer().source, handshake.peer().q_key()};
  }

  struct Request {
    wdp::RequestKey key;
    wire::CtlService service;
    Buffer private_data;
  };
  std::vector<Request> requests;
  std::optional<wire::RejReason> refuse;
  Callee callee;
  Qpn callee_expects;
  bool not_ready = false;
  struct Resolved {
    wdp::Handshake::State state{};
    Qpn qpn;
    QKey q_key;
  };
  std::optional<Resolved> resolved;

 private:
  SeededRandom random_;
  wdp::UcConnection* reached_ = nullptr;

 public:
  const wdp::Endpoint address;
  wdp::WdpSocket port;
  std::list<Peer> peers;
};

}  // namespace weft::test
