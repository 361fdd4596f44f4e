// The command line, in the same way for all commands of weft(1): help with examples, and errors
// that name the command, the wrong word and the nearest right one. Wrong words end with status 2.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

namespace weft::cli {

inline constexpr int kWrongUsage = 2;

// Before there are commands: how --help shows options that take several values.
//   X ...    words, one behind the other
//   X,...    one word, with commas; or the option again
//   X        one word; the option again, where its sentence says so
void set_help(CLI::App& weft);

// When all commands are there: no option of theirs takes an empty word, which would be as if it had
// not been given.
void refuse_empty_words(CLI::App& weft);

// What stands behind "Usage: weft run [OPTIONS]" besides the options that CLI11 knows.
void set_usage(CLI::App& command, const std::string& rest);

struct Example {
  std::string words;     // as they are typed
  std::string sentence;  // what they do
};
// The end of --help: examples, then `remarks`, which may be empty.
void set_examples(CLI::App& command, const std::vector<Example>& examples,
                  const std::string& remarks = "");

// The command that the words named, as far as they were parsed: "weft stream send".
std::string chosen_name(const CLI::App& weft);

// Words for `weft COMMAND... --help` from those behind `weft help`. Throws CLI::ParseError when
// they name no command.
std::vector<std::string> words_for_help(const CLI::App& weft, std::vector<std::string> words);

// Reports what CLI::App::parse() threw: help and version on standard output, an error on standard
// error. Returns the exit status. Throws std::runtime_error if standard output could not take it.
int report(const CLI::App& weft, const CLI::ParseError& error);

// Words that CLI11 takes but the command cannot use. From a callback of CLI11.
[[noreturn]] void wrong_usage(const std::string& sentence);

// "rsp, spead or raw"
std::string list_of(const std::vector<std::string>& words);
// "; did you mean 'rsp'?", or nothing.
std::string did_you_mean(const std::string& given, const std::vector<std::string>& known);

// An option's value is one of these words. For Option::transform().
template <class T>
CLI::Validator one_of(std::map<std::string, T> values) {
  const auto convert = [values = std::move(values)](std::string& text) -> std::string {
    const auto found = values.find(text);
    if (found != values.end()) {
      text = std::to_string(static_cast<int64_t>(found->second));
      return {};
    }
    std::vector<std::string> words;
    for (const auto& [word, value] : values) words.push_back(word);
    return fmt::format("'{}' is not {}{}", text, list_of(words), did_you_mean(text, words));
  };
  return {convert, "", "one_of"};
}

// An option's value is a number in this range. For Option::check().
template <class T>
CLI::Validator between(T least, T most) {
  const std::string range = fmt::format("{}..{}", least, most);
  const auto check = [least, most, range](std::string& text) -> std::string {
    T value{};
    // CLI11 takes -1 for the largest number without a sign.
    const bool number = CLI::detail::lexical_cast(text, value) &&
                        (std::is_signed_v<T> || text.find('-') == std::string::npos);
    if (number && value >= least && value <= most) return {};
    if (number) return fmt::format("{} is not in {}", text, range);
    return fmt::format("'{}' is not a {}number in {}", text, std::is_integral_v<T> ? "whole " : "",
                       range);
  };
  return {check, range, "between"};
}

// An option's value is a time of at least so much. Times are counted as ns in 64 bits: all that
// these take fits behind any clock's time.
inline CLI::Validator seconds(double least) {
  return between(least, 1e9);
}
inline CLI::Validator milliseconds(double least) {
  return between(least, 1e12);
}

// An option's value is bytes, or a number with K, M or G (powers of 1024). For Option::transform().
CLI::Validator size();

}  // namespace weft::cli
