//! `lambda-idempotency`: makes events, shows their keys, runs a function locally, tests it under faults, and
//! operates its table.
//!
//! Each subcommand has one file or folder: its arguments, its work, and how it shows the result. `invoke` needs the
//! feature `local`; `chaos`, `records` and `prove` need the features of their names. Without it, a command says so.

#[cfg(feature = "local")]
mod arguments;
#[cfg(feature = "chaos")]
mod audit;
#[cfg(feature = "chaos")]
mod chaos;
mod event;
mod failure;
#[cfg(feature = "local")]
mod function;
#[cfg(feature = "local")]
mod invoke;
mod keys;
#[cfg(feature = "prove")]
mod prove;
#[cfg(feature = "records")]
mod records;
#[cfg(feature = "local")]
mod report;
#[cfg(any(feature = "local", feature = "records"))]
mod runtime;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;
use failure::Failure;

/// Makes AWS Lambda handlers safe to call twice.
#[derive(Parser)]
#[command(name = "lambda-idempotency", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Keys(Box<keys::Arguments>),
    Event(event::Arguments),
    #[cfg(feature = "local")]
    Invoke(Box<invoke::Arguments>),
    /// Deliver events to a real function on this machine (not compiled in)
    #[cfg(not(feature = "local"))]
    Invoke(LeftOut),
    #[cfg(feature = "chaos")]
    Chaos(Box<chaos::Arguments>),
    /// Run a real function under every fault (not compiled in)
    #[cfg(not(feature = "chaos"))]
    Chaos(LeftOut),
    #[cfg(feature = "prove")]
    Prove(prove::Arguments),
    /// Prove in your own AWS account that no message is lost (not compiled in)
    #[cfg(not(feature = "prove"))]
    Prove(LeftOut),
    #[cfg(feature = "records")]
    Records(Box<records::Arguments>),
    /// Look at the idempotency records of a store (not compiled in)
    #[cfg(not(feature = "records"))]
    Records(LeftOut),
    /// Print the completions of a shell
    ///
    /// For bash: `lambda-idempotency completions bash > ~/.local/share/bash-completion/completions/lambda-idempotency`
    Completions {
        /// The shell
        #[arg(value_name = "SHELL", value_enum)]
        shell: Shell,
    },
}

/// The arguments of a command that is not compiled in.
#[cfg(not(all(feature = "local", feature = "chaos", feature = "records", feature = "prove")))]
#[derive(clap::Args)]
struct LeftOut {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<std::ffi::OsString>,
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Event(arguments) => event::run(&arguments),
        #[cfg(feature = "local")]
        Command::Invoke(arguments) => runtime::run_to_the_end(invoke::run(*arguments)),
        #[cfg(not(feature = "local"))]
        Command::Invoke(_) => Err(failure::left_out("`invoke`", "local")),
        #[cfg(feature = "chaos")]
        Command::Chaos(arguments) => runtime::run(chaos::run(*arguments)),
        #[cfg(not(feature = "chaos"))]
        Command::Chaos(_) => Err(failure::left_out("`chaos`", "chaos")),
        #[cfg(feature = "prove")]
        Command::Prove(arguments) => runtime::run(prove::run(arguments)),
        #[cfg(not(feature = "prove"))]
        Command::Prove(_) => Err(failure::left_out("`prove`", "prove")),
        #[cfg(feature = "records")]
        Command::Records(arguments) => runtime::run(records::run(*arguments)),
        #[cfg(not(feature = "records"))]
        Command::Records(_) => Err(failure::left_out("`records`", "records")),
        Command::Completions { shell } => completions(shell),
    };
    done.unwrap_or_else(|failure| {
        terminal::tell(format_args!("error: {}", terminal::printable(&failure.to_string())));
        ExitCode::from(2)
    })
}

/// They are made from the arguments, so that they are never older than the command.
fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "lambda-idempotency", &mut script);
    terminal::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }

    /// Names of the library in a help text are those of the library, and words are those of the glossary.
    #[test]
    fn help_has_the_words_of_the_glossary_and_names_of_the_library() {
        fn look(command: &mut clap::Command, names: &mut Vec<String>) {
            let help = command.render_long_help().to_string();
            for word in ["settle", "put aside", "put back", "records evict", "parked"] {
                assert!(!help.contains(word), "{}: {word}", command.get_name());
            }
            let quoted = help.split('`').skip(1).step_by(2);
            names.extend(quoted.filter(|name| name.contains("::")).map(str::to_owned));
            command.get_subcommands_mut().for_each(|below| look(below, names));
        }
        let mut names = Vec::new();
        let command = super::Cli::command().term_width(0).max_term_width(0);
        look(&mut command.clone(), &mut names);
        assert!(!names.is_empty());
        let api = include_str!("../../../docs/api/lambda-idempotency.txt");
        for name in names.iter().filter(|name| !name.starts_with("lambda_runtime::")) {
            let path = name.split('(').next().unwrap_or_default();
            let (of, item) = path.rsplit_once("::").unwrap();
            let of = of.rsplit("::").next().unwrap_or(of);
            // The items of a type of another crate are not in this file.
            let is_it = |line: &str| {
                let is_item = line.contains(&format!("::{item}")) || line.starts_with("pub use");
                line.contains(of) && is_item
            };
            assert!(api.lines().any(is_it), "`{name}` is not public in the library");
        }
    }

    /// An option that all commands below one take is not theirs as well: they would get the other's value.
    #[test]
    fn no_option_has_the_name_of_one_for_all_commands() {
        fn look(command: &clap::Command, above: &[String]) {
            let names = |arg: &clap::Arg| arg.get_id().to_string();
            let own = || command.get_arguments();
            for arg in own() {
                let path = command.get_name();
                assert!(!above.contains(&names(arg)), "{path}: {}", arg.get_id());
            }
            let globals = own().filter(|arg| arg.is_global_set()).map(names);
            let all: Vec<_> = above.iter().cloned().chain(globals).collect();
            command.get_subcommands().for_each(|below| look(below, &all));
        }
        look(&super::Cli::command(), &[]);
    }
}
