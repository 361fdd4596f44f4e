// A WDP datagram as src/wire encodes it, and what a dissector has to show of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/rdmap_messages.h"
#include "wire/wdp_ack.h"
#include "wire/wdp_ctl.h"
#include "wire/wdp_data.h"
#include "wire/wdp_messages.h"
#include "wire/wdp_ud.h"

namespace weft::test {

struct Example {
  std::string name;
  std::vector<std::byte> bytes;
  // By the field's name without "wdp."; numbers in decimal, bytes in hexadecimal. Some fields are
  // there more than once.
  std::map<std::string, std::vector<std::string>> fields;

  void put(const std::string& field, uint64_t value) {
    fields[field].push_back(std::to_string(value));
  }
  void put(const std::string& field, const std::string& text) { fields[field].push_back(text); }
  // Nothing when there are none, as the dissector.
  void put(const std::string& field, Bytes bytes);
};

// Encoded, with a CRC where the flags or the class say so.
Example example(const std::string& name, const wire::WdpCtl& ctl);
Example example(const std::string& name, const wire::WdpData& data, Bytes payload);
Example example(const std::string& name, const wire::WdpUd& ud, Bytes payload);
Example example(const std::string& name, const wire::WdpAck& ack);
// A bundle of these.
Example example(const std::string& name, Csn csn, const std::vector<Example>& parts);

// What `header`, 48 bytes of UC, shows where an ERR quotes it.
void put_quoted(Example& e, const wire::WdpData& header);

// All kinds of messages of docs/spec/wdp.md and its parts.
std::vector<Example> all_examples();

}  // namespace weft::test
