//! `stockade man`: the manual, generated from the parser, so that it can't drift.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use serde::Serialize;

use crate::args::{Cli, ManArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

#[derive(Serialize)]
struct Document {
    pages: Vec<Page>,
}

/// One page of the manual.
#[derive(Serialize)]
pub(crate) struct Page {
    name: String,
    roff: String,
}

pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let pages = pages()?;
    if let Some(dir) = &args.out {
        write(&pages, dir).map_err(|error| Failure::new(Exit::Negative, error))?;
    } else if args.output.json {
        output::json(Document { pages })?;
    } else {
        // One document: the page of each command follows the overview.
        for page in &pages {
            output::raw(page.roff.as_bytes())?;
        }
    }
    Ok(Exit::Success)
}

/// The page of the program and one for each command, named as man(1) expects.
pub(crate) fn pages() -> Result<Vec<Page>, Failure> {
    let mut pages = Vec::new();
    let mut root = Cli::command();
    root.build();
    collect(&root, "stockade", &mut pages)?;
    Ok(pages)
}

fn collect(command: &clap::Command, name: &str, pages: &mut Vec<Page>) -> Result<(), Failure> {
    let mut roff = Vec::new();
    Man::new(command.clone()).title(name).render(&mut roff)?;
    pages.push(Page {
        name: name.to_owned(),
        roff: String::from_utf8_lossy(&roff).into_owned(),
    });
    let visible = |sub: &&clap::Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(visible) {
        collect(sub, &format!("{name}-{}", sub.get_name()), pages)?;
    }
    Ok(())
}

fn write(pages: &[Page], dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("can't make `{}`", dir.display()))?;
    for page in pages {
        let file = dir.join(format!("{}.1", page.name));
        fs::write(&file, &page.roff)
            .with_context(|| format!("can't write `{}`", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A flag that nobody can look up is half a flag.
    #[test]
    fn every_flag_is_in_the_manual() {
        let pages = pages().unwrap();
        let mut root = Cli::command();
        root.build();
        check(&root, "stockade", &pages);
        assert!(pages.len() > 8, "{}", pages.len());
    }

    fn check(command: &clap::Command, name: &str, pages: &[Page]) {
        if command.get_name() == "help" || command.is_hide_set() {
            return;
        }
        let page = pages.iter().find(|page| page.name == name).unwrap();
        for flag in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
            if let Some(long) = flag.get_long() {
                let written = format!("\\-\\-{}", long.replace('-', "\\-"));
                assert!(page.roff.contains(&written), "--{long} is not in {name}(1)");
            }
        }
        for sub in command.get_subcommands() {
            check(sub, &format!("{name}-{}", sub.get_name()), pages);
        }
    }
}
