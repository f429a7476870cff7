//! Random trees, random work over an overlay, random edits of the host and kills of the commit.
//!
//! The oracle is the same script, executed bare on a copy. After a commit, and after whatever
//! recovers one that was killed, the host is what it was or what the copy is, without what was kept
//! back; and no edit of the host is lost.
//!
//! `STOCKADE_TRANSACTIONS=N` makes it N rounds, `STOCKADE_SEED=S` begins with round S.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime};

use crate::context::Context;
use crate::ws::{context, has_overlay};

/// What a file is: its kind and mode, and its content.
type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(number).unwrap() % end
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    fn path(&mut self) -> String {
        let directory = self.one_of(&["", "", "a/", "b/", "a/c/", "b/d/", "e/", "a/c/g/"]);
        let name = self.one_of(&["f0", "f1", "f2", "x y", "e", "a", "c", "n'q"]);
        format!("{directory}{name}")
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What links lead to: names beside them. The oracle runs bare, so no link may lead out of the tree.
const INNER: &[&str] = &["a", "f0", "f1", "nowhere"];

/// A script that makes a random tree.
fn beginning(dice: &mut Dice) -> String {
    let mut script = "mkdir -p a/c/g b/d e\n".to_owned();
    for number in 0..dice.below(14) {
        let path = quoted(&dice.path());
        let line = match dice.below(6) {
            0 => format!("ln -s {} {path}\n", dice.one_of(INNER)),
            1 => format!("mkdir -p {path}\n"),
            2 => format!("printf begin{number} > {path} && chmod 600 {path}\n"),
            _ => format!("printf begin{number} > {path}\n"),
        };
        script.push_str(&line);
    }
    script
}

/// A script that changes a tree, with the same result over an overlay and bare.
fn work(dice: &mut Dice) -> String {
    let mut script = String::new();
    for number in 0..=dice.below(12) {
        let (path, other) = (quoted(&dice.path()), quoted(&dice.path()));
        let directory = dice.one_of(&["a", "b", "a/c", "e", "new", "a/new"]);
        let line = match dice.below(11) {
            0 | 1 => format!("printf work{number} > {path}\n"),
            2 => format!("printf more{number} >> {path}\n"),
            3 => format!("rm -rf {path}\n"),
            4 => format!("mkdir -p {path}\n"),
            5 => format!("mv -T -f {path} {other}\n"),
            6 => format!("ln -s -n -f {} {path}\n", dice.one_of(INNER)),
            7 => format!(
                "test -L {path} || chmod {} {path}\n",
                dice.one_of(&["700", "755", "750"])
            ),
            8 => format!(
                "rm -rf {directory}; mkdir -p {directory}/deep; printf w{number} > {directory}/deep/f\n"
            ),
            9 => format!("rm -rf {other}; cp -a {path} {other}\n"),
            _ => format!("printf l{number} > l{number}; ln l{number} l{number}b\n"),
        };
        script.push_str(&line);
    }
    format!("exec 2> /dev/null\n{script}true")
}

fn tree(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            let data = fs::symlink_metadata(&path).unwrap();
            let content = if data.is_dir() {
                waiting.push(path.clone());
                Vec::new()
            } else if data.is_symlink() {
                fs::read_link(&path)
                    .unwrap()
                    .into_os_string()
                    .into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            let below = path.strip_prefix(top).unwrap().to_owned();
            found.insert(below, (data.mode(), content));
        }
    }
    found
}

/// An edit of the host: a file with a word that nothing else has.
struct Edit {
    path: PathBuf,
    word: String,
}

/// Replaces or makes a file in one step, as editors do. None if there is no directory for it.
fn edit(context: &Context, dice: &mut Dice, number: usize) -> Option<Edit> {
    let path = PathBuf::from(dice.path());
    let word = format!("edit-of-the-host-{number}");
    let draft = context.home().join("draft");
    fs::write(&draft, &word).unwrap();
    fs::rename(&draft, context.project().join(&path)).ok()?;
    Some(Edit { path, word })
}

