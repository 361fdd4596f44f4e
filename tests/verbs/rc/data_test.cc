// Data is right: random Writes, Reads and Sends of 0 bytes to 64 MB at random offsets, through 1 to
// 16 queue pairs, and not a byte beside them changes. A model of both memories is kept and compared
// with the real ones.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "base/random.h"
#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

class DataTest : public testing::TestWithParam<uint64_t> {};

struct Memory {
  Memory(const Adapter& a, size_t n, uint64_t salt) : bytes(n) {
    SeededRandom random{salt};
    for (auto& b : bytes) b = static_cast<uint8_t>(random.next() >> 17);
    model = bytes;
    mr = a.reg(bytes.data(), n);
  }
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> model;
  MrPtr mr;
};

// Ranges that are under way; two operations never touch the same bytes at once, for then the
// outcome would be open.
class Busy {
 public:
  bool claim(size_t from, size_t n) {
    if (n == 0) return true;
    auto it = ranges_.lower_bound(from);
    if (it != ranges_.end() && it->first < from + n) return false;
    if (it != ranges_.begin() && std::prev(it)->first + std::prev(it)->second > from) return false;
    ranges_[from] = n;
    return true;
  }
  void release(size_t from, size_t n) {
    if (n > 0) ranges_.erase(from);
  }

 private:
  std::map<size_t, size_t> ranges_;
};

struct Operation {
  ibv_wr_opcode opcode;
  size_t here, there, size;
};

// Sizes from nothing to 64 MB; each power of two as likely as the next.
size_t draw_size(Random& random, size_t most) {
  const uint64_t r = random.next();
  if (r % 16 == 0) return 0;
  const size_t top = size_t{1} << ((r >> 8) % 27);
  return std::min<size_t>(most, top - (r >> 40) % top);
}

