//! The parser of configuration reads what git reads, and refuses what git refuses.

use std::fs;

use proptest::prelude::*;
use stockade_rules::protected::git::config;

use super::Git;

type Settings = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn read_by_git(git: &Git, text: &[u8]) -> Option<Settings> {
    let file = git.path("file");
    fs::write(&file, text).unwrap();
    let output = git
        .command(&["config", "-f", "file", "--list", "-z"])
        .output()
        .unwrap();
    output.status.success().then(|| {
        let entries = output.stdout.split(|byte| *byte == 0);
        let entries = entries.filter(|entry| !entry.is_empty());
        entries
            .map(|entry| match entry.iter().position(|byte| *byte == b'\n') {
                Some(at) => (entry[..at].to_vec(), Some(entry[at + 1..].to_vec())),
                None => (entry.to_vec(), None),
            })
            .collect()
    })
}

fn read_by_us(text: &[u8]) -> Option<Settings> {
    let pairs = config::parse(text)?.into_iter();
    Some(pairs.map(|setting| (setting.key, setting.value)).collect())
}

/// Pieces that mean something to the parser, and some that do not.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"[core]\n",
        b"[a \"B.c\"]",
        b"[a.B]\r\n",
        b"[a\t\"\\\"x\\\\\"] ",
        b"[",
        b"]",
        b"\"",
        b"\\",
        b"\\\n",
        b"\\\r\n",
        b"\\t",
        b"\\q",
        b"\n",
        b"\n",
        b"\r",
        b"\r\n",
        b" ",
        b"\t",
        b"\x0b",
        b"=",
        b" = ",
        b"#",
        b";",
        b".",
        b"-",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xef",
        b"\xff",
        b"Key",
        b"key = value\n",
        b"x",
        b"1",
    ];
    proptest::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec)
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let begin =
        proptest::sample::select(vec![&b""[..], b"[s]\n", b"[s]\nk = ", b"\xef\xbb\xbf[s]"]);
    (begin, proptest::collection::vec(piece(), 0..14))
        .prop_map(|(begin, pieces)| [begin.to_vec(), pieces.concat()].concat())
}

#[test]
fn reads_what_git_reads() {
    let Some(git) = Git::find("reads_what_git_reads") else {
        return;
    };
    let config = ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner
        .run(&file(), |text| {
            prop_assert_eq!(read_by_us(&text), read_by_git(&git, &text));
            Ok(())
        })
        .unwrap();
}

/// Cases that are worth a name; all of them are read alike too.
#[test]
fn reads_oddities_as_git_does() {
    let Some(git) = Git::find("reads_oddities_as_git_does") else {
        return;
    };
    for text in [
        &b"key = v"[..],
        b"[core] fsmonitor = x",
        b"[core]fsmonitor",
        b"[core \"fsmonitor\0\"] x = y\n",
        b"[core]\nx = a\0b\n",
        b"[core]\nx = a \\\n b # c \\\nd = e\n",
        b"[core]\nx = \"a\n\"\n",
        b"[core]\nx = a  \"\"\n",
        b"[core]\nx # comment\n",
        b"[core]\nx =\n",
        b"[core]\n1x = 1\n",
        b"[co re]\n",
        b"[core .x]\n",
        b"[]\nx = 1\n",
        b"[ \"a\"]\nx = 1\n",
        b"[a\n\"b\"]\nx = 1\n",
        b"[a \"b\"\n]\nx = 1\n",
        b"[a.\"b\"]\nx = 1\n",
        b"[a..b]\nx = 1\n",
        b"[a]\nx=\\",
    ] {
        let shown = String::from_utf8_lossy(text);
        assert_eq!(read_by_us(text), read_by_git(&git, text), "{shown:?}");
    }
}
