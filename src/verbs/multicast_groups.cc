#include "verbs/multicast_groups.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/undo.h"
#include "engine/engine.h"
#include "port/udp_bind.h"
#include "port/udp_socket.h"
#include "verbs/address_handle.h"
#include "verbs/ud_transport.h"
#include "wdp/multicast.h"

namespace weft::verbs {
namespace {

bool stays_on_link(const Gid& group) {
  return !group.is_ipv4() && (group.raw[1] & 0x0f) <= 2;
}

}  // namespace

// --- a group's socket

GroupReceiver::GroupReceiver(engine::Token& token, std::unique_ptr<port::DatagramPort> socket,
                             const wdp::Endpoint& group)
    : DatagramSender(false),
      group_(group),
      driver_(drive::DatagramDriver::start(token, *this, std::move(socket), group.address)) {}

bool GroupReceiver::join(const device::Device& device, uint32_t interface) {
  const auto at = port::Address::from_gid(group_.address, group_.port);
  std::set<uint32_t> tried;
  for (const device::GidEntry& e : device.gids) {
    if (e.gid.is_ipv4() != group_.address.is_ipv4()) continue;
    if (interface != 0 && e.ifindex != interface) continue;
    if (joined_.contains(e.ifindex) || !tried.insert(e.ifindex).second) continue;
    const int why = port::join_group(driver_.properties().fd, at, e.gid, e.ifindex);
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
  if (it == members_.end()) return;
  it->second.erase(mgid);  // is not there where attach() had no memory for it
  if (!it->second.empty()) return;
  stopping(member);
  members_.erase(it);
}

void GroupReceiver::started(UdTransport& member) {
  if (!members_.contains(&member) || member.queue() == nullptr) return;
  driver_.wdp_socket().demux().attach(group_.address, *member.queue());
}

void GroupReceiver::stopping(UdTransport& member) {
  if (!members_.contains(&member) || member.queue() == nullptr) return;
  driver_.wdp_socket().demux().detach(group_.address, *member.queue());
}

void GroupReceiver::close(engine::Token& token) {
  driver_.remove(token, *this);
  driver_.close(token);
}

// A process's contexts know the addresses of the times when they were opened.
bool GroupReceiver::group_heard(engine::Token&, drive::DatagramDriver&, const Gid& from) {
  driver_.schedule_settling(*this);
  const Context* asked = nullptr;
  return std::any_of(members_.begin(), members_.end(), [&](const auto& m) {
    const Context& c = m.first->context();
    return std::exchange(asked, &c) != &c && is_own(c, from);
  });
}

void GroupReceiver::settled(engine::Token& token) {
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
  return it != receivers_.end() ? it->second.get() : nullptr;
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
      token, std::make_unique<port::UdpSocket>(std::move(*fd), drive::DatagramDriver::kBuffer),
      place.group);
  Undo listening{[&] { owned->close(token); }};
  if (!owned->join(device, place.interface)) return nullptr;
  const std::lock_guard guard{lock_};
  GroupReceiver* r = (receivers_[place] = std::move(owned)).get();
  listening.done();
  return r;
}

Outcome<Ok> MulticastGroups::attach(engine::Token& token, UdTransport& member, const Gid& mgid) {
  const device::Device& device = member.context().device();
  bool any = false;
  Undo attached{[&] { detach(token, member, mgid); }};
  for (const Place& place : places(token, device, mgid)) {
    if (GroupReceiver* r = receiver(token, device, place)) {
      r->attach(member, mgid);
      any = true;
    }
  }
  attached.done();
  if (!any) return fail(Errc::system);
  return Ok{};
}

// What the member is attached to is asked of the receivers: there may be no memory for a list of
// places, and a queue pair leaves all the same.
void MulticastGroups::detach(engine::Token& token, UdTransport& member, const Gid& mgid) {
  engine::Engine& engine = engine::Engine::of(token);
  each_of(engine, [&](GroupReceiver& r) { r.detach(member, mgid); });
  while (const auto unused = take_unused(engine)) unused->close(token);
}

std::unique_ptr<GroupReceiver> MulticastGroups::take_unused(const engine::Engine& engine) {
  const std::lock_guard guard{lock_};
  const auto it = std::find_if(receivers_.begin(), receivers_.end(), [&](const auto& r) {
    return r.first.engine == &engine && r.second->unused();
  });
  return it != receivers_.end() ? std::move(receivers_.extract(it).mapped()) : nullptr;
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