TEST_P(DataTest, every_byte_and_the_bytes_around) {
  const uint64_t seed = GetParam();
  SeededRandom random{seed};
  const Adapter left;
  const Adapter right;
  const size_t pairs = 1 + random.next() % 16;
  const size_t size = seed % 3 == 0 ? (size_t{80} << 20) : (size_t{8} << 20);
  Memory here{left, size, seed * 2 + 1};
  Memory there{right, size, seed * 2 + 2};
  const CqPtr left_cq = left.cq(4096);
  const CqPtr right_cq = right.cq(4096);
  std::vector<QpPtr> a;
  std::vector<QpPtr> b;
  for (size_t i = 0; i < pairs; ++i) {
    a.push_back(make_qp(left, left_cq.get()));
    b.push_back(make_qp(right, right_cq.get()));
    connect(a[i].get(), own_gid(left), b[i].get(), own_gid(right));
  }

  Busy busy_here;
  Busy busy_there;
  std::map<uint64_t, Operation> under_way;
  std::map<uint64_t, Operation> receives;
  size_t moved = 0;
  uint64_t next_id = 1;
  const size_t budget = size_t{300} << 20;
  for (size_t posted = 0; posted < 400 || !under_way.empty() || !receives.empty();) {
    if (posted < 400 && under_way.size() < 24 && moved < budget) {
      Operation op{};
      const uint64_t kind = random.next() % 4;
      op.opcode = kind == 0 ? IBV_WR_RDMA_READ : kind == 1 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
      op.size = draw_size(random, std::min<size_t>(size, size_t{64} << 20));
      op.here = random.next() % (size - op.size + 1);
      op.there = random.next() % (size - op.size + 1);
      if (busy_here.claim(op.here, op.size)) {
        if (!busy_there.claim(op.there, op.size)) {
          busy_here.release(op.here, op.size);
        } else {
          const size_t pair = random.next() % pairs;
          const uint64_t id = next_id++;
          // Cut into up to four segments.
          std::vector<ibv_sge> list;
          for (size_t at = 0; at < op.size || list.empty();) {
            const size_t n = list.size() == 3
                                 ? op.size - at
                                 : std::min(op.size - at, random.next() % (op.size + 1));
            list.push_back(sge(here.bytes.data() + op.here + at, n, here.mr.get()));
            at += n;
            if (list.size() == 4) break;
          }
          if (op.opcode == IBV_WR_SEND) {
            receives[id] = op;
            const size_t half = op.size / 2;
            ASSERT_EQ(post_recv(b[pair].get(), id,
                                {sge(there.bytes.data() + op.there, half, there.mr.get()),
                                 sge(there.bytes.data() + op.there + half, op.size - half,
                                     there.mr.get())}),
                      0);
          }
          ibv_send_wr wr{};
          wr.wr_id = id;
          wr.opcode = op.opcode;
          wr.send_flags = IBV_SEND_SIGNALED;
          wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(there.bytes.data()) + op.there;
          wr.wr.rdma.rkey = there.mr->rkey;
          ASSERT_EQ(post_send(a[pair].get(), wr, list), 0);
          under_way[id] = op;
          moved += op.size;
          ++posted;
        }
      }
    } else if (moved >= budget && under_way.empty() && receives.empty()) {
      break;
    }
    ibv_wc wc[8];
    int n = ibv_poll_cq(left_cq.get(), 8, wc);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS) << "wr " << wc[i].wr_id;
      ASSERT_TRUE(under_way.contains(wc[i].wr_id));
      const Operation op = under_way[wc[i].wr_id];
      under_way.erase(wc[i].wr_id);
      if (op.opcode == IBV_WR_RDMA_READ) {
        std::copy_n(there.model.begin() + static_cast<ptrdiff_t>(op.there), op.size,
                    here.model.begin() + static_cast<ptrdiff_t>(op.here));
      } else {
        std::copy_n(here.model.begin() + static_cast<ptrdiff_t>(op.here), op.size,
                    there.model.begin() + static_cast<ptrdiff_t>(op.there));
      }
      busy_here.release(op.here, op.size);
      if (op.opcode != IBV_WR_SEND || !receives.contains(wc[i].wr_id))
        busy_there.release(op.there, op.size);
    }
    n = ibv_poll_cq(right_cq.get(), 8, wc);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(wc[i].status, IBV_WC_SUCCESS);
      ASSERT_EQ(wc[i].opcode, IBV_WC_RECV);
      const Operation op = receives.at(wc[i].wr_id);
      EXPECT_EQ(wc[i].byte_len, op.size);
      receives.erase(wc[i].wr_id);
      if (!under_way.contains(wc[i].wr_id)) busy_there.release(op.there, op.size);
    }
  }
  EXPECT_TRUE(here.bytes == here.model);
  EXPECT_TRUE(there.bytes == there.model);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DataTest, testing::Range<uint64_t>(1, 9));

