// A queue pair by number whose peer is not ready for it for a long time: as on InfiniBand only a
// request may find that out (spec/addressing 5.4, 6.3).

#include <gtest/gtest.h>

#include "tests/support/counted.h"
#include "tests/verbs/endpoint.h"

namespace weft::test {
namespace {

struct Side {
  explicit Side(const QpOptions& o)
      : mr(a.reg(memory.data(), memory.size())), cq(a.cq(16)), qp(make_qp(a, cq.get(), o)) {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
  }
  int send(size_t n) {
    ibv_send_wr wr{};
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    return post_send(qp.get(), wr, {sge(memory.data(), n, mr.get())});
  }
  ibv_wc_status status_of_one() {
    const auto done = collect(cq.get(), 1);
    check(done.size() == 1, "a completion");
    return done[0].status;
  }
  ibv_qp_state state() {
    ibv_qp_attr attr{};
    ibv_qp_init_attr init{};
    check_errno(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
    return attr.qp_state;
  }
  void to(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    attr.port_num = 1;
    attr.qp_access_flags = kAllAccess;
    const int init = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    check_errno(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? init : 0)),
                "ibv_modify_qp");
  }
  Adapter a;
  std::vector<uint8_t> memory = std::vector<uint8_t>(4096);
  MrPtr mr;
  CqPtr cq;
  QpPtr qp;
};

struct Kind {
  ibv_qp_type type;
  const char* family;  // what counts the answers of a peer in error
  const char* answer;

  const char* name() const { return type == IBV_QPT_RC ? "rc" : "uc"; }
};
// Else a test's name would have bytes of addresses in it.
void PrintTo(const Kind& kind, std::ostream* to) {
  *to << kind.name();
}

// A peer that is in error, of a queue pair that calls: the one with the lower number.
class LatePeer : public testing::TestWithParam<Kind> {
 protected:
  LatePeer() : options_{.type = GetParam().type}, one_(options_), other_(options_) {
    late_.to(IBV_QPS_ERR);
    to_rtr(early_.qp.get(), late_.qp->qp_num, gid_, options_);
    to_rts(early_.qp.get(), options_);
  }
  // The pauses between calls grow to 500 ms: eleven answers take longer than the two seconds after
  // which a request would be given up.
  bool is_refused_for_long() {
    for (int i = 0; i < 3000; ++i) {
      const auto grown = answers_.grown();
      const auto n = grown.find(GetParam().answer);
      if (n != grown.end() && n->second >= 11) return true;
      usleep(10'000);
    }
    return false;
  }

  const QpOptions options_;
  Side one_;
  Side other_;
  Side& early_ = one_.qp->qp_num < other_.qp->qp_num ? one_ : other_;
  Side& late_ = &early_ == &one_ ? other_ : one_;
  const ibv_gid gid_ = own_gid(one_.a);
  const Counted answers_{GetParam().family};
};

TEST_P(LatePeer, is_waited_for_as_long_as_nothing_is_asked) {
  const Counted given_up("bring_ups_given_up");
  ASSERT_EQ(post_recv(early_.qp.get(), 7, {sge(&early_.memory[2048], 1000, early_.mr.get())}), 0);
  ASSERT_TRUE(is_refused_for_long());
  EXPECT_EQ(early_.state(), IBV_QPS_RTS);
  late_.to(IBV_QPS_RESET);
  late_.to(IBV_QPS_INIT);
  to_rtr(late_.qp.get(), early_.qp->qp_num, gid_, options_);
  to_rts(late_.qp.get(), options_);
  ASSERT_EQ(late_.send(1000), 0);
  EXPECT_EQ(late_.status_of_one(), IBV_WC_SUCCESS);
  EXPECT_EQ(early_.status_of_one(), IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(&early_.memory[2048], late_.memory.data(), 1000), 0);
  given_up.expect({});
}

TEST_P(LatePeer, that_has_refused_for_long_is_found_out_by_a_request) {
  ASSERT_TRUE(is_refused_for_long());
  ASSERT_EQ(early_.send(10), 0);
  EXPECT_EQ(early_.status_of_one(), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(early_.state(), IBV_QPS_ERR);
}

INSTANTIATE_TEST_SUITE_P(Types, LatePeer,
                         testing::Values(Kind{IBV_QPT_RC, "bring_up_answer", "qp_in_error"},
                                         Kind{IBV_QPT_UC, "wdp_call_failed", "bad_parameters"}),
                         [](const auto& made) { return std::string(made.param.name()); });

}  // namespace
}  // namespace weft::test
