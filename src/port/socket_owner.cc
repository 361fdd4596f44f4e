#include "port/socket_owner.h"

#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>

#include "base/number_in.h"
#include "port/calls.h"

namespace weft::port {
namespace {

using Answer = Result<std::optional<SocketOwner>, SystemError>;

// The states of <netinet/tcp.h>, which and <linux/tcp.h> exclude each other.
constexpr unsigned kListen = 10;

// --- netlink

struct Question {
  nlmsghdr head;
  inet_diag_req_v2 body;
};

void set(const Gid& gid, __be32 (&words)[4]) {
  if (gid.is_ipv4()) {
    words[0] = htonl(gid.ipv4());
  } else {
    std::memcpy(words, gid.raw.data(), gid.raw.size());
  }
}

Question question(const Address& local, const Address& remote) {
  Question q{};
  q.head.nlmsg_len = sizeof q;
  q.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  q.head.nlmsg_flags = NLM_F_REQUEST;
  q.body.sdiag_family = local.gid().is_ipv4() ? AF_INET : AF_INET6;
  q.body.sdiag_protocol = IPPROTO_TCP;
  q.body.idiag_states = ~0U;
  inet_diag_sockid& id = q.body.id;
  id.idiag_sport = htons(local.port());
  id.idiag_dport = htons(remote.port());
  set(local.gid(), id.idiag_src);
  if (remote.valid()) set(remote.gid(), id.idiag_dst);
  id.idiag_if = local.scope();
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return q;
}

Answer by_netlink(const Address& local, const Address& remote) {
  const Fd fd = raise(
      Fd{calls::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG)});
  if (!fd.valid()) return fail(SystemError{errno, "socket"});
  const Question q = question(local, remote);
  // To nobody in particular is to the kernel, which answers before the call returns.
  if (calls::send(fd.get(), &q, sizeof q, 0) < 0) return fail(SystemError{errno, "send"});
  alignas(nlmsghdr) std::array<std::byte, 1024> answer;
  const ssize_t n = calls::recv(fd.get(), answer.data(), answer.size(), 0);
  if (n < 0) return fail(SystemError{errno, "recv"});
  const auto size = static_cast<size_t>(n);
  nlmsghdr head;
  if (size < sizeof head) return fail(SystemError{EPROTO, "sock_diag"});
  std::memcpy(&head, answer.data(), sizeof head);
  const std::byte* const body = answer.data() + NLMSG_HDRLEN;
  if (head.nlmsg_type == NLMSG_ERROR && size >= NLMSG_HDRLEN + sizeof(nlmsgerr)) {
    nlmsgerr e;
    std::memcpy(&e, body, sizeof e);
    if (e.error == -ENOENT) return std::optional<SocketOwner>{};
    return fail(SystemError{-e.error, "sock_diag"});
  }
  if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY || size < NLMSG_HDRLEN + sizeof(inet_diag_msg)) {
    return fail(SystemError{EPROTO, "sock_diag"});
  }
  inet_diag_msg m;
  std::memcpy(&m, body, sizeof m);
  // Where there is no such connection the kernel shows who listens for it.
  const bool asked =
      remote.valid() ? m.id.idiag_dport == htons(remote.port()) : m.idiag_state == kListen;
  if (!asked) return std::optional<SocketOwner>{};
  return std::optional{SocketOwner{.user = m.idiag_uid, .inode = m.idiag_inode}};
}

// --- /proc

std::string_view cut(std::string_view& text, char end) {
  const size_t at = std::min(text.find(end), text.size());
  const std::string_view front = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return front;
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return cut(line, ' ');
}

struct Place {
  Gid gid;
  uint16_t port = 0;
  bool any = false;
};

// "0100007F:1F90": words of the address as the machine reads them, and the port.
std::optional<Place> place(std::string_view text) {
  const std::string_view address = cut(text, ':');
  const auto port = number_in<uint64_t>(text, 16);
  if (!port || *port > UINT16_MAX || (address.size() != 8 && address.size() != 32)) return {};
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < address.size() / 8; ++i) {
    const auto word = number_in<uint64_t>(address.substr(8 * i, 8), 16);
    if (!word) return {};
    words[i] = static_cast<uint32_t>(*word);
  }
  Place p{.port = static_cast<uint16_t>(*port), .any = words == std::array<uint32_t, 4>{}};
  if (address.size() == 8) {
    p.gid = Gid::from_ipv4(ntohl(words[0]));
  } else {
    std::memcpy(p.gid.raw.data(), words.data(), sizeof words);
  }
  return p;
}

// How well a line answers the question: an exact address before a wildcard, which is to be of the
// family asked for where both are there.
enum class Fit : uint8_t { none, any_family, any, exact };

