// A socket that takes no more: what waits for it is not lost, and it refers to no memory that the
// program has back. In a network of its own, where a neighbour does not answer: the kernel keeps
// datagrams for it, and they fill the socket's buffer.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/rc_way.h"
#include "tests/verbs/endpoint.h"
#include "tests/verbs/peer_process.h"

namespace weft::test {
namespace {

constexpr size_t kMessage = 1000;
constexpr uint64_t kMessages = 12'000;       // more than the socket takes, in trains or one by one
constexpr size_t kFirst = 14 + 20 + 8 + 32;  // of the payload in a frame: Ethernet, IPv4, UDP, UD
constexpr int kNotHere = 77;

// A message begins with its number, in four bytes.
uint8_t byte_at(uint64_t message, size_t i) {
  if (i < 4) return static_cast<uint8_t>(message >> (8 * i));
  return static_cast<uint8_t>(message * 31 + i * 7 + (i >> 8) + 1);
}

bool run(const char* command) {
  return std::system(command) == 0;  // NOLINT(cert-env33-c)
}

// Frames that reach the other end of the wire: each is one of ours, whole, and comes once. Not in
// order: what is sent while the kernel lets go of what it kept for the neighbour overtakes that.
class Wire {
 public:
  Wire() : fd_(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_IP))) {
    const int size = 64 << 20;
    (void)::setsockopt(fd_, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    check(fd_ >= 0 && ::setsockopt(fd_, SOL_SOCKET, SO_BINDTODEVICE, "wire1", 6) == 0, "packets");
  }
  ~Wire() { ::close(fd_); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Takes what has come. Throws where something is not as it was sent.
  void look() {
    std::vector<uint8_t> frame(1 << 17);
    for (;;) {
      const ssize_t n = ::recv(fd_, frame.data(), frame.size(), MSG_DONTWAIT);
      if (n < 0) return;
      if (n < static_cast<ssize_t>(kFirst + kMessage) || frame[23] != IPPROTO_UDP) continue;
      // A train that was not cut up yet has the UD header of each in it.
      const auto all = static_cast<size_t>(n) - kFirst + 32;
      for (size_t at = kFirst; at - kFirst + 32 + kMessage <= all; at += 32 + kMessage) {
        uint32_t message = 0;
        std::memcpy(&message, &frame[at], 4);
        check(message < kMessages && !seen_[message], "a message that was sent, once");
        for (size_t i = 0; i < kMessage; ++i) {
          check(frame[at + i] == byte_at(message, i), "a byte of a message");
        }
        seen_[message] = true;
        ++messages_;
        last_ = std::max<uint64_t>(last_, message);
      }
    }
  }

  uint64_t messages() const { return messages_; }
  uint64_t last() const { return last_; }

 private:
  int fd_;
  std::vector<bool> seen_ = std::vector<bool>(kMessages);
  uint64_t messages_ = 0;
  uint64_t last_ = 0;
};

// The child's part. 0: all as it should be.
int under_pressure() {
  if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return kNotHere;
  if (!run("ip link set lo up && ip link add wire0 type veth peer name wire1 && ip address add "
           "192.0.2.1/24 dev wire0 && ip link set wire0 up && ip link set wire1 up")) {
    return kNotHere;
  }
  // The kernel keeps more for a silent neighbour than the socket may have under way.
  {
    std::ofstream keep("/proc/sys/net/ipv4/neigh/wire0/unres_qlen_bytes");
    keep << 100'000'000;
    if (!keep.flush()) return kNotHere;
  }
  Wire wire;
  const Adapter a;
  const size_t bytes = kMessages * kMessage;
  auto* memory = static_cast<uint8_t*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  check(memory != MAP_FAILED, "mmap");
  for (size_t i = 0; i < bytes; ++i) memory[i] = byte_at(i / kMessage, i % kMessage);
  MrPtr mr = a.reg(memory, bytes);
  const CqPtr cq = a.cq(kMessages);
  const QpPtr qp = make_qp(a, cq.get(), {.depth = kMessages, .type = IBV_QPT_UD});
  to_rtr(qp.get(), 0, {});
  to_rts(qp.get());
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
  const uint8_t silent[] = {192, 0, 2, 9};
  std::memcpy(&attr.grh.dgid.raw[12], silent, sizeof silent);
  ibv_ah* ah = ibv_create_ah(a.pd.get(), &attr);
  check(ah != nullptr, "ibv_create_ah");
  for (uint64_t i = 0; i < kMessages; ++i) {
    ibv_send_wr wr{};
    wr.wr_id = i;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.ud = {.ah = ah, .remote_qpn = 0x800001, .remote_qkey = 1};
    check_errno(post_send(qp.get(), wr, {sge(memory + i * kMessage, kMessage, mr.get())}), "post");
  }
  // What the socket takes completes; the rest waits.
  uint64_t done = 0;
  uint64_t failed = 0;
  const auto poll = [&] {
    ibv_wc wc[64];
    const int n = ibv_poll_cq(cq.get(), 64, wc);
    for (int i = 0; i < n; ++i) {
      check(wc[i].wr_id == done + failed, "the order of completions");
      if (wc[i].status == IBV_WC_SUCCESS) {
        check(failed == 0, "a success behind a failure");
        ++done;
      } else {
        ++failed;
      }
    }
    return n;
  };
  for (int quiet = 0; quiet<20'000; quiet = poll()> 0 ? 0 : quiet + 1) {
  }
  check(done > 0 && done < kMessages && failed == 0, "some wait");
  // The program takes its memory back, against the rules, for its requests are not complete. What
  // the train holds goes out all the same; what is behind it finds no region.
  mr.reset();
  check(::munmap(memory, bytes) == 0, "munmap");
  check(run("ip neighbour replace 192.0.2.9 lladdr 02:00:00:00:00:09 nud permanent dev wire0"),
        "a neighbour");
  while (done + failed < kMessages) poll();
  check(failed > 0, "what was in no train finds no region");
  for (int i = 0; i < 1000 && wire.messages() < done; ++i) {
    wire.look();
    ::usleep(1000);
  }
  check(wire.messages() == done && wire.last() == done - 1,
        "the messages that completed were sent");
  ibv_destroy_ah(ah);
  return 0;
}

TEST(DatagramPressure, waits_loses_nothing_and_holds_no_memory_of_the_program) {
  if (ud_by_channels()) GTEST_SKIP() << "UD goes by channels (WEFT_UD=reliable)";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int result = 1;
    try {
      result = under_pressure();
    } catch (const std::exception& e) {
      (void)!write(STDERR_FILENO, e.what(), std::strlen(e.what()));
      (void)!write(STDERR_FILENO, "\n", 1);
    }
    _exit(result);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNotHere) GTEST_SKIP() << "no network of its own can be made here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace weft::test
