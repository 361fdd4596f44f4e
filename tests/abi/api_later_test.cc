// What rdma-core 59 and later declare, and Debian 12's headers do not.
#include <cstring>

#include "tests/abi/api_fixture.h"

extern "C" {
struct ibv_buf;
struct ibv_mr_init_attr {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  void* dmah;
  ibv_buf* buf;
};
ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr);
void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buf);
void ibv_free_buf(ibv_buf* buf);
ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, size_t length, int access);
int ibv_query_port_speed(ibv_context* context, uint32_t port, uint64_t* speed);
}

namespace weft::test {
namespace {

constexpr uint64_t kHasIova = 1;
constexpr uint64_t kHasAddress = 2;
constexpr uint64_t kHasFile = 4;
constexpr uint64_t kHasBuffer = 32;

using LaterCalls = PairTest;

TEST_F(LaterCalls, RegionsByTheirAttributes) {
  std::array<std::byte, 4096> memory{};
  ibv_mr_init_attr attr{};
  attr.length = memory.size();
  attr.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  attr.comp_mask = kHasAddress;
  attr.addr = memory.data();
  ibv_mr* mr = ibv_reg_mr_ex(pd.get(), &attr);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, memory.size());
  EXPECT_EQ(mr->pd, pd.get());
  EXPECT_NE(mr->rkey, 0U);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);

  attr.comp_mask = kHasAddress | kHasFile;
  EXPECT_NO_OBJECT(EOPNOTSUPP, ibv_reg_mr_ex(pd.get(), &attr));
  attr.comp_mask = kHasIova;
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_mr_ex(pd.get(), &attr));
}

// A peer finds the memory at the address that was named, and not at its own.
TEST_F(LaterCalls, RegionsAtAnAddressOfTheirOwn) {
  constexpr uint64_t kNamed = 0x10000;
  constexpr uint32_t kLength = 512;
  fill(a.memory.data(), kLength, 3);
  ibv_mr_init_attr attr{};
  attr.length = kMemory;
  attr.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  attr.comp_mask = kHasAddress | kHasIova;
  attr.addr = b.memory.data();
  attr.iova = kNamed;
  const Owned<ibv_mr> mr{ibv_reg_mr_ex(pd.get(), &attr)};
  ASSERT_NE(mr, nullptr);
  ibv_sge source = a.sge(0, kLength);
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.sg_list = &source;
  wr.num_sge = 1;
  wr.wr.rdma.remote_addr = kNamed + 100;
  wr.wr.rdma.rkey = mr->rkey;
  ASSERT_EQ(a.post(wr), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(filled(b.memory.data() + 100, kLength, 3));
  wr.wr.rdma.remote_addr = b.address(100);
  ASSERT_EQ(a.post(wr), 0);
  EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_REM_ACCESS_ERR);
}

// Memory that the library chooses, as ibv_rc_pingpong of rdma-core 64 has it.
TEST_F(LaterCalls, BuffersOfTheLibrary) {
  constexpr size_t kSize = 10000;
  constexpr uint32_t kLength = 512;
  ibv_buf* buf = nullptr;
  auto* memory = static_cast<uint8_t*>(ibv_alloc_buf(pd.get(), kSize, &buf));
  ASSERT_NE(memory, nullptr);
  ASSERT_NE(buf, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0U);
  std::memset(memory, 0, kSize);
  {
    const Owned<ibv_mr> mr{ibv_reg_buf_mr(pd.get(), buf, memory, kSize,
                                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)};
    ASSERT_NE(mr, nullptr);
    EXPECT_EQ(mr->addr, memory);
    EXPECT_EQ(mr->length, kSize);
    fill(a.memory.data(), kLength, 3);
    ibv_sge source = a.sge(0, kLength);
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &source;
    wr.num_sge = 1;
    wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(memory) + 100;
    wr.wr.rdma.rkey = mr->rkey;
    ASSERT_EQ(a.post(wr), 0);
    EXPECT_EQ(next_completion(a.cq.get()).status, IBV_WC_SUCCESS);
    EXPECT_TRUE(filled(memory + 100, kLength, 3));
  }
  ibv_free_buf(buf);
}

// A region of such a buffer lies within it and has its protection domain.
TEST_F(LaterCalls, RegionsOfABufferStayInIt) {
  constexpr size_t kSize = 8192;
  ibv_buf* buf = nullptr;
  auto* memory = static_cast<uint8_t*>(ibv_alloc_buf(pd.get(), kSize, &buf));
  ASSERT_NE(memory, nullptr);
  ibv_mr* end = ibv_reg_buf_mr(pd.get(), buf, memory + 4096, 4096, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(end->addr, memory + 4096);
  EXPECT_EQ(ibv_dereg_mr(end), 0);

  EXPECT_NO_OBJECT(EINVAL, ibv_reg_buf_mr(pd.get(), buf, memory, kSize + 1, 0));
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_buf_mr(pd.get(), buf, memory + 4096, 4097, 0));
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_buf_mr(pd.get(), buf, memory - 1, 2, 0));
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_buf_mr(pd.get(), buf, memory + 1, SIZE_MAX, 0));
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_buf_mr(pd.get(), nullptr, memory, kSize, 0));
  const Owned<ibv_pd> other{ibv_alloc_pd(context.get())};
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_buf_mr(other.get(), buf, memory, kSize, 0));
  ibv_mr_init_attr attr{};
  attr.length = kSize;
  attr.comp_mask = kHasBuffer;
  attr.addr = memory;
  attr.buf = buf;
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_mr_ex(pd.get(), &attr));  // no address
  attr.comp_mask = kHasBuffer | kHasAddress | kHasFile;
  EXPECT_NO_OBJECT(EINVAL, ibv_reg_mr_ex(pd.get(), &attr));  // an address and a file
  ibv_free_buf(buf);
}

// As ibv_query_port says it in words of its own: lanes and what each of them has.
TEST_F(LaterCalls, TheSpeedOfThePort) {
  ibv_port_attr port;
  ASSERT_EQ(ibv_query_port(context.get(), 1, &port), 0);
  ASSERT_EQ(port.active_width, 2) << "four lanes";
  ASSERT_EQ(port.active_speed, 32) << "of 25 Gb/s";
  uint64_t speed = 0;
  EXPECT_EQ(ibv_query_port_speed(context.get(), 1, &speed), 0);
  EXPECT_EQ(speed, 1000U) << "x 100 Mb/s";
  EXPECT_REFUSED(EINVAL, ibv_query_port_speed(context.get(), 2, &speed));
}

}  // namespace
}  // namespace weft::test