Fit fit(const Place& local, const Place& remote, unsigned state, bool of_ipv6,
        const Address& asked_local, const Address& asked_remote) {
  if (local.port != asked_local.port()) return Fit::none;
  const bool same = local.gid == asked_local.gid();
  if (asked_remote.valid()) {
    const bool there = remote.port == asked_remote.port() && remote.gid == asked_remote.gid();
    return same && there ? Fit::exact : Fit::none;
  }
  if (state != kListen) return Fit::none;
  if (same) return Fit::exact;
  if (!local.any) return Fit::none;
  if (of_ipv6 != asked_local.gid().is_ipv4()) return Fit::any;
  return of_ipv6 ? Fit::any_family : Fit::none;
}

struct Found {
  Fit fit = Fit::none;
  SocketOwner owner;
};

Found found_in(std::string_view text, const Address& local, const Address& remote) {
  Found best;
  while (!text.empty() && best.fit != Fit::exact) {
    std::string_view line = cut(text, '\n');
    next_word(line);  // its number
    const std::string_view here = next_word(line);
    const auto at = place(here);
    const auto to = place(next_word(line));
    const auto state = number_in<uint64_t>(next_word(line), 16);
    for (int i = 0; i < 3; ++i) next_word(line);  // queues, timer, retransmissions
    const auto user = number_in<uint64_t>(next_word(line), 10);
    next_word(line);  // timeouts
    const auto inode = number_in<uint64_t>(next_word(line), 10);
    if (!at || !to || !state || !user || !inode) continue;
    const Fit f = fit(*at, *to, static_cast<unsigned>(*state), here.size() > 8 + 5, local, remote);
    if (f > best.fit) {
      best = {f, {.user = static_cast<uid_t>(*user), .inode = *inode}};
    }
  }
  return best;
}

Result<std::string, SystemError> contents_of(const char* path) {
  const Fd file = raise(Fd{calls::open(path, O_RDONLY | O_CLOEXEC, 0)});
  if (!file.valid()) return fail(SystemError{errno, path});
  std::string text;
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t n = calls::read(file.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(SystemError{errno, path});
    if (n == 0) return text;
    text.append(piece.data(), static_cast<size_t>(n));
  }
}

// The thread's own network namespace, which need not be that of the process's first thread.
Answer by_proc(const Address& local, const Address& remote) {
  const auto ipv4 = contents_of("/proc/thread-self/net/tcp");
  if (!ipv4.ok()) return fail(ipv4.error());
  Found best = found_in(*ipv4, local, remote);
  // Sockets of IPv6 also have connections of IPv4. A host without IPv6 has no such file.
  if (const auto ipv6 = contents_of("/proc/thread-self/net/tcp6"); ipv6.ok()) {
    const Found other = found_in(*ipv6, local, remote);
    if (other.fit > best.fit) best = other;
  }
  return best.fit == Fit::none ? std::nullopt : std::optional{best.owner};
}

}  // namespace

std::optional<int> own_descriptor(const SocketOwner& socket) {
  const std::string wanted = "socket:[" + std::to_string(socket.inode) + "]";
  return calls::through_libc([&]() -> std::optional<int> {
    const std::unique_ptr<DIR, int (*)(DIR*)> all{::opendir("/proc/self/fd"), ::closedir};
    while (const dirent* entry = all != nullptr ? ::readdir(all.get()) : nullptr) {
      std::array<char, 64> target{};
      const ssize_t n =
          ::readlinkat(::dirfd(all.get()), entry->d_name, target.data(), target.size());
      if (n <= 0 || std::string_view{target.data(), static_cast<size_t>(n)} != wanted) continue;
      if (const auto fd = number_in<uint64_t>(entry->d_name, 10)) return static_cast<int>(*fd);
    }
    return {};
  });
}

std::optional<SocketOwner> tcp_owner_in(std::string_view proc_net_tcp, const Address& local,
                                        const Address& remote) {
  const Found best = found_in(proc_net_tcp, local, remote);
  return best.fit == Fit::none ? std::nullopt : std::optional{best.owner};
}

Answer tcp_owner(const Address& local, const Address& remote, bool thorough) {
  // A kernel without tcp_diag knows of no socket, in the words of one that has none like this.
  static std::atomic<bool> netlink_knows{false};
  const Answer told = by_netlink(local, remote);
  if (told.ok() && *told) netlink_knows.store(true, std::memory_order_relaxed);
  const bool believed = told.ok() && (*told || netlink_knows.load(std::memory_order_relaxed));
  return believed || !thorough ? told : by_proc(local, remote);
}

}  // namespace weft::port
