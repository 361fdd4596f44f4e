#include "stream/source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kit/failure.h"
#include "port/fd.h"
#include "stream/recording/byte_input.h"
#include "stream/recording/recording_source.h"
#include "stream/synthetic.h"

namespace weft::stream {
namespace {

class SyntheticSource final : public Source {
 public:
  SyntheticSource(const Shape& shape, uint32_t first_stream)
      : shape_(learned(shape, {})), first_stream_(first_stream), synthetic_(shape_) {}
  Shape shape() const override { return shape_; }
  bool fill(uint32_t i, uint64_t number, Packet packet) override {
    const uint32_t stream = first_stream_ + i;
    write_header(shape_, stream, number, packet);
    const ConstPacket payload = synthetic_.payload(stream, number);
    std::memcpy(packet.data() + shape_.header_bytes(), payload.data(), payload.size());
    return true;
  }

 private:
  const Shape shape_;
  const uint32_t first_stream_;
  const Synthetic synthetic_;
};

class FileSource final : public Source {
 public:
  FileSource(const SourceOptions& options, const Shape& shape, uint32_t first_stream,
             uint32_t streams)
      : shape_(learned(shape, {})),
        first_stream_(first_stream),
        loop_(options.loop),
        file_(options.file),
        at_(streams) {
    if (file_.bytes().size() < shape.payload_bytes()) {
      throw kit::Failure{options.file + " does not fill one packet"};
    }
  }
  Shape shape() const override { return shape_; }
  // What is left at the end and fills no packet is not sent.
  bool fill(uint32_t stream, uint64_t number, Packet packet) override {
    const size_t size = shape_.payload_bytes();
    size_t& at = at_[stream];
    if (file_.bytes().size() - at < size) {
      if (!loop_) return false;
      at = 0;
    }
    write_header(shape_, first_stream_ + stream, number, packet);
    std::memcpy(packet.data() + shape_.header_bytes(), file_.bytes().data() + at, size);
    at += size;
    return true;
  }

 private:
  const Shape shape_;
  const uint32_t first_stream_;
  const bool loop_;
  const MappedFile file_;
  std::vector<size_t> at_;
};

void write_all(const port::Fd& file, std::span<const std::byte> bytes, const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) throw kit::system_failure(where);
    if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

port::Fd decompressed(const std::string& path) {
  const char* told = std::getenv("TMPDIR");
  const std::string folder = told != nullptr ? told : "/var/tmp";
  port::Fd file{::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600)};
  const std::string where = folder + ", where " + path + " is decompressed (TMPDIR names another)";
  if (!file.valid()) throw kit::system_failure(where);
  const auto input = open_input(path);
  std::vector<std::byte> piece(1 << 20);
  while (const size_t n = input->read(piece)) write_all(file, std::span{piece}.first(n), where);
  return file;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const port::Fd fd = is_compressed(path) ? decompressed(path)
                                          : port::Fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat st {};
  if (!fd.valid() || ::fstat(fd.get(), &st) != 0) throw kit::system_failure(path);
  if (st.st_size == 0) throw kit::Failure{path + " is empty"};
  const auto size = static_cast<size_t>(st.st_size);
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (p == MAP_FAILED) throw kit::system_failure(path);
  bytes_ = {static_cast<const std::byte*>(p), size};
}

MappedFile::~MappedFile() {
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::unique_ptr<Source> make_source(const SourceOptions& options, const Shape& shape,
                                    uint32_t first_stream, uint32_t streams) {
  if (!options.pcap.empty()) return make_pcap_source(options, shape, streams);
  if (!options.recordings.empty()) return make_recording_source(options, shape);
  if (!options.file.empty())
    return std::make_unique<FileSource>(options, shape, first_stream, streams);
  return std::make_unique<SyntheticSource>(shape, first_stream);
}

}  // namespace weft::stream
