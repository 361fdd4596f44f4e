// What bounds a Read over UC: the room that its own socket has, and the tries that the program
// allows (wire.md 9.3, 13).

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <fstream>

#include "tests/abi/cm_datagram_fixture.h"
#include "tests/support/counted.h"
#include "tests/verbs/own_process.h"
#include "tests/verbs/raw_datagrams.h"

namespace {

// What Linux lets a process without rights have, unless it is told otherwise.
constexpr int kUsual = 212'992;
bool usual_buffers = false;

}  // namespace

// A kernel that gives no more. The library's calls come here, too.
extern "C" int setsockopt(int fd, int level, int name, const void* value, socklen_t n) noexcept {
  if (usual_buffers && level == SOL_SOCKET && name == SO_RCVBUFFORCE) {
    errno = EPERM;
    return -1;
  }
  int least = kUsual;
  if (usual_buffers && level == SOL_SOCKET && name == SO_RCVBUF) value = &least;
  return static_cast<int>(::syscall(SYS_setsockopt, fd, level, name, value, n));
}

namespace weft::test {
namespace {

constexpr size_t kMemory = 4 << 20;
constexpr QpOptions kUc{.type = IBV_QPT_UC};

struct Side {
  Side() : memory(kMemory), mr(a.reg(memory.data(), kMemory)), cq(a.cq(16)) {
    qp = make_qp(a, cq.get(), kUc);
  }
  Adapter a;
  std::vector<uint8_t> memory;
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

// Datagrams that the socket on this port had no room for (proc(5)).
uint64_t drops_of(uint16_t port) {
  for (const char* name : {"/proc/self/net/udp6", "/proc/self/net/udp"}) {
    std::ifstream file(name);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      const size_t colon = line.find(':', line.find(':') + 1);
      if (std::stoul(line.substr(colon + 1, 4), nullptr, 16) != port) continue;
      return std::stoull(line.substr(line.find_last_of(' ', line.find_last_not_of(' '))));
    }
  }
  throw std::runtime_error("no such socket");
}

// On one engine, so that a whole answer is on its way before anybody looks at what came.
void reads_with_usual_buffers() {
  usual_buffers = true;
  Side a;
  Side b;
  for (size_t i = 0; i < kMemory; ++i) {
    b.memory[i] = static_cast<uint8_t>(i * 5 + (i >> 8) + (i >> 16));
  }
  connect(a.qp.get(), own_gid(a.a), b.qp.get(), own_gid(b.a), kUc);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {reinterpret_cast<uintptr_t>(b.memory.data()), b.mr->rkey};
  check_errno(post_send(a.qp.get(), wr, {sge(a.memory.data(), kMemory, a.mr.get())}), "post_send");
  const auto done = collect(a.cq.get(), 1);
  check(done.size() == 1 && done[0].status == IBV_WC_SUCCESS, "a Read");
  check(a.memory == b.memory, "its bytes");
  check(drops_of(static_cast<uint16_t>(a.qp->qp_num >> 8)) == 0, "nothing finds the socket full");
}

TEST(UcReadLimits, no_more_is_asked_for_than_the_socket_takes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(with({{"WEFT_ENGINES", "1"}}, reads_with_usual_buffers), ::testing::ExitedWithCode(0),
              "");
}

// rdma_connect(3): "retry_count ... when timeouts occur".
class UcReadTries : public CmTest, public testing::WithParamInterface<uint8_t> {};

TEST_P(UcReadTries, are_as_many_as_the_program_says) {
  ibv_gid here{};
  here.raw[10] = here.raw[11] = 0xff;
  here.raw[12] = 127;
  here.raw[15] = 1;
  RawDatagrams peer(here);
  client = resolved(active.get(), peer.port());
  ASSERT_OK(create_qp(client.get(), IBV_QPT_UC));
  rdma_conn_param p = parameters();
  p.retry_count = GetParam();
  ASSERT_OK(rdma_connect(client.get(), &p));
  peer.accept();
  expect_event(active.get(), RDMA_CM_EVENT_ESTABLISHED);
  std::vector<uint8_t> sink(1000);
  ibv_mr* mr = rdma_reg_msgs(client.get(), sink.data(), sink.size());
  ASSERT_NE(mr, nullptr);
  // Nobody answers.
  const Counted failed("uc_reads_failed");
  ASSERT_OK(rdma_post_read(client.get(), nullptr, sink.data(), sink.size(), mr, 0, 0x1000, 0x77));
  ibv_wc wc{};
  ASSERT_EQ(rdma_get_send_comp(client.get(), &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  unsigned asked = 0;
  while (const auto h = peer.hear(0)) asked += h->data(wire::Opcode::read_request) ? 1 : 0;
  EXPECT_EQ(asked, GetParam());
  failed.expect({{"", 1}});
  EXPECT_OK(rdma_dereg_mr(mr));
}

INSTANTIATE_TEST_SUITE_P(Counts, UcReadTries, testing::Values(1, 3));

}  // namespace
}  // namespace weft::test