// spec/rdmap 3.5: nothing keeps a program from writing to memory that a peer reads. What the peer
// gets then is old and new mixed, but whole words of either, and the connection goes on: a CRC that
// was made of other bytes than those that were sent would end it.
TEST(ReadWhileChanging, MovesOnWithOldOrNewWords) {
  constexpr size_t kWords = 32768;
  constexpr int kReads = 300;
  Adapter owner;
  Adapter reader;
  std::vector<uint64_t> source(kWords);
  std::vector<uint64_t> sink(kWords);
  const MrPtr from = owner.reg(source.data(), kWords * 8);
  const MrPtr to = reader.reg(sink.data(), kWords * 8);
  const CqPtr owner_cq = owner.cq(64);
  const CqPtr reader_cq = reader.cq(64);
  const QpPtr owner_qp = make_qp(owner, owner_cq.get());
  const QpPtr reader_qp = make_qp(reader, reader_cq.get());
  connect(reader_qp.get(), own_gid(reader), owner_qp.get(), own_gid(owner));

  // Every word says its own place, so that one in the wrong place is seen.
  const auto word = [](size_t place, uint64_t round) { return round << 16 | place; };
  for (size_t i = 0; i < kWords; ++i) source[i] = word(i, 0);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::thread writer([&] {
    for (uint64_t round = 1; !stop; ++round) {
      for (size_t i = 0; i < kWords; ++i) {
        __atomic_store_n(&source[i], word(i, round), __ATOMIC_RELAXED);
      }
      rounds = round;
    }
  });
  uint64_t fresh = 0;
  for (int n = 0; n < kReads && !HasFailure(); ++n) {
    ibv_send_wr wr{};
    wr.wr_id = static_cast<uint64_t>(n);
    wr.opcode = IBV_WR_RDMA_READ;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(source.data());
    wr.wr.rdma.rkey = from->rkey;
    EXPECT_EQ(post_send(reader_qp.get(), wr, {sge(sink.data(), kWords * 8, to.get())}), 0);
    const auto done = collect(reader_cq.get(), 1);
    if (done.size() != 1 || done[0].status != IBV_WC_SUCCESS) {
      ADD_FAILURE() << "read " << n << ": "
                    << (done.empty() ? "no completion" : ibv_wc_status_str(done[0].status));
      break;
    }
    for (size_t i = 0; i < kWords; ++i) {
      if ((sink[i] & 0xffff) != i) {
        ADD_FAILURE() << "read " << n << ", word " << i << " is " << std::hex << sink[i];
        break;
      }
    }
    fresh = std::max(fresh, sink[kWords - 1] >> 16);
  }
  stop = true;
  writer.join();
  EXPECT_GT(rounds.load(), 0U);
  EXPECT_GT(fresh, 0U) << "the reads never saw a change";
}

// Many requests that nobody asks about are sent together. A program that then looks at its memory,
// and at no completion queue, gets them all.
TEST(BurstTest, UnsignaledWritesArriveWithoutAPoll) {
  const Adapter left;
  const Adapter right;
  constexpr size_t kEach = 3000;
  constexpr size_t kCount = 50;
  Memory here{left, kEach * kCount, 11};
  const Memory there{right, kEach * kCount, 12};
  const CqPtr left_cq = left.cq(64);
  const CqPtr right_cq = right.cq(64);
  const QpPtr a = make_qp(left, left_cq.get());
  const QpPtr b = make_qp(right, right_cq.get());
  connect(a.get(), own_gid(left), b.get(), own_gid(right));
  for (uint8_t round = 0; round < 10; ++round) {
    for (size_t i = 0; i < here.bytes.size(); ++i)
      here.bytes[i] = static_cast<uint8_t>(i * 7 + round);
    ibv_wc wc;
    EXPECT_EQ(ibv_poll_cq(left_cq.get(), 1, &wc), 0);
    for (size_t i = 0; i < kCount; ++i) {
      ibv_sge sge{.addr = reinterpret_cast<uintptr_t>(here.bytes.data() + i * kEach),
                  .length = kEach,
                  .lkey = here.mr->lkey};
      ibv_send_wr wr{};
      wr.opcode = IBV_WR_RDMA_WRITE;
      wr.sg_list = &sge;
      wr.num_sge = 1;
      wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(there.bytes.data() + i * kEach);
      wr.wr.rdma.rkey = there.mr->rkey;
      ibv_send_wr* bad = nullptr;
      int posted = ibv_post_send(a.get(), &wr, &bad);
      // The queue takes 64.
      for (; posted == ENOMEM; posted = ibv_post_send(a.get(), &wr, &bad)) {
        (void)ibv_poll_cq(left_cq.get(), 1, &wc);
      }
      ASSERT_EQ(posted, 0);
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (std::memcmp(here.bytes.data(), there.bytes.data(), here.bytes.size()) != 0 &&
           std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    ASSERT_EQ(here.bytes, there.bytes) << "round " << int{round};
  }
}

}  // namespace
}  // namespace weft::test
