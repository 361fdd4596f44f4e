#include "verbs/multicast_groups.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "engine/engine.h"
#include "port/udp_bind.h"
#include "verbs/ud_transport.h"
#include "wdp/multicast.h"

namespace weft::verbs {
namespace {

// System calls before other sockets have their turn.
constexpr int kMostReceives = 64;

bool stays_on_link(const Gid& group) {
  return !group.is_ipv4() && (group.raw[1] & 0x0f) <= 2;
}

}  // namespace

// --- a group's socket

GroupReceiver::GroupReceiver(port::Fd fd)
    : socket_(std::move(fd), engine::DatagramDriver::kBuffer) {}

void GroupReceiver::on_ready(engine::Token& token, bool readable, bool) {
  if (readable) receive(token);
  token.engine().set_deadline(token, *this, std::min(socket_.held_until(), overruns_.due()));
}

void GroupReceiver::close(engine::Token& token) {
  overruns_.look(socket_, token.engine().counters());
  socket_.close();
}

// What a fault has held back is due, or the count of what had no room.
void GroupReceiver::on_deadline(engine::Token& token) {
  overruns_.when_due(socket_, token.now(), token.engine().counters());
  socket_.release_held();
  on_ready(token, true, false);
}

void GroupReceiver::receive(engine::Token& token) {
  auto& counters = token.engine().counters();
  for (int i = 0; i < kMostReceives; ++i) {
    const MutableBytes bounce = token.engine().bounce(token);
    const auto r = socket_.receive(bounce);
    counters.receive_calls.add();
    if (r.would_block) {
      counters.receives_empty.add();
      return;
    }
    if (r.error != 0) continue;
    counters.bytes_received_copied.add(r.bytes);
    token.engine().moved(token, r.bytes);
    token.engine().took_room(token, engine::room_of(socket_, r.bytes));
    deliver(token, bounce.first(std::min(r.bytes, bounce.size())), r);
  }
  token.engine().again(token, *this);
}

void GroupReceiver::deliver(engine::Token& token, Bytes bytes, const port::UdpSocket::Received& r) {
  const wdp::UdReception how = engine::reception_of(r);
  overruns_.look_soon(token.now());
  const size_t segment = std::max<size_t>(r.segment, 1);
  while (!bytes.empty() && !members_.empty()) {
    const Bytes datagram = bytes.first(std::min(segment, bytes.size()));
    bytes = bytes.subspan(datagram.size());
    token.engine().counters().datagrams_received.add();
    // What is no message to a group is counted there; the port knows of no members.
    members_.front()->driver().port().received_by_group(datagram, how);
    for (UdTransport* member : members_) member->received_by_group(token, datagram, how);
  }
  for (UdTransport* member : members_) member->driver().settle(token);
}

// --- all of them

std::vector<MulticastGroups::Place> MulticastGroups::places(engine::Token& token,
                                                            const device::Device& device,
                                                            const Gid& mgid) {
  std::set<Place> all;
  for (const device::GidEntry& e : device.gids) {
    const wdp::Endpoint group = wdp::multicast_endpoint(mgid, e.gid.is_ipv4());
    if (group.address.is_ipv4() != e.gid.is_ipv4()) continue;
    all.insert({&token.engine(), group, stays_on_link(group.address) ? e.ifindex : 0});
  }
  return {all.begin(), all.end()};
}

GroupReceiver* MulticastGroups::receiver(engine::Token& token, const device::Device& device,
                                         const Place& place) {
  {
    const std::lock_guard guard{lock_};
    const auto it = receivers_.find(place);
    if (it != receivers_.end()) return it->second;
  }
  const auto at = port::Address::from_gid(place.group.address, place.group.port);
  auto fd = port::bind_group(at, place.interface);
  int joined = 0;
  int error = fd.ok() ? 0 : fd.error().code;
  std::set<uint32_t> interfaces;
  for (const device::GidEntry& e : device.gids) {
    if (!fd.ok() || e.gid.is_ipv4() != place.group.address.is_ipv4()) continue;
    if (place.interface != 0 && e.ifindex != place.interface) continue;
    if (!interfaces.insert(e.ifindex).second) continue;
    const int why = port::join_group(*fd, at, e.gid, e.ifindex);
    if (why == 0) {
      ++joined;
    } else {
      error = why;
    }
  }
  if (joined == 0) {
    WEFT_LOG(info, "multicast group %s: %s", at.to_string().c_str(), std::strerror(error));
    return nullptr;
  }
  auto owned = std::make_unique<GroupReceiver>(std::move(*fd));
  GroupReceiver* r = owned.get();
  {
    const std::lock_guard guard{lock_};
    receivers_[place] = r;
  }
  token.engine().add(token, std::move(owned), r->fd(), true, false);
  return r;
}

Outcome<Ok> MulticastGroups::attach(engine::Token& token, UdTransport& member, const Gid& mgid) {
  const device::Device& device = member.device();
  bool any = false;
  for (const Place& place : places(token, device, mgid)) {
    if (GroupReceiver* r = receiver(token, device, place)) {
      r->attach(member);
      any = true;
    }
  }
  if (!any) return fail(Errc::system);
  return Ok{};
}

void MulticastGroups::detach(engine::Token& token, UdTransport& member, const Gid& mgid) {
  for (const Place& place : places(token, member.device(), mgid)) {
    GroupReceiver* r = nullptr;
    {
      const std::lock_guard guard{lock_};
      const auto it = receivers_.find(place);
      if (it == receivers_.end()) continue;
      r = it->second;
      r->detach(member);
      if (!r->unused()) continue;
      receivers_.erase(it);
    }
    token.engine().remove(token, *r);
    r->close(token);
  }
}

}  // namespace weft::verbs
