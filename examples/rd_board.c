/* A board of counters and notes, by queue pairs of weft's type RD: one process serves any number of
 * others, with one queue pair and no connection. Adders add to a counter in the server's memory by
 * an atomic operation, and then send it a line of text. weft-rd(7) is the manual.
 *
 *   cc -O2 -Iinclude -o rd_board examples/rd_board.c -libverbs
 *   weft run -- ./rd_board serve              prints the words that an adder has to be given
 *   weft run -- ./rd_board add GID QPN RKEY ADDRESS COUNTER N TEXT
 *
 * The adder prints the counter's new value. A second argument of `serve` is a number of notes after
 * which it ends.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/rd.h>

enum { COUNTERS = 16, NOTES = 64, NOTE = 256, QKEY = 0x600d };

struct party {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
};

static void fail(const char* what) {
  fprintf(stderr, "rd_board: %s: %s\n", what, strerror(errno));
  exit(1);
}

/* A queue pair that is ready to send and to receive, with memory for peers to write to, or for
 * itself. */
static struct party begin(void* memory, size_t bytes) {
  struct party p;
  int count = 0;
  struct ibv_device** list = ibv_get_device_list(&count);
  if (list == NULL || count == 0) fail("no RDMA device");
  p.context = ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (p.context == NULL) fail("ibv_open_device");
  p.pd = ibv_alloc_pd(p.context);
  p.cq = ibv_create_cq(p.context, 2 * NOTES, NULL, NULL, 0);
  if (p.pd == NULL || p.cq == NULL) fail("ibv_create_cq");
  p.mr = ibv_reg_mr(p.pd, memory, bytes,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  if (p.mr == NULL) fail("ibv_reg_mr");

  struct ibv_qp_init_attr_ex init = {
      .send_cq = p.cq,
      .recv_cq = p.cq,
      .cap = {.max_send_wr = 16, .max_recv_wr = NOTES, .max_send_sge = 1, .max_recv_sge = 1},
      .comp_mask = IBV_QP_INIT_ATTR_PD,
      .pd = p.pd};
  p.qp = weft_rd_create_qp(p.context, &init);
  if (p.qp == NULL)
    fail("this device has no queue pairs of type RD; start the program by weft run");

  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
  if (ibv_modify_qp(p.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0)
    fail("INIT");
  attr.qp_state = IBV_QPS_RTR;
  if (ibv_modify_qp(p.qp, &attr, IBV_QP_STATE) != 0) fail("RTR");
  attr.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(p.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) fail("RTS");
  return p;
}

static void end(struct party* p) {
  ibv_destroy_qp(p->qp);
  ibv_dereg_mr(p->mr);
  ibv_destroy_cq(p->cq);
  ibv_dealloc_pd(p->pd);
  ibv_close_device(p->context);
}

static struct ibv_wc next_completion(struct party* p) {
  struct ibv_wc wc;
  int n;
  while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 0) {
  }
  if (n < 0) fail("ibv_poll_cq");
  return wc;
}

static void post_receive(struct party* p, char* notes, uint64_t i) {
  struct ibv_sge place = {
      .addr = (uintptr_t)(notes + i * NOTE), .length = NOTE, .lkey = p->mr->lkey};
  struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &place, .num_sge = 1};
  struct ibv_recv_wr* bad;
  if (ibv_post_recv(p->qp, &wr, &bad) != 0) fail("ibv_post_recv");
}

