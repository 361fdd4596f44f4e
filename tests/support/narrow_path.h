// A way between two hosts whose middle carries less than its ends: four network namespaces, for
// tests as root.
//
//   near ── 9000 ── router ── 1500 ── router ── 9000 ── far
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <sstream>
#include <string>

namespace weft::test {

// Whoever makes one does so in a process of his own, with one thread: run_apart().
class NarrowPath {
 public:
  static constexpr const char* kNear = "192.0.2.1";
  static constexpr const char* kFar = "203.0.113.1";

  // `icmp`: routers say what they drop for its size.
  explicit NarrowPath(bool icmp) {
    made_ = ::geteuid() == 0 && make_space(near_) && make_space(left_) && make_space(right_) &&
            make_space(far_) && lay(icmp);
  }
  NarrowPath(const NarrowPath&) = delete;
  NarrowPath& operator=(const NarrowPath&) = delete;
  ~NarrowPath() {
    for (const int fd : {near_, left_, right_, far_}) {
      if (fd >= 0) ::close(fd);
    }
  }

  // False: not here.
  bool made() const { return made_; }
  // This thread, and those that it starts, are there from now on.
  bool enter_near() const { return enter(near_); }
  bool enter_far() const { return enter(far_); }

  // From now on the near one's router gives its packets another source address. Afterwards this
  // thread is near.
  bool translate() const {
    return enter(left_) &&
           run("nft add table ip n && nft 'add chain ip n post { type nat hook postrouting "
               "priority "
               "100 ; }' && nft add rule ip n post oifname middle masquerade") &&
           enter(near_);
  }

  // Packets that a router had no way for as they were, and those that it cut up (RFC 4293).
  struct Frags {
    long fails = -1;
    long creates = -1;
  };
  Frags towards_far() const { return frags(left_); }
  Frags towards_near() const { return frags(right_); }

 private:
  static bool run(const std::string& command) {
    return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c)
  }
  static bool enter(int space) { return ::setns(space, CLONE_NEWNET) == 0; }
  static bool make_space(int& fd) {
    if (::unshare(CLONE_NEWNET) != 0) return false;
    fd = ::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && run("ip link set lo up");
  }
  // A wire from here, where its end is `name`, to `name`_end there.
  static bool wire(const std::string& name, int there, int mtu) {
    const std::string space =
        "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(there);
    const std::string size = std::to_string(mtu);
    return run("ip link add " + name + " type veth peer name " + name + "_end && ip link set " +
               name + "_end mtu " + size + " netns " + space + " && ip link set " + name + " mtu " +
               size + " up");
  }
  static bool router(bool icmp) {
    return run("echo 1 > /proc/sys/net/ipv4/ip_forward") &&
           (icmp || run("nft add table ip f && nft 'add chain ip f out { type filter hook output "
                        "priority 0 ; }' && nft add rule ip f out ip protocol icmp drop"));
  }
  bool lay(bool icmp) const {
    return enter(left_) && wire("near", near_, 9000) && wire("middle", right_, 1500) &&
           run("ip address add 192.0.2.2/24 dev near && ip address add 198.51.100.1/24 dev "
               "middle") &&
           router(icmp) && enter(right_) && wire("far", far_, 9000) &&
           run("ip address add 198.51.100.2/24 dev middle_end && ip link set middle_end up && ip "
               "address add "
               "203.0.113.2/24 dev far && ip route add 192.0.2.0/24 via 198.51.100.1") &&
           router(icmp) && enter(far_) &&
           run("ip address add 203.0.113.1/24 dev far_end && ip link set far_end up && ip route "
               "add "
               "default via 203.0.113.2") &&
           enter(near_) &&
           run("ip address add 192.0.2.1/24 dev near_end && ip link set near_end up && ip route "
               "add default "
               "via 192.0.2.2") &&
           enter(left_) && run("ip route add 203.0.113.0/24 via 198.51.100.2") && enter(near_);
  }
  static Frags frags(int space) {
    Frags f;
    if (!enter(space)) return f;
    std::ifstream file("/proc/thread-self/net/snmp");
    std::string names;
    std::string values;
    if (!std::getline(file, names) || !std::getline(file, values)) return f;
    std::istringstream n(names);
    std::istringstream v(values);
    for (std::string name, value; n >> name && v >> value;) {
      if (name == "FragFails") f.fails = std::stol(value);
      if (name == "FragCreates") f.creates = std::stol(value);
    }
    return f;
  }

  int near_ = -1;
  int left_ = -1;
  int right_ = -1;
  int far_ = -1;
  bool made_ = false;
};

constexpr int kNotHere = 77;

// Runs `body` in a process of its own: what it returns, or 1 and a sentence where it throws.
template <class F>
int run_apart(F&& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int result = 1;
    try {
      result = body();
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    ::_exit(result);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace weft::test
