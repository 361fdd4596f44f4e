// A recording: the packets that came, one after the other, as they came.
#include "stream/output/file_layout.h"

namespace weft::stream {
namespace {

class PacketsLayout final : public FileLayout {
 public:
  bool fills() const override { return false; }
  void add(const FileFacts&, const BlockView& block, uint32_t from, uint32_t to,
           Bytes& out) override {
    for (uint32_t i = from; i < to; ++i) {
      if (!block.has(i)) continue;
      const ConstPacket packet = block.packet(i);
      out.insert(out.end(), packet.begin(), packet.end());
    }
  }
};

}  // namespace

std::unique_ptr<FileLayout> make_packets_layout() {
  return std::make_unique<PacketsLayout>();
}

}  // namespace weft::stream
