//! The document, the paths and the tests agree.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::Test;

pub(crate) const TESTS: &[Test] = &[
    ("each_path_is_compiled", paths),
    ("each_row_has_a_test_that_uses_it", tests),
    ("each_symbol_has_one_row", symbols),
];

/// Symbols in the documentation of VT Code, Hawk and Errata.
const COUNTS: [usize; 3] = [89, 170, 9];

struct Row {
    symbol: String,
    here: String,
    test: String,
}

fn own_dir() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/compat"))
}

/// The rows of each table.
fn tables() -> Vec<Vec<Row>> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/compat-apis.md");
    let text = fs::read_to_string(file).unwrap();
    let mut tables = Vec::new();
    for line in text.lines() {
        if line.starts_with("## ") {
            tables.push(Vec::new());
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", symbol, here, test, _, ""] = cells[..]
            && symbol.starts_with('`')
        {
            let word = |cell: &str| cell.trim_matches('`').to_owned();
            tables.last_mut().unwrap().push(Row {
                symbol: word(symbol),
                here: word(here),
                test: word(test),
            });
        }
    }
    tables
}

fn symbols() {
    let tables = tables();
    let counts: Vec<usize> = tables.iter().map(Vec::len).collect();
    assert_eq!(counts, COUNTS);
    for table in tables {
        let mut seen = BTreeSet::new();
        for row in table {
            assert!(seen.insert(row.symbol.clone()), "twice: {}", row.symbol);
        }
    }
}

/// `paths.rs` imports every item of the tables; it does not compile if one is missing. With
/// `STOCKADE_UPDATE` in the environment it is written anew.
fn paths() {
    let rows = tables().into_iter().flatten();
    let items: BTreeSet<String> = rows.map(|row| item(&row.here)).collect();
    let mut text = String::from(
        "//! Every item that `docs/compat-apis.md` names. Written by `table.rs`.\n\n\
         #![expect(unused_imports, reason = \"they are here to be found\")]\n\n",
    );
    for module in ["", "errata", "hawk", "vtcode"] {
        let open = format!("mod {module} {{\n");
        text.push_str(if module.is_empty() { "" } else { &open });
        for item in &items {
            let (above, _) = item.rsplit_once("::").unwrap_or_default();
            if above == module {
                text.extend(["use stockade::compat::", item, ";\n"]);
            }
        }
        text.push_str(if module.is_empty() { "\n" } else { "}\n\n" });
    }
    let file = own_dir().join("paths.rs");
    if std::env::var_os("STOCKADE_UPDATE").is_some() {
        fs::write(&file, &text).unwrap();
    }
    // Without the order and the indentation that rustfmt gives the lines.
    let lines = |text: &str| -> BTreeSet<String> {
        text.lines().map(|line| line.trim().to_owned()).collect()
    };
    assert_eq!(lines(&fs::read_to_string(file).unwrap()), lines(&text));
}

/// The part of a path that can be imported: up to the first type, function or constant.
fn item(path: &str) -> String {
    let is_module = |part: &&str| ["errata", "hawk", "vtcode"].contains(part);
    let parts: Vec<&str> = path.split("::").collect();
    let modules = parts.iter().take_while(|part| is_module(part)).count();
    parts[..=modules].join("::")
}

fn tests() {
    for row in tables().into_iter().flatten() {
        let (file, name) = row.test.split_once("::").unwrap();
        let source = fs::read_to_string(own_dir().join(format!("{file}.rs"))).unwrap();
        let listed = format!("(\"{name}\", {name})");
        assert!(source.contains(&listed), "{}: no test {listed}", row.symbol);
        // A part of a test may run in a process of its own.
        let body = body(&source, name) + &body(&source, &format!("{name}_part"));
        let last = row.here.rsplit("::").next().unwrap();
        let mut words = body.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        assert!(
            words.any(|word| word == last),
            "{}: `{}` does not use `{last}`",
            row.symbol,
            row.test
        );
    }
}

/// The text of a function without arguments; empty if there is none.
fn body(source: &str, name: &str) -> String {
    let rest = source.split(&format!("fn {name}() {{")).nth(1);
    let body = rest.and_then(|rest| rest.split("\n}\n").next());
    body.unwrap_or_default().to_owned()
}
