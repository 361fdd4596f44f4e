// Descriptors that a program closes without having opened them, as daemons do, and a process that
// may have few.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "tests/abi/api_fixture.h"
#include "tests/abi/in_child.h"
#include "tests/support/sanitizer.h"

namespace weft::test {
namespace {

// A device with two connected queue pairs, without owners: what is dead is not destroyed.
struct Connected {
  static std::optional<Connected> make() {
    Connected c;
    c.context = open_device().release();
    if (c.context == nullptr) return {};
    c.pd = ibv_alloc_pd(c.context);
    c.cq = ibv_create_cq(c.context, 16, nullptr, nullptr, 0);
    if (c.pd == nullptr || c.cq == nullptr) return {};
    c.mr = ibv_reg_mr(c.pd, c.memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
    ibv_qp_init_attr attr = rc_attributes(c.cq);
    c.a = ibv_create_qp(c.pd, &attr);
    c.b = ibv_create_qp(c.pd, &attr);
    if (c.mr == nullptr || c.a == nullptr || c.b == nullptr) return {};
    for (ibv_qp* qp : {c.a, c.b}) {
      if (to_init(qp) != 0 || to_rtr(qp, (qp == c.a ? c.b : c.a)->qp_num) != 0 || to_rts(qp) != 0) {
        return {};
      }
    }
    return c;
  }
  int receive() const {
    ibv_sge to{reinterpret_cast<uintptr_t>(memory), 64, mr->lkey};
    ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = &to, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    return ibv_post_recv(b, &wr, &bad);
  }
  int send() const {
    ibv_sge from{reinterpret_cast<uintptr_t>(memory) + 64, 64, mr->lkey};
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.sg_list = &from;
    wr.num_sge = 1;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(a, &wr, &bad);
  }
  bool works(unsigned seed) const {
    fill(memory + 64, 64, seed);
    return receive() == 0 && send() == 0 && next_completion(cq).status == IBV_WC_SUCCESS &&
           next_completion(cq).status == IBV_WC_SUCCESS && filled(memory, 64, seed);
  }
  bool is_dead() const {
    ibv_wc wc;
    return receive() == EIO && send() == EIO && ibv_poll_cq(cq, 1, &wc) < 0 &&
           ibv_alloc_pd(context) == nullptr && errno == EIO;
  }
  bool destroy() const {
    return ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0 && ibv_dereg_mr(mr) == 0 &&
           ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0;
  }

  uint8_t* memory_of() { return memory; }
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_mr* mr = nullptr;
  ibv_qp* a = nullptr;
  ibv_qp* b = nullptr;
  inline static uint8_t memory[128];
};

std::vector<int> open_descriptors() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator{"/proc/self/fd"}) {
    const int fd = std::stoi(entry.path().filename().string());
    if (fd > 2) all.push_back(fd);
  }
  return all;
}

bool is_null_device(int fd) {
  struct stat there {};
  struct stat null {};
  return fstat(fd, &there) == 0 && stat("/dev/null", &null) == 0 && there.st_rdev == null.st_rdev &&
         there.st_ino == null.st_ino;
}

class ClosedDescriptors : public testing::Test {
 protected:
  void SetUp() override {
#ifdef WEFT_TSAN
    GTEST_SKIP() << "ThreadSanitizer does not let a child of a program with threads start any";
#endif
  }
};

TEST_F(ClosedDescriptors, TheDeviceOpensAgain) {
  EXPECT_EQ(in_child([] {
              for (unsigned round = 1; round <= 3; ++round) {
                const auto before = Connected::make();
                CHECK_IN_CHILD(1, before && before->works(round));
                for (const int fd : open_descriptors()) close(fd);
                const auto after = Connected::make();
                CHECK_IN_CHILD(2, after && after->works(round + 10));
                CHECK_IN_CHILD(3, before->is_dead());
                CHECK_IN_CHILD(4, before->destroy());
                CHECK_IN_CHILD(5, after->works(round + 20));
                CHECK_IN_CHILD(6, after->destroy());
              }
              return 0;
            }),
            0);
}

// The numbers are the program's own files by then, and nobody else's to close.
TEST_F(ClosedDescriptors, TheProgramsOwnFilesStayOpen) {
  EXPECT_EQ(in_child([] {
              const auto before = Connected::make();
              CHECK_IN_CHILD(1, before && before->works(1));
              const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
              const std::vector<int> numbers = open_descriptors();
              for (const int fd : numbers) {
                if (fd != null) dup2(null, fd);
              }
              const auto after = Connected::make();
              CHECK_IN_CHILD(2, after && after->works(2));
              CHECK_IN_CHILD(3, before->destroy());
              CHECK_IN_CHILD(4, after->works(3));
              // The folder's own, of the list, is closed.
              for (const int fd : numbers) {
                CHECK_IN_CHILD(5, fcntl(fd, F_GETFD) < 0 || is_null_device(fd));
              }
              CHECK_IN_CHILD(6, is_null_device(numbers.front()));
              return 0;
            }),
            0);
}

// A daemon that has lost some of them in the first place.
TEST_F(ClosedDescriptors, EachSingleOneOfTheEngine) {
  for (size_t skip = 0; skip < 4; ++skip) {
    EXPECT_EQ(in_child([skip] {
                const Owned<ibv_context> first = open_device();
                CHECK_IN_CHILD(1, first != nullptr);
                std::vector<int> kernels;
                for (const int fd : open_descriptors()) {
                  std::error_code none;
                  const auto file =
                      std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none);
                  if (file.string().find("anon_inode:") == 0) kernels.push_back(fd);
                }
                // Two sets, a timer and an eventfd are the engine's.
                CHECK_IN_CHILD(2, kernels.size() >= 4);
                close(kernels[skip]);
                const auto after = Connected::make();
                CHECK_IN_CHILD(3, after && after->works(4));
                (void)const_cast<Owned<ibv_context>&>(first).release();
                return 0;
              }),
              0)
        << skip;
  }
}

