#include "cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/nearest_word.h"
#include "cli/output.h"

namespace weft::cli {
namespace {

// CLI11 writes " ..." for each option that keeps several values, however they are given.
class Formatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    constexpr std::string_view kSeveral = " ...";
    const size_t at = text.find(kSeveral);
    if (at == std::string::npos || option->get_allow_extra_args()) return text;
    return text.replace(at, kSeveral.size(), option->get_delimiter() != '\0' ? ",..." : "");
  }
};

class UsageWith : public Formatter {
 public:
  explicit UsageWith(std::string rest) : rest_(std::move(rest)) {}
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = Formatter::make_usage(app, std::move(name));
    usage.insert(usage.find_last_not_of('\n') + 1, " " + rest_);
    return usage;
  }

 private:
  std::string rest_;
};

std::vector<const CLI::App*> visible_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); });
}

std::vector<std::string> names_of(const std::vector<const CLI::App*>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CLI::App* command : commands) names.push_back(command->get_name());
  return names;
}

// "--streams", "-o": what an option may be called.
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// The commands that the words named, from weft on.
std::vector<const CLI::App*> chosen(const CLI::App& weft) {
  std::vector<const CLI::App*> all{&weft};
  for (;;) {
    const std::vector<CLI::App*> parsed = all.back()->get_subcommands();
    if (parsed.empty()) return all;
    all.push_back(parsed.front());
  }
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

std::string unknown_command(const CLI::App& parent, const std::string& word) {
  const std::vector<std::string> names = names_of(visible_commands(parent));
  const std::string meant = did_you_mean(word, names);
  return fmt::format("'{}' is not a command{}", word,
                     meant.empty() ? ": it is one of " + list_of(names) : meant);
}

struct Complaint {
  const CLI::App* about;
  std::string sentence;
};

// An option that does not exist leaves its value behind, and whatever CLI11 then misses is a
// consequence of it.
std::optional<Complaint> unknown_option(const std::vector<const CLI::App*>& commands) {
  for (const CLI::App* command : commands) {
    for (const std::string& word : command->remaining()) {
      if (!word.starts_with('-') || word == "-" || word == "--") continue;
      const std::string name = word.substr(0, word.find('='));
      return Complaint{command, fmt::format("unknown option '{}'{}", name,
                                            did_you_mean(name, option_names(*command)))};
    }
  }
  return std::nullopt;
}

std::optional<Complaint> unexpected_word(const std::vector<const CLI::App*>& commands) {
  for (const CLI::App* command : commands) {
    for (const std::string& word : command->remaining()) {
      if (!visible_commands(*command).empty()) {
        return Complaint{command, unknown_command(*command, word)};
      }
      return Complaint{command, fmt::format("unexpected word '{}'", word)};
    }
  }
  return std::nullopt;
}

// CLI11's own sentences, where they are none.
std::string sentence_of(const CLI::App& command, const CLI::ParseError& error) {
  std::string text = error.what();
  constexpr std::string_view kNotConverted = "Could not convert: ";
  if (text.starts_with(kNotConverted)) {
    std::string rest = text.substr(kNotConverted.size());
    if (const size_t equals = rest.find(" = "); equals != std::string::npos) {
      return fmt::format("{}: '{}' is not a number that it takes", rest.substr(0, equals),
                         rest.substr(equals + 3));
    }
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr && text.ends_with(" missing")) {
    return text.substr(0, text.find(':')) + " needs a value";
  }
  const bool wants_command = command.get_require_subcommand_min() > 0 &&
                             dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (wants_command) {
    return "a command is missing: " + list_of(names_of(visible_commands(command)));
  }
  return text;
}

Complaint complaint_of(const CLI::App& weft, const CLI::ParseError& error) {
  const std::vector<const CLI::App*> commands = chosen(weft);
  if (auto complaint = unknown_option(commands)) return *complaint;
  if (auto complaint = unexpected_word(commands)) return *complaint;
  return {commands.back(), sentence_of(*commands.back(), error)};
}

std::string usage_of(const CLI::App& command) {
  const auto* formatter = dynamic_cast<const CLI::Formatter*>(command.get_formatter().get());
  return formatter == nullptr ? "" : formatter->make_usage(&command, full_name(command));
}

}  // namespace

void set_help(CLI::App& weft) {
  weft.formatter(std::make_shared<Formatter>());
}

void refuse_empty_words(CLI::App& weft) {
  for (CLI::Option* option : weft.get_options()) {
    // A flag takes no word, and some options none either.
    if (option->get_items_expected_min() == 0) continue;
    option->check([](const std::string& text) {
      return text.empty() ? std::string{"an empty word is no value"} : std::string{};
    });
  }
  for (CLI::App* command : weft.get_subcommands([](CLI::App*) { return true; })) {
    refuse_empty_words(*command);
  }
}

void set_usage(CLI::App& command, const std::string& rest) {
  command.formatter(std::make_shared<UsageWith>(rest));
}

void set_examples(CLI::App& command, const std::vector<Example>& examples,
                  const std::string& remarks) {
  size_t width = 0;
  for (const Example& e : examples) width = std::max(width, e.words.size());
  std::string text = "Examples:\n";
  for (const Example& e : examples) {
    text += fmt::format("  {:<{}}  # {}\n", e.words, width, e.sentence);
  }
  if (!remarks.empty()) text += "\n" + remarks;
  while (text.ends_with('\n')) text.pop_back();
  command.footer(text);
}

std::string chosen_name(const CLI::App& weft) {
  return full_name(*chosen(weft).back());
}

std::vector<std::string> words_for_help(const CLI::App& weft, std::vector<std::string> words) {
  const CLI::App* command = &weft;
  for (const std::string& word : words) {
    const auto commands = visible_commands(*command);
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&word](const CLI::App* c) { return c->get_name() == word; });
    if (found == commands.end()) {
      throw CLI::ValidationError(
          commands.empty() ? fmt::format("{} has no command '{}'", full_name(*command), word)
                           : unknown_command(*command, word));
    }
    command = *found;
  }
  words.emplace_back("--help");
  return words;
}

int report(const CLI::App& weft, const CLI::ParseError& error) {
  // Help and version are no errors.
  if (error.get_exit_code() == 0) {
    const bool help = dynamic_cast<const CLI::CallForHelp*>(&error) != nullptr;
    write_output(help ? weft.help() : std::string{error.what()} + "\n");
    finish_output();
    return 0;
  }
  const Complaint complaint = complaint_of(weft, error);
  const std::string name = full_name(*complaint.about);
  fmt::print(stderr, "{0}: {1}\n{2}'{0} --help' explains the words.\n", name, complaint.sentence,
             usage_of(*complaint.about));
  return kWrongUsage;
}

void wrong_usage(const std::string& sentence) {
  throw CLI::ValidationError(sentence);
}

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) list += i + 1 == words.size() ? " or " : ", ";
    list += words[i];
  }
  return list;
}

std::string did_you_mean(const std::string& given, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(given, known);
  return nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest);
}

CLI::Validator size() {
  const auto convert = [](std::string& text) -> std::string {
    const std::string given = text;
    try {
      const bool sign = text.find('-') != std::string::npos;  // CLI11 takes -1 for a large number
      if (!sign && CLI::AsSizeValue{false}(text).empty()) return {};
    } catch (const CLI::ValidationError&) {
      // It would name all units that it knows.
    }
    return fmt::format("'{}' is not a number of bytes, alone or with K, M or G", given);
  };
  return {convert, "", "size"};
}

}  // namespace weft::cli
