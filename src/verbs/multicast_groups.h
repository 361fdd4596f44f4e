// The multicast groups that queue pairs of this process are attached to: one socket for each group
// and engine (wire.md 10). Who else on this host has joined has a socket of his own.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/overrun_count.h"
#include "engine/source.h"
#include "port/udp_socket.h"
#include "verbs/types.h"
#include "wdp/endpoint.h"

namespace weft::device {
struct Device;
}

namespace weft::verbs {

class UdTransport;

// A group's socket. Owned by the engine; its holder calls.
class GroupReceiver final : public engine::Source {
 public:
  explicit GroupReceiver(port::Fd fd);

  void attach(UdTransport& member) { members_.push_back(&member); }
  void detach(UdTransport& member) { std::erase(members_, &member); }
  bool unused() const { return members_.empty(); }
  int fd() const { return socket_.fd(); }
  void close(engine::Token& token);

  void on_ready(engine::Token& token, bool readable, bool writable) override;
  void on_deadline(engine::Token& token) override;
  void on_doorbell(engine::Token&) override {}
  void on_no_memory(engine::Token&) override {}  // a datagram is lost
  void abandon_in_child() override { socket_.close(); }

 private:
  void receive(engine::Token& token);
  void deliver(engine::Token& token, Bytes bytes, const port::UdpSocket::Received& r);

  port::UdpSocket socket_;
  engine::OverrunCount overruns_;
  std::vector<UdTransport*> members_;
};

class MulticastGroups {
 public:
  // A group of InfiniBand is one of IPv4, one of IPv6, or either: nobody knows by which of a host's
  // addresses its senders send. Errors: system (no interface of this host joins it).
  Outcome<Ok> attach(engine::Token& token, UdTransport& member, const Gid& mgid);
  void detach(engine::Token& token, UdTransport& member, const Gid& mgid);

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
  GroupReceiver* receiver(engine::Token& token, const device::Device& device, const Place& place);

  std::mutex lock_;  // of the map; the receivers belong to the holders of their engines
  std::map<Place, GroupReceiver*> receivers_;
};

}  // namespace weft::verbs
