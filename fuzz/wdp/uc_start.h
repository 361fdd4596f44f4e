// Every state that a peer, or the program, can bring a UC session to, and the way to each.
#pragma once

#include "fuzz/wdp/uc_peer.h"

namespace weft::fuzz {

// New ones at the end, or the corpus changes its meaning.
enum class Start : uint8_t {
  fresh,
  static_session,
  between_messages,
  send_open,
  send_without_receive,
  write_with_immediate_open,
  all_contexts_open,
  behind_a_gap,
  gap_given_up,
  read_asked,
  read_half_there,
  answering_a_read,
  far_jump_begun,
  sending,
  closing,
  time_wait,
  peer_left,
  probing,
  small_probe_answered,
  path_narrowed_in_message,
  path_narrowed_in_read,
  requests_held,
  requests_stopped,
  requests_resumed,
  window_closed,
  window_asked_again,
};

UcPeer::Shape shape_of(Start start, bool crc);
// Fails where the session does not come to the state that is meant.
void begin(UcPeer& p, Start start);

}  // namespace weft::fuzz
