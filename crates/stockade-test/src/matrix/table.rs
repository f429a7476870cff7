//! A table of the document, and what has changed in it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Column;
use crate::Failure;

/// How many lines a changed cell has to say why: whoever sees only the end of the output should see
/// that.
const TOLD: usize = 12;

/// One of the document's tables, between two comments with its name.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    pub(super) name: &'static str,
    pub(super) heads: &'static str,
    /// Those that could be tried here; the others stay as they are.
    pub(super) columns: &'a [&'a Column],
    pub(super) all: &'a [Column],
}

impl Table<'_> {
    /// The text with the table as it is now.
    pub(super) fn put<'a>(
        &self,
        text: &str,
        rows: impl Iterator<Item = (&'a str, &'a str)>,
        cell: impl Fn(&str, &'static str) -> String,
        why: impl Fn(&str, &'static str) -> &'a str,
        differences: &mut Vec<String>,
    ) -> Result<String, Failure> {
        let begin = format!("<!-- {}: begin -->", self.name);
        let end = format!("<!-- {}: end -->", self.name);
        let none = || format!("no table `{}` in the document", self.name);
        let (head, rest) = text.split_once(&begin).ok_or_else(none)?;
        let (old, tail) = rest.split_once(&end).ok_or_else(none)?;
        let known = parse(old, self.all.len());
        let mut table = format!("\n{}", self.heads);
        for column in self.all {
            let _ = write!(table, " {} |", column.backend);
        }
        let first = self.heads.matches('|').count() - 1;
        let _ = write!(table, "\n|{}\n", "---|".repeat(first + self.all.len()));
        for (row, title) in rows {
            let _ = write!(table, "| {row} |");
            if !title.is_empty() {
                let _ = write!(table, " {title} |");
            }
            for column in self.all {
                let before = known.get(&(row.to_owned(), column.backend.to_owned()));
                let before = before.map_or("", String::as_str);
                let tried = self
                    .columns
                    .iter()
                    .any(|tried| tried.backend == column.backend);
                let found = cell(row, column.backend);
                let now = match (tried, found.is_empty()) {
                    (true, false) => &found,
                    (false, _) if !before.is_empty() => before,
                    _ => "–",
                };
                if now != before {
                    differences.push(format!("{}/{row}: {before} → {now}", column.backend));
                    let reasons = why(row, column.backend).lines().take(TOLD);
                    differences.extend(reasons.map(|line| format!("    {line}")));
                }
                let _ = write!(table, " {now} |");
            }
            table.push('\n');
        }
        Ok(format!("{head}{begin}\n{table}\n{end}{tail}"))
    }
}

/// The cells of a table, by row and column.
fn parse(table: &str, count: usize) -> BTreeMap<(String, String), String> {
    let split = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let mut lines = table.lines().filter(|line| line.starts_with('|'));
    let heads = lines.next().map(split).unwrap_or_default();
    let mut cells = BTreeMap::new();
    for line in lines {
        let row = split(line);
        // Titles may hold the separator: the columns are counted from the end.
        let count = count.min(heads.len());
        let Some(first) = row.len().checked_sub(count) else {
            continue;
        };
        for (head, cell) in heads[heads.len() - count..].iter().zip(&row[first..]) {
            cells.insert((row[0].clone(), head.clone()), cell.clone());
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::{Column, Table};

    const DOCUMENT: &str = "<!-- t: begin -->
| row | case | a | b |
|---|---|---|---|
| L1 | one | works | – |
| L2 | two | enforced | not |
<!-- t: end -->";

    #[test]
    fn a_changed_cell_says_why_and_others_say_nothing() {
        let column = |backend| Column {
            backend,
            usable: |_| Ok(()),
            flags: Vec::new(),
            by_contract: false,
            without: &[],
        };
        let all = [column("a"), column("b")];
        let tried = [&all[0]];
        let table = Table {
            name: "t",
            heads: "| row | case |",
            columns: &tried,
            all: &all,
        };
        let rows = [("L1", "one"), ("L2", "two")].into_iter();
        let cell = |row: &str, _| if row == "L1" { "works" } else { "differs" }.to_owned();
        let why = |_: &str, _| "L2 (two), Boxed\n  missing inside: exit code 124";
        let mut differences = Vec::new();
        let text = table
            .put(DOCUMENT, rows, cell, why, &mut differences)
            .unwrap();
        assert_eq!(
            differences,
            [
                "a/L2: enforced → differs",
                "    L2 (two), Boxed",
                "      missing inside: exit code 124"
            ]
        );
        // A column that could not be tried stays as it was.
        assert!(text.contains("| L2 | two | differs | not |"), "{text}");
    }
}