// --- a process that may have few

int churn(int times, bool to_peer) {
  const Owned<ibv_context> context = open_device();
  const Owned<ibv_pd> pd{ibv_alloc_pd(context.get())};
  const Owned<ibv_cq> cq{ibv_create_cq(context.get(), 16, nullptr, nullptr, 0)};
  CHECK_IN_CHILD(1, pd != nullptr && cq != nullptr);
  size_t first = 0;
  for (int i = 0; i < times; ++i) {
    ibv_qp_init_attr attr = rc_attributes(cq.get());
    const Owned<ibv_qp> qp{ibv_create_qp(pd.get(), &attr)};
    CHECK_IN_CHILD(2, qp != nullptr);
    if (to_peer) CHECK_IN_CHILD(3, to_init(qp.get()) == 0 && to_rtr(qp.get(), 0x345601) == 0);
    if (i == 0) first = open_descriptors().size();
  }
  // The program needs some for itself, too.
  const size_t more = open_descriptors().size() - first;
  if (!to_peer) CHECK_IN_CHILD(4, more == 0);
  CHECK_IN_CHILD(5, more <= 18);
  return 0;
}

class FewDescriptors : public ClosedDescriptors {
 protected:
  static bool limit() {
    const rlimit few{.rlim_cur = 64, .rlim_max = 64};
    return setrlimit(RLIMIT_NOFILE, &few) == 0;
  }
};

// With whatever it lacks one for.
TEST_F(FewDescriptors, ADeviceOpensWithAllOfItsOwnOrNotAtAll) {
  EXPECT_EQ(in_child([] {
              CHECK_IN_CHILD(1, limit());
              const Owned<ibv_context> first = open_device();
              CHECK_IN_CHILD(2, first != nullptr);
              std::vector<int> taken;
              for (int fd = 0; (fd = open("/dev/null", O_RDONLY)) >= 0;) taken.push_back(fd);
              for (;; taken.pop_back()) {
                errno = 0;
                const Owned<ibv_context> more = open_device();
                if (more != nullptr) {
                  CHECK_IN_CHILD(3, is_null_device(more->cmd_fd) && more->async_fd >= 0);
                  return 0;
                }
                CHECK_IN_CHILD(4, errno == EMFILE && !taken.empty());
                close(taken.back());
              }
            }),
            0);
}

// A port has 254 numbers, and takes two descriptors.
TEST_F(FewDescriptors, QueuePairsComeAndGoWithoutEnd) {
  EXPECT_EQ(in_child([] { return limit() ? churn(8000, false) : 100; }), 0);
}
// Peers may know the numbers of these, which have to rest.
TEST_F(FewDescriptors, QueuePairsWithPeersComeAndGoWithoutEnd) {
  EXPECT_EQ(in_child([] { return limit() ? churn(8000, true) : 100; }), 0);
}

}  // namespace
}  // namespace weft::test
