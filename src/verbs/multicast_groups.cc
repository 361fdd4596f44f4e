#include "verbs/multicast_groups.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "engine/engine.h"
#include "port/udp_bind.h"
#include "verbs/address_handle.h"
#include "verbs/ud_transport.h"
#include "wdp/multicast.h"

namespace weft::verbs {
namespace {

// System calls before other sockets have their turn.
constexpr int kMostReceives = 64;
// Until what was left for want of memory is tried again.
constexpr Duration kNextTry = std::chrono::milliseconds{10};

bool stays_on_link(const Gid& group) {
  return !group.is_ipv4() && (group.raw[1] & 0x0f) <= 2;
}

}  // namespace

// --- a group's socket

GroupReceiver::GroupReceiver(engine::Token& token, port::UdpSocket socket,
                             const wdp::Endpoint& group)
    : socket_(std::move(socket)), group_(group), port_(random_, token.now()) {}

bool GroupReceiver::join(const device::Device& device, uint32_t interface) {
  const auto at = port::Address::from_gid(group_.address, group_.port);
  std::set<uint32_t> tried;
  for (const device::GidEntry& e : device.gids) {
    if (e.gid.is_ipv4() != group_.address.is_ipv4()) continue;
    if (interface != 0 && e.ifindex != interface) continue;
    if (joined_.contains(e.ifindex) || !tried.insert(e.ifindex).second) continue;
    const int why = port::join_group(socket_.fd(), at, e.gid, e.ifindex);
    if (why == 0) {
      joined_.insert(e.ifindex);
    } else {
      WEFT_LOG(info, "multicast group %s: not heard by interface %s: %s", at.to_string().c_str(),
               e.interface.c_str(), std::strerror(why));
    }
  }
  return !joined_.empty();
}

void GroupReceiver::attach(UdTransport& member, const Gid& mgid) {
  const bool first = !members_.contains(&member);
  members_[&member].insert(mgid);
  if (first) started(member);
}

void GroupReceiver::detach(UdTransport& member, const Gid& mgid) {
  const auto it = members_.find(&member);
  if (it == members_.end() || it->second.erase(mgid) == 0 || !it->second.empty()) return;
  stopping(member);
  members_.erase(it);
}

void GroupReceiver::started(UdTransport& member) {
  if (!members_.contains(&member) || member.queue() == nullptr) return;
  port_.demux().attach(group_.address, *member.queue());
}

void GroupReceiver::stopping(UdTransport& member) {
  if (!members_.contains(&member) || member.queue() == nullptr) return;
  port_.demux().detach(group_.address, *member.queue());
}

void GroupReceiver::on_ready(engine::Token& token, bool readable, bool) {
  if (readable) receive(token);
  token.runtime().set_deadline(token, *this, std::min(socket_.held_until(), overruns_.due()));
}

void GroupReceiver::close(engine::Token& token) {
  overruns_.poll(socket_, token.runtime().counters());
  socket_.close();
}

// What a fault has held back is due, or the count of what had no room.
void GroupReceiver::on_deadline(engine::Token& token) {
  overruns_.poll_if_due(socket_, token.now(), token.runtime().counters());
  socket_.release_held();
  on_ready(token, true, false);
}

// The datagram is lost, or those members have it that came before. What was due is due again.
void GroupReceiver::on_no_memory(engine::Token& token) {
  token.runtime().set_deadline(token, *this, token.now() + kNextTry);
  settle_members(token);
}

void GroupReceiver::receive(engine::Token& token) {
  auto& counters = token.runtime().counters();
  for (int i = 0; i < kMostReceives; ++i) {
    const MutableBytes bounce = token.runtime().bounce(token);
    const auto r = socket_.receive(bounce);
    counters.receive_calls.add();
    if (r.would_block) {
      counters.receives_empty.add();
      return;
    }
    if (r.error != 0) continue;
    counters.bytes_received_copied.add(r.bytes);
    token.runtime().received(token, r.bytes);
    drive::count_unsolicited(token, socket_.receive_buffer(), r.bytes);
    deliver(token, bounce.first(std::min(r.bytes, bounce.size())), r);
  }
  token.runtime().again(token, *this);
}

// A process's contexts know the addresses of the times when they were opened.
bool GroupReceiver::is_own_address(const Gid& address) const {
  const Context* asked = nullptr;
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
    const Context& c = m.first->context();
    return std::exchange(asked, &c) != &c && is_own(c, address);
  });
}