/// Whether two trees are the same, but for edits and what is above or below them.
fn is_same(one: &Tree, other: &Tree, edits: &[Edit]) -> bool {
    let is_free = |path: &Path| {
        edits
            .iter()
            .all(|edit| !edit.path.starts_with(path) && !path.starts_with(&edit.path))
    };
    let pick = |tree: &Tree| -> Tree {
        let picked = tree.iter().filter(|(path, _)| is_free(path));
        picked
            .map(|(path, what)| (path.clone(), what.clone()))
            .collect()
    };
    pick(one) == pick(other)
}

fn differences(one: &Tree, other: &Tree) -> String {
    let paths: BTreeSet<&PathBuf> = one.keys().chain(other.keys()).collect();
    let differing = paths
        .into_iter()
        .filter(|path| one.get(*path) != other.get(*path));
    let lines = differing.map(|path| {
        format!(
            "  {} {:?} / {:?}\n",
            path.display(),
            one.get(path),
            other.get(path)
        )
    });
    lines.collect()
}

fn layer_of(context: &Context) -> Option<PathBuf> {
    let workspaces = fs::read_dir(context.home().join("store/workspaces")).ok()?;
    let layers = workspaces.flatten().flat_map(|workspace| {
        let overlay = fs::read_dir(workspace.path().join("overlay"));
        overlay.into_iter().flatten().flatten()
    });
    let mut uppers = layers.map(|layer| layer.path().join("upper"));
    uppers.find(|upper| upper.is_dir())
}

#[test]
fn a_commit_is_all_or_nothing_and_loses_no_edit() {
    if !has_overlay("a_commit_is_all_or_nothing_and_loses_no_edit") {
        return;
    }
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let rounds = number("STOCKADE_TRANSACTIONS").unwrap_or(40);
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let first = number("STOCKADE_SEED").unwrap_or(now.as_secs() * 1000);
    let _ = writeln!(std::io::stderr(), "seeds {first} to {}", first + rounds - 1);
    let mut usual = Duration::from_millis(20);
    let mut counts = BTreeMap::new();
    for seed in first..first + rounds {
        let outcome = round(seed, &mut usual);
        *counts.entry(outcome).or_insert(0) += 1;
    }
    let _ = writeln!(std::io::stderr(), "{counts:?}");
}

#[expect(clippy::too_many_lines, reason = "one round, told in order")]
fn round(seed: u64, usual: &mut Duration) -> &'static str {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let context = context();
    let project = context.project();
    let begin = format!("exec 2> /dev/null\n{}true", beginning(&mut dice));
    context.other(&["sh", "-c", &begin]).ends_with(0);
    let before = tree(&project);
    let copy = context.home().join("copy");
    context
        .other(&[
            "cp",
            "-a",
            project.to_str().unwrap(),
            copy.to_str().unwrap(),
        ])
        .ends_with(0);
    let script = work(&mut dice);
    let told = format!("seed {seed}\n{begin}\n--- work\n{script}\n---");

    context
        .stockade(["run", "-q", "--overlay", "--", "sh", "-c", &script])
        .ends_with(0);
    assert!(tree(&project) == before, "{told}: a run reached the host");
    let bare = format!("cd '{}'\n{script}", copy.display());
    context.other(&["sh", "-c", &bare]).ends_with(0);
    let mut after = tree(&copy);
    if dice.below(3) == 0 {
        plant(&context, &mut after);
    }
    let mut edits = Vec::new();
    let mut next_edit = 0;
    let edits_first = if dice.below(4) == 0 { dice.below(3) } else { 0 };
    let edits_meanwhile = if dice.below(3) == 0 {
        1 + dice.below(3)
    } else {
        0
    };
    for _ in 0..edits_first {
        edits.extend(edit(&context, &mut dice, next_edit));
        next_edit += 1;
    }
    let kills = dice.below(3) == 0;

    let mut commit = context.command(["ws", "commit"]);
    commit.stdout(Stdio::null()).stderr(Stdio::piped());
    let since = Instant::now();
    let mut child = commit.spawn().unwrap();
    let most = usize::try_from(usual.as_micros()).unwrap().max(1);
    for _ in 0..edits_meanwhile {
        let at = Duration::from_micros(dice.below(most) as u64);
        while since.elapsed() < at && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        edits.extend(edit(&context, &mut dice, next_edit));
        next_edit += 1;
    }
    if kills {
        let at = Duration::from_micros(dice.below(most) as u64);
        while since.elapsed() < at && child.try_wait().unwrap().is_none() {
            std::hint::spin_loop();
        }
        let _ = child.kill();
    }
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if !kills {
        *usual = (*usual + since.elapsed()) / 2;
    }
    // Whoever comes next puts in order what was left half-done.
    let next = context.stockade(["ws", "diff", "--summary"]);
    let told = format!(
        "{told}\nkill {kills}, commit {:?}: {said}\nthen {next:?}",
        ended.status
    );
    let host = tree(&project);
    let untouched = is_same(&host, &before, &edits);
    let applied = is_same(&host, &after, &edits);
    assert!(
        untouched || applied,
        "{told}\nhost / before\n{}host / after\n{}",
        differences(&host, &before),
        differences(&host, &after)
    );
    if ended.status.code() == Some(0) {
        assert!(
            applied,
            "{told}\nhost / after\n{}",
            differences(&host, &after)
        );
    } else if ended.status.code().is_some() {
        assert!(
            untouched,
            "{told}\nhost / before\n{}",
            differences(&host, &before)
        );
        assert!(!edits.is_empty(), "{told}: refused without an edit");
    }
    lost_nothing(&context, &host, &edits, &told);
    if edits.is_empty() && !applied {
        let again = context.stockade(["ws", "commit"]);
        assert_eq!(again.code, 0, "{told}\n{again:?}");
        let host = tree(&project);
        assert!(
            host == after,
            "{told}\nagain, host / after\n{}",
            differences(&host, &after)
        );
    }
    match ended.status.code() {
        None if applied => "killed, applied",
        None => "killed, rolled back",
        Some(0) => "applied",
        Some(_) => "refused",
    }
}

