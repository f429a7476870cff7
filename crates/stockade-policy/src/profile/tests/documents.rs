//! docs/configuration.md has the table of keys that the reader uses, and its examples load.
//! `STOCKADE_BLESS=1` writes the table anew.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::profile::keys::{Key, Project, keys_of, tables};

const BEGIN: &str = "<!-- keys: generated -->\n";
const END: &str = "<!-- keys: end -->\n";

fn page_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")
}

fn rendered() -> String {
    let mut text = String::new();
    for table in std::iter::once("").chain(tables()) {
        let heading = match table {
            "" => "Top level".to_owned(),
            table => format!("`[{table}]`"),
        };
        writeln!(
            text,
            "\n### {heading}\n\n| key | meaning | flag | in a project's file |\n|---|---|---|---|"
        )
        .unwrap();
        for key in keys_of(table) {
            let flag = key.flag.map_or("–".to_owned(), |flag| format!("`{flag}`"));
            let (name, doc, project) = (key.name, key.doc, project(key));
            writeln!(text, "| `{name}` | {doc} | {flag} | {project} |").unwrap();
        }
    }
    text.push('\n');
    text
}

fn project(key: &Key) -> &'static str {
    match key.project {
        Project::Free => "allowed",
        Project::Compared => "allowed if it narrows",
        Project::Refused => "refused",
    }
}

#[test]
fn the_page_has_every_key() {
    let page = std::fs::read_to_string(page_file()).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (keys, after) = rest.split_once(END).unwrap();
    let expected = rendered();
    if std::env::var_os("STOCKADE_BLESS").is_some() {
        let page = format!("{before}{BEGIN}{expected}{END}{after}");
        std::fs::write(page_file(), page).unwrap();
    } else {
        assert!(
            keys == expected,
            "docs/configuration.md is out of date: run this test with STOCKADE_BLESS=1"
        );
    }
}

#[test]
fn every_example_of_the_page_loads() {
    let page = std::fs::read_to_string(page_file()).unwrap();
    let examples: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let is_project = example.starts_with("# stockade.toml");
        let file = if is_project {
            "/home/u/ws/stockade.toml"
        } else {
            "/home/u/.config/stockade/config.toml"
        };
        let files = Files::default()
            .with(file, example)
            .with("/home/u/.config/stockade/base.toml", "version = 1\n");
        let resolved = Profile::resolve(&sources(), &files);
        assert!(resolved.is_ok(), "{example}\n{resolved:?}");
    }
}
