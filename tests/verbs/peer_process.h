// A peer in a process of its own, to be killed: it connects one queue pair, lends a megabyte of
// memory and then sleeps; its helper thread answers.
#pragma once

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "tests/verbs/endpoint.h"

namespace weft::test {

struct PeerCard {
  uint32_t qpn;
  uint32_t rkey;
  uint64_t address;
  ibv_gid gid;
};

class PeerProcess {
 public:
  static constexpr size_t kMemory = 1 << 20;
  // What is in the peer's memory at first.
  static constexpr uint8_t first_byte(size_t i) { return static_cast<uint8_t>(i * 7 + (i >> 8)); }

  // `more`: what the peer does besides, with its queue pair and memory, before it sleeps. `first`:
  // before it opens the device.
  explicit PeerProcess(
      const std::function<void(ibv_qp*, const ibv_mr*)>& more = [](ibv_qp*, const ibv_mr*) {},
      const QpOptions& options = {}, const std::function<void()>& first = [] {})
      : options_(options) {
    check(socketpair(AF_UNIX, SOCK_STREAM, 0, talk_) == 0, "socketpair");
    pid_ = fork();
    check(pid_ >= 0, "fork");
    if (pid_ > 0) {
      close(talk_[1]);
      return;
    }
    close(talk_[0]);
    try {
      first();
      live(more);
    } catch (const std::exception& e) {
      (void)!write(STDERR_FILENO, e.what(), std::strlen(e.what()));
    }
    _exit(1);
  }
  ~PeerProcess() {
    kill_now();
    close(talk_[0]);
  }
  PeerProcess(const PeerProcess&) = delete;
  PeerProcess& operator=(const PeerProcess&) = delete;

  // Brings the queue pair of this side up with the peer's.
  PeerCard connect_to(ibv_qp* qp, const ibv_gid& own, const QpOptions& o = {}) {
    PeerCard mine{.qpn = qp->qp_num, .gid = own};
    check(write(talk_[0], &mine, sizeof mine) == sizeof mine, "write to the peer");
    PeerCard theirs{};
    check(read(talk_[0], &theirs, sizeof theirs) == sizeof theirs, "read from the peer");
    to_rtr(qp, theirs.qpn, theirs.gid, o);
    to_rts(qp, o);
    return theirs;
  }
  pid_t pid() const { return pid_; }
  void kill_now() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  void live(const std::function<void(ibv_qp*, const ibv_mr*)>& more) {
    const Adapter adapter;
    std::vector<uint8_t> memory(kMemory);
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = first_byte(i);
    const MrPtr mr = adapter.reg(memory.data(), memory.size());
    const CqPtr cq = adapter.cq(256);
    const QpPtr qp = make_qp(adapter, cq.get(), options_);
    PeerCard theirs{};
    check(read(talk_[1], &theirs, sizeof theirs) == sizeof theirs, "read");
    const PeerCard mine{qp->qp_num, mr->rkey, reinterpret_cast<uintptr_t>(memory.data()),
                        own_gid(adapter)};
    to_rtr(qp.get(), theirs.qpn, theirs.gid);
    to_rts(qp.get());
    more(qp.get(), mr.get());
    check(write(talk_[1], &mine, sizeof mine) == sizeof mine, "write");
    for (;;) pause();
  }

  const QpOptions options_;
  int talk_[2];
  pid_t pid_ = -1;
};

}  // namespace weft::test
