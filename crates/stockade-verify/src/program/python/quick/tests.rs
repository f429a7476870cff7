//! What this reader yields is what the grammar yields.

use std::path::PathBuf;

use super::super::by_grammar;
use super::read;

/// Whether the text was read here, and as the grammar reads it.
#[track_caller]
fn same(text: &str, name: &str) -> bool {
    let Some(quick) = read(text) else {
        return false;
    };
    let slow = by_grammar(text).unwrap();
    assert_eq!(
        slow.broken, None,
        "{name}: read, though the grammar objects"
    );
    if format!("{:?}", quick.body) != format!("{:?}", slow.body) {
        let (quick, slow) = (format!("{:#?}", quick.body), format!("{:#?}", slow.body));
        let differs = quick.lines().zip(slow.lines()).position(|(a, b)| a != b);
        let from = differs.unwrap_or(0).saturating_sub(12);
        let near = |text: &str| {
            let lines: Vec<_> = text.lines().skip(from).take(30).collect();
            lines.join("\n")
        };
        panic!(
            "{name}\n--- here\n{}\n--- grammar\n{}",
            near(&quick),
            near(&slow)
        );
    }
    true
}

#[test]
fn statements_and_expressions() {
    let texts = include_str!("samples.txt");
    for text in texts.split("#---\n") {
        assert!(same(text, text), "not read: {text}");
    }
}

#[test]
fn what_is_not_certain_is_left_to_the_grammar() {
    for text in [
        "print 'x'",
        "exec code in scope",
        "match x:\n    case 1:\n        pass\n",
        "with (open(a) as b, c):\n    pass\n",
        "x = (",
        "if x:\npass\n",
        "    x = 1\n",
        "x = 'abc",
        "naïve = 1",
        "def f[T](x): pass",
        "type X = int",
        "a <> b",
        "x = f'{a",
    ] {
        assert!(read(text).is_none(), "{text}");
    }
    let deep = format!("x = {}1{}", "(".repeat(500), ")".repeat(500));
    assert!(read(&deep).is_none());
    assert!(read(&format!("x = {}1", "-".repeat(500))).is_none());
    assert!(read(&format!("x = {}1", "a.b - ".repeat(500))).is_none());
    assert!(read(&format!("x = {}y", "not ".repeat(500))).is_none());
    assert!(read(&format!("x = a{}", ".b".repeat(500))).is_none());
    assert!(read(&format!("x = {}1", "'a' + ".repeat(5_000))).is_some());
}

/// Texts with pieces taken out, doubled or exchanged: read or not, but never a failure.
#[test]
fn broken_texts() {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 0xffff_ffff).unwrap() % below.max(1)
    };
    let odd = [
        "(", ")", "[", "{", "}", "'", "\"", "f'", "\\", "\n", "\t", ":", "=", "*", "#", "!", "é",
        "\0",
    ];
    let samples: Vec<&str> = include_str!("samples.txt").split("#---\n").collect();
    for _ in 0..2_000 {
        let mut text: Vec<char> = samples[random(samples.len())].chars().collect();
        for _ in 0..=random(4) {
            let at = random(text.len());
            let end = (at + random(12)).min(text.len());
            match random(3) {
                0 => drop(text.drain(at..end)),
                1 => {
                    let piece = text[at..end].to_vec();
                    text.splice(at..at, piece);
                }
                _ => {
                    let piece = odd[random(odd.len())].chars();
                    text.splice(at..at, piece);
                }
            }
        }
        let text: String = text.into_iter().collect();
        read(&text);
    }
    assert!(read(&format!("for {} in y: pass", "* ".repeat(100_000))).is_none());
    assert!(read(&"async ".repeat(100_000)).is_none());
    assert!(read(&"lambda x=".repeat(100_000)).is_none());
    assert!(read(&"f'{".repeat(100_000)).is_none());
    assert!(read(&"if x: ".repeat(100_000)).is_none());
}

/// Files of the Python that is installed, if one is.
#[test]
fn installed_files() {
    let list = std::env::var("STOCKADE_PYTHON_FILES").ok();
    let mut files: Vec<PathBuf> = match &list {
        Some(list) => std::fs::read_to_string(list)
            .unwrap()
            .lines()
            .map(PathBuf::from)
            .collect(),
        None => [
            "/usr/lib/python3",
            "/usr/lib/python3.11",
            "/usr/lib/python3.13",
        ]
        .iter()
        .flat_map(|root| {
            [
                PathBuf::from(root),
                PathBuf::from(root).join("json"),
                PathBuf::from(root).join("email"),
            ]
        })
        .flat_map(|root| std::fs::read_dir(root).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "py"))
        .collect(),
    };
    files.sort();
    let (mut read, mut all) = (0, 0);
    let mut different = Vec::new();
    for path in files
        .iter()
        .take(if list.is_some() { usize::MAX } else { 60 })
    {
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        all += 1;
        let name = path.display().to_string();
        let Ok(quickly) = std::panic::catch_unwind(|| same(&text, &name)) else {
            different.push(name);
            continue;
        };
        read += usize::from(quickly);
        if !quickly && list.is_some() {
            eprintln!("left to the grammar: {}", path.display());
        }
    }
    eprintln!("{read} of {all} files were read here");
    assert!(different.is_empty(), "read otherwise: {different:#?}");
    assert!(read * 10 >= all * 8, "{read} of {all}");
}
