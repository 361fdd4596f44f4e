// Two hosts on one wire: network namespaces with an IPv4 and a link-local IPv6 address each, for
// tests as root.
//
//   near 192.0.2.1, fe80::1 ── wire, 1500 ── fe80::2, 192.0.2.2 far
#pragma once

#include "tests/support/narrow_path.h"

namespace weft::test {

// Whoever makes one does so in a process of his own, with one thread: run_apart().
class TwoHosts {
 public:
  TwoHosts() { made_ = ::geteuid() == 0 && make_space(near_) && make_space(far_) && lay(); }
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;
  ~TwoHosts() {
    for (const int fd : {near_, far_}) {
      if (fd >= 0) ::close(fd);
    }
  }

  // False: not here.
  bool made() const { return made_; }
  // This thread, and those that it starts, are there from now on.
  bool enter_near() const { return ::setns(near_, CLONE_NEWNET) == 0; }
  bool enter_far() const { return ::setns(far_, CLONE_NEWNET) == 0; }
  // A rule of nft about what comes in to the far one, or goes out from it, such as "udp dport 7
  // drop". Afterwards this thread is near.
  enum class Hook : uint8_t { input, output };
  bool filter_far(Hook hook, const std::string& rule) const {
    const std::string name = hook == Hook::input ? "input" : "output";
    return enter_far() &&
           run("nft add table inet f && nft 'add chain inet f " + name + " { type filter hook " +
               name + " priority 0 ; }' && nft add rule inet f " + name + " " + rule) &&
           enter_near();
  }
  // Afterwards this thread is near.
  bool set_mtu(int mtu) const {
    const std::string set = "ip link set wire mtu " + std::to_string(mtu);
    return enter_far() && run(set) && enter_near() && run(set);
  }

 private:
  static bool run(const std::string& command) {
    return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c)
  }
  static bool make_space(int& fd) {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    fd = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && run("ip link set lo up");
  }
  // Without the addresses that the kernel would choose.
  static bool address(const std::string& number) {
    return run(
        "ip link set wire addrgenmode none && ip link set wire up && ip address add "
        "192.0.2." +
        number + "/24 dev wire && ip address add fe80::" + number + "/64 dev wire nodad");
  }
  bool lay() const {
    const std::string far = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(far_);
    return enter_near() && run("ip link add wire type veth peer name wire netns " + far) &&
           address("1") && enter_far() && address("2") && enter_near();
  }

  int near_ = -1;
  int far_ = -1;
  bool made_ = false;
};

}  // namespace weft::test
