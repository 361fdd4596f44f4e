// Stands in for libFuzzer where it is not linked: runs the target over the files of a corpus, over
// every prefix of each and over every single flipped bit.

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/support/check.h"

namespace {

using Input = std::vector<uint8_t>;

// In memory of its own, so that ASan sees where it ends.
void run(const Input& input, size_t size) {
  const Input copy(input.begin(), input.begin() + static_cast<ptrdiff_t>(size));
  LLVMFuzzerTestOneInput(copy.data(), copy.size());
}

size_t run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  Input input{std::istreambuf_iterator<char>(file), {}};
  for (size_t n = 0; n <= input.size(); ++n) run(input, n);
  for (size_t bit = 0; bit < input.size() * 8; ++bit) {
    const auto mask = static_cast<uint8_t>(1U << bit % 8);
    input[bit / 8] ^= mask;
    run(input, input.size());
    input[bit / 8] ^= mask;
  }
  return 1 + input.size() * 9;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
    return 2;
  }
  size_t files = 0;
  size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    std::printf("%s\n", entry.path().c_str());
    std::fflush(stdout);  // a crash then names its file
    inputs += run_file(entry.path());
    ++files;
  }
  std::printf("%zu files, %zu inputs\n", files, inputs);
  return files == 0 ? 1 : 0;
}
