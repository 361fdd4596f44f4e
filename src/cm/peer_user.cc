#include "cm/peer_user.h"

#include <unistd.h>

#include "base/log.h"
#include "port/socket_owner.h"
#include "verbs/address_handle.h"

namespace weft::cm {
namespace {

void say_untold(const port::SystemError& why) {
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  if (said.test_and_set(std::memory_order_relaxed)) return;
  WEFT_LOG(warn,
           "the kernel does not tell whose sockets the peers on this host are (netlink and "
           "/proc/net/tcp: %s): any user of this host may connect as a peer that is expected; set "
           "WEFT_PEER_CHECK=address if that is as it should be",
           why.to_string().c_str());
}

void say_refused(const port::Address& from, uid_t user, Qpn peer,
                 const std::optional<port::SocketOwner>& owner) {
  const std::string whose =
      owner ? "belongs to user " + std::to_string(owner->user) : std::string{"nobody has"};
  WEFT_LOG_REFUSAL(
      "user %u of this host connects from %s as QPN 0x%06x, whose TCP port %u %s: refused; "
      "WEFT_PEER_CHECK=address lets any user of this host in",
      user, from.to_string().c_str(), peer.value(), port_of(peer), whose.c_str());
}

}  // namespace

bool speaks_for(const verbs::Context& context, const port::TcpStream& tcp, Qpn peer) {
  const port::Address from = tcp.peer();
  const port::Address here = tcp.local();
  const bool own_address = from.gid() == here.gid() || verbs::is_own(context, from.gid());
  // Other hosts are asked about too, as far as that costs little: an address may have come to this
  // one after the device was opened.
  const auto caller = port::tcp_owner(from, here, own_address);
  if (!caller.ok()) {
    if (own_address) say_untold(caller.error());
    return true;
  }
  if (!*caller) return !own_address;
  if (!(*caller)->held()) return false;
  const uid_t user = (*caller)->user;
  if (user == 0 || user == ::geteuid()) return true;
  port::Address its_port = from;
  its_port.set_port(port_of(peer));
  const auto owner = port::tcp_owner(its_port, {}, true);
  if (owner.ok() && *owner && (*owner)->held() && (*owner)->user == user) return true;
  say_refused(from, user, peer, owner.ok() ? *owner : std::nullopt);
  return false;
}

}  // namespace weft::cm