void GroupReceiver::deliver(engine::Token& token, Bytes bytes, const port::UdpSocket::Received& r) {
  wdp::UdReception how = drive::reception_of(r);
  how.to = group_.address;
  how.from_own_address = is_own_address(how.from.address);
  overruns_.poll_soon(token.now());
  const size_t segment = std::max<size_t>(r.segment, 1);
  do {
    const Bytes datagram = bytes.first(std::min(segment, bytes.size()));
    bytes = bytes.subspan(datagram.size());
    token.runtime().counters().datagrams_received.add();
    port_.received_by_group(datagram, how);
  } while (!bytes.empty());
  settle_members(token);
}

void GroupReceiver::settle_members(engine::Token& token) {
  drops_.publish(port_.drops(), token.runtime().counters());
  for (const auto& [member, mgids] : members_) member->driver().settle(token);
}

// --- all of them

std::vector<MulticastGroups::Place> MulticastGroups::places(engine::Token& token,
                                                            const device::Device& device,
                                                            const Gid& mgid) {
  std::set<Place> all;
  for (const device::GidEntry& e : device.gids) {
    const wdp::Endpoint group = wdp::multicast_endpoint(mgid, e.gid.is_ipv4());
    if (group.address.is_ipv4() != e.gid.is_ipv4()) continue;
    all.insert({&engine::Engine::of(token), group, stays_on_link(group.address) ? e.ifindex : 0});
  }
  return {all.begin(), all.end()};
}

GroupReceiver* MulticastGroups::find(const Place& place) {
  const std::lock_guard guard{lock_};
  const auto it = receivers_.find(place);
  return it != receivers_.end() ? it->second : nullptr;
}

// One that is there already hears by what has come up since, too.
GroupReceiver* MulticastGroups::receiver(engine::Token& token, const device::Device& device,
                                         const Place& place) {
  if (GroupReceiver* r = find(place)) {
    r->join(device, place.interface);
    return r;
  }
  const auto at = port::Address::from_gid(place.group.address, place.group.port);
  auto fd = port::bind_group(at, place.interface);
  if (!fd.ok()) {
    WEFT_LOG(info, "multicast group %s: %s", at.to_string().c_str(),
             fd.error().to_string().c_str());
    return nullptr;
  }
  auto owned = std::make_unique<GroupReceiver>(
      token, port::UdpSocket{std::move(*fd), drive::DatagramDriver::kBuffer}, place.group);
  if (!owned->join(device, place.interface)) return nullptr;
  GroupReceiver* r = owned.get();
  {
    const std::lock_guard guard{lock_};
    receivers_[place] = r;
  }
  token.runtime().add(token, std::move(owned), r->fd(), true, false);
  return r;
}

Outcome<Ok> MulticastGroups::attach(engine::Token& token, UdTransport& member, const Gid& mgid) {
  const device::Device& device = member.context().device();
  bool any = false;
  for (const Place& place : places(token, device, mgid)) {
    if (GroupReceiver* r = receiver(token, device, place)) {
      r->attach(member, mgid);
      any = true;
    }
  }
  if (!any) return fail(Errc::system);
  return Ok{};
}

void MulticastGroups::detach(engine::Token& token, UdTransport& member, const Gid& mgid) {
  for (const Place& place : places(token, member.context().device(), mgid)) {
    GroupReceiver* r = find(place);
    if (r == nullptr) continue;
    r->detach(member, mgid);
    if (!r->unused()) continue;
    {
      const std::lock_guard guard{lock_};
      receivers_.erase(place);
    }
    token.runtime().remove(token, *r);
    r->close(token);
  }
}

template <class F>
void MulticastGroups::each_of(engine::Engine& engine, F&& f) {
  const std::lock_guard guard{lock_};
  for (const auto& [place, receiver] : receivers_) {
    if (place.engine == &engine) f(*receiver);
  }
}

void MulticastGroups::started(engine::Token& token, UdTransport& member) {
  each_of(engine::Engine::of(token), [&](GroupReceiver& r) { r.started(member); });
}

void MulticastGroups::stopping(engine::Token& token, UdTransport& member) {
  each_of(engine::Engine::of(token), [&](GroupReceiver& r) { r.stopping(member); });
}

}  // namespace weft::verbs
