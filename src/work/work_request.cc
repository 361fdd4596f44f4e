#include "work/work_request.h"

namespace weft::work {

const char* to_string(Status s) {
  switch (s) {
    case Status::success:
      return "success";
    case Status::local_length:
      return "local length error";
    case Status::local_qp_operation:
      return "local QP operation error";
    case Status::local_protection:
      return "local protection error";
    case Status::flushed:
      return "flushed";
    case Status::window_bind:
      return "memory window bind error";
    case Status::remote_invalid_request:
      return "remote invalid request";
    case Status::remote_access:
      return "remote access error";
    case Status::remote_operation:
      return "remote operation error";
    case Status::remote_invalid_rd_request:
      return "remote invalid RD request";
    case Status::retry_exceeded:
      return "transport retry exceeded";
    case Status::rnr_retry_exceeded:
      return "receiver-not-ready retry exceeded";
    case Status::fatal:
      return "fatal error";
    case Status::general:
      return "general error";
  }
  return "?";
}

}  // namespace weft::work