static int serve(long notes_wanted) {
  static struct {
    uint64_t counters[COUNTERS];
    char notes[NOTES * NOTE];
  } board;
  struct party p = begin(&board, sizeof board);
  for (uint64_t i = 0; i < NOTES; ++i) post_receive(&p, board.notes, i);

  union ibv_gid gid;
  char text[INET6_ADDRSTRLEN];
  if (ibv_query_gid(p.context, 1, 0, &gid) != 0) fail("ibv_query_gid");
  printf("add %s %u %u %" PRIuPTR "\n", inet_ntop(AF_INET6, gid.raw, text, sizeof text),
         p.qp->qp_num, p.mr->rkey, (uintptr_t)board.counters);
  fflush(stdout);
  for (long n = 0; n < notes_wanted || notes_wanted == 0; ++n) {
    const struct ibv_wc wc = next_completion(&p);
    if (wc.status != IBV_WC_SUCCESS) {
      fprintf(stderr, "rd_board: a receive: %s\n", ibv_wc_status_str(wc.status));
      exit(1);
    }
    printf("from queue pair %u: %.*s\n", wc.src_qp, (int)wc.byte_len,
           board.notes + wc.wr_id * NOTE);
    fflush(stdout);
    post_receive(&p, board.notes, wc.wr_id);
  }
  end(&p);
  return 0;
}

/* A request begins with its operation. Its address and its data follow. */
static void aim(struct ibv_qp_ex* qp, struct ibv_ah* ah, uint32_t qpn, struct party* p, void* data,
                size_t n) {
  ibv_wr_set_ud_addr(qp, ah, qpn, QKEY);
  ibv_wr_set_sge(qp, p->mr->lkey, (uintptr_t)data, (uint32_t)n);
}

static int add(char** arg) {
  struct {
    uint64_t before;
    char note[NOTE];
  } mine = {.before = 0};
  struct party p = begin(&mine, sizeof mine);
  struct ibv_ah_attr to = {.is_global = 1, .port_num = 1};
  if (inet_pton(AF_INET6, arg[0], to.grh.dgid.raw) != 1) fail("no GID");
  struct ibv_ah* ah = ibv_create_ah(p.pd, &to);
  if (ah == NULL) fail("ibv_create_ah");
  const uint32_t qpn = (uint32_t)strtoul(arg[1], NULL, 0);
  const uint32_t rkey = (uint32_t)strtoul(arg[2], NULL, 0);
  const uint64_t address = strtoull(arg[3], NULL, 0) + 8 * (strtoull(arg[4], NULL, 0) % COUNTERS);
  const uint64_t more = strtoull(arg[5], NULL, 0);
  snprintf(mine.note, sizeof mine.note, "%s", arg[6]);

  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(p.qp);
  ibv_wr_start(qp);
  qp->wr_flags = IBV_SEND_SIGNALED;
  qp->wr_id = 1;
  ibv_wr_atomic_fetch_add(qp, rkey, address, more);
  aim(qp, ah, qpn, &p, &mine.before, sizeof mine.before);
  qp->wr_id = 2;
  ibv_wr_send(qp);
  aim(qp, ah, qpn, &p, mine.note, strlen(mine.note));
  if ((errno = ibv_wr_complete(qp)) != 0) fail("ibv_wr_complete");

  /* Each is complete when the server's side has done it. An error is that request's alone. */
  int errors = 0;
  for (int i = 0; i < 2; ++i) {
    const struct ibv_wc wc = next_completion(&p);
    if (wc.status == IBV_WC_SUCCESS) continue;
    fprintf(stderr, "rd_board: request %d: %s\n", (int)wc.wr_id, ibv_wc_status_str(wc.status));
    ++errors;
  }
  if (errors == 0) printf("%" PRIu64 "\n", mine.before + more);
  ibv_destroy_ah(ah);
  end(&p);
  return errors != 0;
}

int main(int argc, char** argv) {
  if (argc >= 2 && argc <= 3 && strcmp(argv[1], "serve") == 0)
    return serve(argc == 3 ? atol(argv[2]) : 0);
  if (argc == 9 && strcmp(argv[1], "add") == 0) return add(argv + 2);
  fprintf(stderr,
          "usage: rd_board serve [NOTES] | rd_board add GID QPN RKEY ADDRESS COUNTER N TEXT\n");
  return 2;
}
