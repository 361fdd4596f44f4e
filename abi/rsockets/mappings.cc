#include "abi/rsockets/mappings.h"

#include <algorithm>
#include <cerrno>

namespace weft::rsockets {

std::optional<uint32_t> Mappings::free_slot(uint32_t slots) const {
  for (uint32_t slot = 0; slot < slots; ++slot) {
    if (std::none_of(all_.begin(), all_.end(), [slot](const Mapping& m) { return m.slot == slot; }))
      return slot;
  }
  return std::nullopt;
}

int Mappings::add(Connection& connection, void* memory, size_t size, bool remote,
                  std::optional<uint64_t> wanted, uint64_t& offset) {
  Mapping m{memory,       size,    wanted.value_or(reinterpret_cast<uint64_t>(memory)),
            std::nullopt, nullptr, true};
  if (remote) {
    if (size == 0 || size > UINT32_MAX) return EINVAL;
    m.slot = free_slot(connection.peer_slots());
    if (!m.slot) return ENOMEM;
    m.region.reset(ibv_reg_mr(connection.endpoint().pd(), memory, size,
                              IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
    if (m.region == nullptr) return errno;
    m.told = false;
  }
  offset = m.offset;
  all_.push_back(std::move(m));
  return 0;
}

int Mappings::remove(void* memory, size_t size) {
  const auto m = std::find_if(all_.begin(), all_.end(), [&](const Mapping& x) {
    return x.memory == memory && x.size == size;
  });
  if (m == all_.end()) return EINVAL;
  all_.erase(m);
  return 0;
}

bool Mappings::tell(Connection& connection) {
  for (Mapping& m : all_) {
    if (m.told) continue;
    const Target target{reinterpret_cast<uint64_t>(m.memory), m.region->rkey,
                        static_cast<uint32_t>(m.size)};
    if (!connection.say_mapped(*m.slot, {m.offset, target})) return false;
    m.told = true;
  }
  return true;
}

}  // namespace weft::rsockets
