// A child process, for tests of what one process does to another.
#pragma once

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace weft::test {

// Runs `body` in a child, which tells by a byte on the pipe when it is where it should be.
class Child {
 public:
  explicit Child(const std::function<void(int ready)>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      body(ends[1]);
      pause();
      _exit(1);
    }
    close(ends[1]);
    ready_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill(SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(ready_);
  }
  void await() const {
    char byte;
    EXPECT_EQ(read(ready_, &byte, 1), 1) << "the child gave up";
  }
  uint16_t await_port() const {
    uint16_t port = 0;
    EXPECT_EQ(read(ready_, &port, sizeof port), static_cast<ssize_t>(sizeof port));
    return port;
  }
  void kill(int signal) const { ::kill(pid_, signal); }

 private:
  pid_t pid_;
  int ready_;
};

inline void tell(int fd) {
  (void)!write(fd, "x", 1);
}
inline void tell_port(int fd, rdma_cm_id* id) {
  const uint16_t port = ntohs(rdma_get_src_port(id));
  (void)!write(fd, &port, sizeof port);
}

}  // namespace weft::test