/// Puts protected names into the layer, as a run could if nothing mediated them.
fn plant(context: &Context, after: &mut Tree) {
    let Some(upper) = layer_of(context) else {
        return;
    };
    let hooks = upper.join("planted/.git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("post-commit"), "planted").unwrap();
    fs::write(upper.join("planted/plain"), "plain").unwrap();
    fs::create_dir(upper.join(".vscode")).unwrap();
    fs::write(upper.join(".vscode/tasks.json"), "planted").unwrap();
    for path in ["planted", "planted/.git", "planted/.git/hooks"] {
        let path_in_layer = upper.join(path);
        fs::set_permissions(&path_in_layer, fs::Permissions::from_mode(0o755)).unwrap();
        let mode = fs::metadata(path_in_layer).unwrap().mode();
        after.insert(path.into(), (mode, Vec::new()));
    }
    let mode = fs::metadata(upper.join("planted/plain")).unwrap().mode();
    after.insert("planted/plain".into(), (mode, b"plain".to_vec()));
}

/// Every edit is on the host, or in the overlay if it was made in something that was taken back;
/// unless a later edit took its place.
fn lost_nothing(context: &Context, host: &Tree, edits: &[Edit], told: &str) {
    let has =
        |tree: &Tree, word: &str| tree.values().any(|(_, content)| content == word.as_bytes());
    for (number, edit) in edits.iter().enumerate() {
        let is_replaced = edits[number + 1..]
            .iter()
            .any(|later| later.path == edit.path);
        let is_there = has(host, &edit.word)
            || layer_of(context).is_some_and(|upper| has(&readable(&upper), &edit.word));
        assert!(
            is_replaced || is_there,
            "{told}\nlost {} {}",
            edit.path.display(),
            edit.word
        );
    }
}

/// A layer without its whiteouts, which can't be read.
fn readable(upper: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![upper.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let Ok(data) = fs::symlink_metadata(entry.path()) else {
                continue;
            };
            if data.is_dir() {
                waiting.push(entry.path());
            } else if data.is_file() {
                let content = fs::read(entry.path()).unwrap_or_default();
                found.insert(entry.path(), (data.mode(), content));
            }
        }
    }
    found
}
