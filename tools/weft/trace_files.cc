#include "weft/trace_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>

namespace weft::tools {
namespace {

namespace fs = std::filesystem;

// File names for the last part of a pattern: digits for %p, and in front of the last dot a number
// where the name was taken.
std::regex names_for(const std::string& part) {
  const std::string taken = "(-[0-9]+)?";
  const size_t dot = part.rfind('.');
  const size_t number_at = dot != std::string::npos && dot > 0 ? dot : part.size();
  std::string text;
  for (size_t i = 0; i < part.size(); ++i) {
    if (i == number_at) text += taken;
    if (part.compare(i, 2, "%p") == 0) {
      text += "[0-9]+";
      ++i;
    } else if (std::isalnum(static_cast<unsigned char>(part[i])) != 0) {
      text += part[i];
    } else {
      text += fmt::format("\\{}", part[i]);
    }
  }
  if (number_at == part.size()) text += taken;
  return std::regex(text);
}

}  // namespace

Result<TraceFiles, std::string> TraceFiles::named(const std::string& name) {
  std::error_code error;
  const fs::path path = fs::absolute(name, error);
  if (error) return fail(fmt::format("{}: {}", name, error.message()));
  const fs::path folder = path.parent_path();
  if (folder.string().find("%p") != std::string::npos) {
    return fail(fmt::format("{}: %p belongs into the file's name, not the folder's", name));
  }
  if (!path.has_filename() || fs::is_directory(path, error)) {
    return fail(fmt::format("{} is a folder; give the name of a file", name));
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    return fail(fmt::format("{}: no file can be made there: {}; give another folder by -o",
                            folder.string(), std::strerror(errno)));
  }
  return TraceFiles{path.string()};
}

std::set<std::string> TraceFiles::present() const {
  const fs::path path = pattern_;
  const std::regex names = names_for(path.filename().string());
  std::set<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(path.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (std::regex_match(name, names)) found.insert(entry.path().string());
  }
  return found;
}

// Blocks as trace/pcapng writes them, in this machine's byte order: type, length, and in packets 20
// bytes until the IP header.
Recorded look_into(const std::string& file) {
  constexpr uint32_t kPacket = 6;
  constexpr int kMostBlocks = 100'000;
  constexpr char kTcp = 6;
  constexpr char kUdp = 17;
  Recorded found;
  std::ifstream in{file, std::ios::binary};
  for (int i = 0; i < kMostBlocks && !(found.streams && found.datagrams); ++i) {
    std::array<char, 28 + 20> head{};
    const std::streamoff at = in.tellg();
    in.read(head.data(), head.size());
    const auto got = static_cast<size_t>(in.gcount());
    std::array<uint32_t, 2> words{};
    if (got < sizeof words) break;
    std::memcpy(words.data(), head.data(), sizeof words);
    const auto [type, length] = words;
    if (length < 12) break;
    if (type == kPacket && got == head.size()) {
      const bool ipv4 = (head[28] & 0xf0) == 0x40;
      const char protocol = ipv4 ? head[28 + 9] : head[28 + 6];
      found.streams = found.streams || protocol == kTcp;
      found.datagrams = found.datagrams || protocol == kUdp;
    }
    in.clear();
    in.seekg(at + static_cast<std::streamoff>(length));
  }
  return found;
}

std::string dissector_of(const std::string& program) {
  std::string name = "packaging/wireshark/wdp.lua";
  const fs::path prefix = fs::path(program).parent_path().parent_path();
  // Beside what is installed; or PROJECT/build/PRESET/bin/weft.
  for (const fs::path& path :
       {prefix / "share/weft/wireshark/wdp.lua", prefix.parent_path().parent_path() / name}) {
    std::error_code error;
    if (fs::exists(path, error)) return path.string();
  }
  return name;
}

}  // namespace weft::tools
