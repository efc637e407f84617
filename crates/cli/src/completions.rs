//! `completions` and `man`: made from the arguments, so that they are never older than the command.

use std::{fs, path::PathBuf, process::ExitCode};

use clap::{Args, Command};
use clap_complete::Shell;

use crate::{failure::Failure, terminal::print_bytes};

/// Print the completions of a shell
///
/// For bash: `lambda-idempotency completions bash > ~/.local/share/bash-completion/completions/lambda-idempotency`
#[derive(Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Print the manual page, or write the pages of all commands into a directory
///
/// `lambda-idempotency man | man -l -` shows it.
#[derive(Args)]
pub(crate) struct Man {
    /// Write a page for each command into this directory
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<PathBuf>,
}

impl Completions {
    pub(crate) fn run(&self, mut command: Command) -> Result<ExitCode, Failure> {
        let mut script = Vec::new();
        let name = command.get_name().to_owned();
        clap_complete::generate(self.shell, &mut command, name, &mut script);
        write(&script)
    }
}

impl Man {
    pub(crate) fn run(&self, command: Command) -> Result<ExitCode, Failure> {
        let Some(folder) = &self.out else {
            let mut page = Vec::new();
            // As `generate_to` does: `help` has no page.
            clap_mangen::Man::new(command.disable_help_subcommand(true)).render(&mut page)?;
            return write(&page);
        };
        fs::create_dir_all(folder)?;
        clap_mangen::generate_to(command, folder)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn write(bytes: &[u8]) -> Result<ExitCode, Failure> {
    print_bytes(bytes)?;
    Ok(ExitCode::SUCCESS)
}
