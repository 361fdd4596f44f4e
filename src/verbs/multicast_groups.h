// The multicast groups that queue pairs of this process are attached to: one socket for each group
// and engine (spec/wdp-ud 5.2). Who else on this host has joined has a socket of his own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "drive/datagram_driver.h"
#include "engine/engine.h"
#include "verbs/types.h"

namespace weft::device {
struct Device;
}

namespace weft::verbs {

class UdTransport;

// A group's socket and its driver, which knows the group's members and nobody else. Holder of the
// engine.
class GroupReceiver final : private drive::DatagramOwner, private drive::DatagramSender {
 public:
  // `socket` is bound to the group. Listens until close().
  GroupReceiver(engine::Token& token, std::unique_ptr<port::DatagramPort> socket,
                const wdp::Endpoint& group);

  // By the interfaces of `device` that have the group's family and have not joined yet; by
  // `interface` alone where it is not 0. False: by none so far.
  bool join(const device::Device& device, uint32_t interface);

  // MGIDs that are one group on an IP network are one here: a member hears it once, as long as it
  // is attached by any of them.
  void attach(UdTransport& member, const Gid& mgid);
  void detach(UdTransport& member, const Gid& mgid);
  // The member has its queue from now on, or is about to lose it. For members alone.
  void started(UdTransport& member);
  void stopping(UdTransport& member);
  bool unused() const { return members_.empty(); }
  void close(engine::Token& token);
  drive::DatagramDriver& driver() { return driver_; }

 private:
  // drive::DatagramOwner
  bool group_heard(engine::Token& token, drive::DatagramDriver& driver, const Gid& from) override;
  // drive::DatagramSender, of one that says nothing: what its members have heard is to be seen to.
  void settled(engine::Token& token) override;
  void on_no_memory(engine::Token&) override {}

  const wdp::Endpoint group_;
  drive::DatagramDriver& driver_;  // owned by the engine
  std::set<uint32_t> joined_;      // interfaces
  std::map<UdTransport*, std::set<Gid>> members_;
};

class MulticastGroups {
 public:
  // A group of InfiniBand is one of IPv4, one of IPv6, or either: nobody knows by which of a host's
  // addresses its senders send. Errors: system (no interface of this host joins it).
  Outcome<Ok> attach(engine::Token& token, UdTransport& member, const Gid& mgid);
  // Needs no memory.
  void detach(engine::Token& token, UdTransport& member, const Gid& mgid);
  // Of a queue pair that is attached already: see GroupReceiver.
  void started(engine::Token& token, UdTransport& member);
  void stopping(engine::Token& token, UdTransport& member);

 private:
  // A group that does not leave its link is another one on each.
  struct Place {
    engine::Engine* engine;
    wdp::Endpoint group;
    uint32_t interface;
    friend constexpr auto operator<=>(const Place&, const Place&) = default;
  };
  static std::vector<Place> places(engine::Token& token, const device::Device& device,
                                   const Gid& mgid);
  GroupReceiver* find(const Place& place);
  GroupReceiver* receiver(engine::Token& token, const device::Device& device, const Place& place);
  // Nothing where all have members.
  std::unique_ptr<GroupReceiver> take_unused(const engine::Engine& engine);
  template <class F>
  void each_of(engine::Engine& engine, F&& f);

  std::mutex lock_;  // of the map; the receivers belong to the holders of their engines
  std::map<Place, std::unique_ptr<GroupReceiver>> receivers_;
};

}  // namespace weft::verbs
