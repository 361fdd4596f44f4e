// A server that listens by UCX and a client that connects to it, as UCX's io_demo does. The client
// sends messages of 0 bytes to 1 MB, the server sends each back, and the client looks at every
// byte.
//
//   ucp_listener PORT           serves one client
//   ucp_listener PORT ADDRESS   is one
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>

static const size_t kSizes[] = {0, 1, 57, 1000, 8256, 65537, 1000003, 0};
enum { kCount = sizeof kSizes / sizeof *kSizes, kLargest = 1000003, kAround = 64 };

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h peer;

static void need(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  printf("%s: %s\n", what, ucs_status_string(status));
  exit(1);
}

static unsigned char expected(size_t at, size_t message) {
  return (unsigned char)(at * 7 + at / 251 + message * 31);
}

static void finish(ucs_status_ptr_t request, const char* what) {
  if (request == NULL) return;
  if (UCS_PTR_IS_ERR(request)) need(UCS_PTR_STATUS(request), what);
  ucs_status_t status;
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
    ucp_worker_progress(worker);
  ucp_request_free(request);
  need(status, what);
}

static void send_one(const void* memory, size_t size, size_t message) {
  const ucp_request_param_t plain = {0};
  finish(ucp_tag_send_nbx(peer, memory, size, message, &plain), "a message is sent");
}

static void receive_one(unsigned char* memory, size_t size, size_t message) {
  ucp_tag_recv_info_t info = {0};
  ucp_request_param_t told = {.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO,
                              .recv_info.tag_info = &info};
  memset(memory, 0xa5, size + kAround);
  finish(ucp_tag_recv_nbx(worker, memory, size + kAround, message, ~(ucp_tag_t)0, &told),
         "a message is received");
  for (size_t i = 0; i < size + kAround; ++i) {
    if (memory[i] == (i < size ? expected(i, message) : 0xa5)) continue;
    printf("message %zu: byte %zu of %zu is wrong\n", message, i, size);
    exit(1);
  }
}

static void is_called(ucp_conn_request_h request, void* argument) {
  const ucp_ep_params_t by_request = {.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
                                      .conn_request = request};
  (void)argument;
  need(ucp_ep_create(worker, &by_request, &peer), "the server accepts");
}

static ucp_listener_h listen_at(const struct sockaddr_in* at) {
  ucp_listener_h listener;
  const ucp_listener_params_t params = {
      .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
      .sockaddr = {(const struct sockaddr*)at, sizeof *at},
      .conn_handler = {is_called, NULL}};
  need(ucp_listener_create(worker, &params, &listener), "the server listens");
  printf("listening\n");
  fflush(stdout);
  while (peer == NULL) ucp_worker_progress(worker);
  return listener;
}

static void connect_to(const struct sockaddr_in* at) {
  const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_FLAGS |
                                                UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                                UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
                                  .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
                                  .err_mode = UCP_ERR_HANDLING_MODE_PEER,
                                  .sockaddr = {(const struct sockaddr*)at, sizeof *at}};
  need(ucp_ep_create(worker, &params, &peer), "the client connects");
}

int main(int argc, char** argv) {
  const int serves = argc == 2;
  if (argc != 2 && argc != 3) return 2;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
  if (!serves && inet_pton(AF_INET, argv[2], &at.sin_addr) != 1) return 2;

  const ucp_params_t tags = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG};
  const ucp_worker_params_t one = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                   .thread_mode = UCS_THREAD_MODE_SINGLE};
  need(ucp_init(&tags, NULL, &context), "UCX starts");
  need(ucp_worker_create(context, &one, &worker), "a worker is made");
  unsigned char* memory = malloc(kLargest + kAround);
  if (memory == NULL) return 1;

  ucp_listener_h listener = NULL;
  if (serves) {
    listener = listen_at(&at);
  } else {
    connect_to(&at);
  }
  for (size_t m = 0; m < kCount; ++m) {
    if (serves) {
      receive_one(memory, kSizes[m], m);
      send_one(memory, kSizes[m], m);
    } else {
      for (size_t i = 0; i < kSizes[m]; ++i) memory[i] = expected(i, m);
      send_one(memory, kSizes[m], m);
      receive_one(memory, kSizes[m], m);
    }
  }
  if (!serves) printf("every byte was right\n");
  fflush(stdout);
  const ucp_request_param_t flush = {0};
  // A peer that has gone already has had all of it.
  ucs_status_ptr_t closing = ucp_ep_close_nbx(peer, &flush);
  while (UCS_PTR_IS_PTR(closing) && ucp_request_check_status(closing) == UCS_INPROGRESS)
    ucp_worker_progress(worker);
  if (UCS_PTR_IS_PTR(closing)) ucp_request_free(closing);
  if (listener != NULL) ucp_listener_destroy(listener);
  free(memory);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
  return 0;
}
