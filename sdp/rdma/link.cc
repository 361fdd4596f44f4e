#include "sdp/rdma/link.h"

#include <cerrno>

namespace weft::sdp {

void Link::count_message() {
  Traffic::add(traffic().messages_sent, 1);
  traffic().credits.store(connection_->credits(), std::memory_order_relaxed);
}

bool Link::send(const Connection::Message& message) {
  if (!queue_pair_.send_inline(message.bytes.data(), message.length)) return false;
  count_message();
  return true;
}

bool Link::send_data(std::byte* header, uint32_t payload, uint32_t key, uint8_t flags) {
  connection_->send_data(header, payload, flags);
  if (!queue_pair_.send({header, Bsdh::kSize + payload, key})) return false;
  count_message();
  Traffic::add(traffic().bytes_sent, payload);
  return true;
}

void Link::send_controls() {
  while (!broken() && queue_pair_.has_place()) {
    const auto message = connection_->next_control();
    if (!message || !send(*message)) return;
  }
}

void Link::fail(int error) {
  if (error_ == 0) error_ = untold_ = error;
}

void Link::abort() {
  if (connection_ && !broken() && queue_pair_.has_place()) {
    connection_->abort();
    if (const auto message = connection_->next_control()) (void)send(*message);
  }
  fail(ECONNRESET);
}

}  // namespace weft::sdp
