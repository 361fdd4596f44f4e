// A device of the libibverbs that was loaded, and queue pairs that two sides bring up with what
// they told each other over the control connection.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "kit/verbs_library.h"

namespace weft::stream {

struct QueueNeeds {
  bool reliable = false;
  uint32_t sends = 0;
  uint32_t receives = 0;
  uint32_t send_pieces = 1;
};

// Libraries that are loaded from now on take this address of the machine, unless the user named one
// (WEFT_IP).
void prefer_address(const std::string& address);

// All functions throw kit::Failure. Any thread, as libibverbs allows.
class VerbsDevice {
 public:
  // `entries` of the completion queue; `events`: it wakes who sleeps on event_fd().
  VerbsDevice(const std::string& library, uint32_t entries, bool events);
  VerbsDevice(const VerbsDevice&) = delete;
  VerbsDevice& operator=(const VerbsDevice&) = delete;
  ~VerbsDevice();

  // Of remote Writes, or to be read by this device alone.
  ibv_mr* add_memory(std::byte* at, uint64_t size, bool remote_writes);
  // Of remote Writes, whose addresses count from 0.
  ibv_mr* add_memory_from_0(std::byte* at, uint64_t size);
  void remove_memory(ibv_mr* memory);

  ibv_qp* create(const QueueNeeds& needs);
  void destroy(ibv_qp* qp);
  // What the other side needs to connect.
  nlohmann::json address_of(const ibv_qp* qp) const;
  // The same of one that says nothing: its address, IPv4 or IPv6.
  static nlohmann::json address_of_circuit(const std::string& address);
  // Both sides call it at the same time; when it returns this one can send.
  void connect(ibv_qp* qp, const nlohmann::json& peer);

  // Completions of all queue pairs, whatever their status.
  int poll(std::span<ibv_wc> into);
  const char* why(ibv_wc_status status) const { return verbs_.wc_status_str(status); }
  int event_fd() const { return channel_->fd; }
  // From now on event_fd() turns readable when something completes. To be followed by a look.
  void arm();
  // Takes the event if there is one.
  void take_event();

 private:
  kit::VerbsLibrary verbs_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_comp_channel* channel_ = nullptr;
  ibv_cq* cq_ = nullptr;
};

}  // namespace weft::stream
