//! Random grants and denials over random places, judged by a model that knows nothing of the
//! product: what is written on the host, and what is read inside, must be what the rules say.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::context::{STOCKADE, run};

/// How many scenes each user gets.
const SCENES: u64 = 40;

/// Somebody other than root, whom no file of the machine belongs to.
const SOMEBODY: u32 = 54_321;

/// Where directories lie besides the home directory, over which a run has a layer of its own: two
/// places that a sandbox has one of its own of, and one that it has not.
const PLACES: [&str; 3] = ["/tmp", "/dev/shm", "/var/tmp"];
const DIRECTORIES: [&str; 4] = ["a", "a/b", "a/b/c", "d"];

/// The same numbers for the same seed, in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// A flag, and what it says of reading and of writing.
const FLAGS: [(&str, Option<bool>, Option<bool>); 5] = [
    ("--read", Some(true), None),
    ("--write", Some(true), Some(true)),
    ("--deny", Some(false), Some(false)),
    ("--deny-read", Some(false), Some(false)),
    ("--deny-write", None, Some(false)),
];

struct Rule {
    path: PathBuf,
    read: Option<bool>,
    write: Option<bool>,
}

/// The longest path wins, and a denial wins a tie; none if no rule speaks.
fn decide(rules: &[Rule], path: &Path, says: impl Fn(&Rule) -> Option<bool>) -> Option<bool> {
    let speaking = rules.iter().filter(|rule| path.starts_with(&rule.path));
    let spoken = speaking.filter_map(|rule| Some((rule.path.components().count(), says(rule)?)));
    // False is less than true, and the last of the greatest is taken.
    let longest = spoken.max_by_key(|(length, allowed)| (*length, !allowed));
    longest.map(|(_, allowed)| allowed)
}

struct Scene {
    roots: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    flags: Vec<String>,
    rules: Vec<Rule>,
    cwd: PathBuf,
}

impl Scene {
    fn random(seed: u64, user: u32, home: &Path) -> Self {
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let name = format!("stockade-grants-{}-{user}-{seed}", std::process::id());
        let places = PLACES.iter().map(Path::new).chain([home]);
        let roots: Vec<PathBuf> = places.map(|place| place.join(&name)).collect();
        let directories: Vec<PathBuf> = roots
            .iter()
            .flat_map(|root| DIRECTORIES.iter().map(|below| root.join(below)))
            .collect();
        for directory in &directories {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("f"), format!("{}\n", directory.display())).unwrap();
        }
        for path in roots.iter().flat_map(|root| walk(root)) {
            std::os::unix::fs::chown(&path, Some(user), Some(user)).unwrap();
        }
        let cwd = directories[numbers.below(directories.len())].clone();
        let mut flags = vec!["run".to_owned(), "-q".to_owned()];
        let is_read_only = numbers.below(3) == 0;
        if is_read_only {
            flags.push("--read-only".to_owned());
        }
        let mut rules = vec![Rule {
            path: cwd.clone(),
            read: Some(true),
            write: (!is_read_only).then_some(true),
        }];
        for _ in 0..numbers.below(5) {
            let (flag, read, write) = FLAGS[numbers.below(FLAGS.len())];
            let path = directories[numbers.below(directories.len())].clone();
            // What the working directory can't be, a run refuses to begin.
            if read == Some(false) && cwd.starts_with(&path) {
                continue;
            }
            flags.extend([flag.to_owned(), path.display().to_string()]);
            rules.push(Rule { path, read, write });
        }
        Self {
            roots,
            directories,
            flags,
            rules,
            cwd,
        }
    }

    /// What reads and writes everywhere, whatever is refused.
    fn script(&self) -> String {
        let mut script = String::new();
        for directory in &self.directories {
            let directory = directory.display();
            let _ = writeln!(
                script,
                "cat {directory}/f; true > {directory}/new; echo x >> {directory}/f"
            );
        }
        script.push_str("true\n");
        script
    }

    /// Whether the host's directory was written.
    fn was_written(directory: &Path) -> bool {
        let text = fs::read_to_string(directory.join("f")).unwrap();
        directory.join("new").exists() || text != format!("{}\n", directory.display())
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for root in &self.roots {
            let _ = fs::remove_dir_all(root);
        }
    }
}

fn walk(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        found.extend(walk(&entry.path()));
    }
    found
}

/// What the model and the run disagree about.
fn compare(scene: &Scene, stdout: &str) -> BTreeMap<PathBuf, String> {
    let mut wrong = BTreeMap::new();
    for directory in &scene.directories {
        let read = decide(&scene.rules, directory, |rule| rule.read);
        let write = decide(&scene.rules, directory, |rule| rule.write);
        let was_read = stdout.lines().any(|line| Path::new(line) == directory);
        let was_written = Scene::was_written(directory);
        // Where nobody speaks a place of the sandbox's own hides the host's, and elsewhere
        // everything can be read.
        if read.is_some_and(|allowed| allowed != was_read) {
            wrong.insert(
                directory.clone(),
                format!("read: {was_read}, the rules: {read:?}"),
            );
        }
        if write.unwrap_or(false) && read == Some(false) {
            continue;
        }
        if write.unwrap_or(false) != was_written {
            let text = format!("written: {was_written}, the rules: {write:?}");
            wrong.insert(directory.clone(), text);
        }
    }
    wrong
}

#[test]
fn grants_and_denials_are_what_the_rules_say() {
    if !rustix::process::getuid().is_root() {
        let required = std::env::var("STOCKADE_REQUIRE").unwrap_or_default();
        assert!(!required.contains("root"), "this test needs root");
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("stockade");
    fs::copy(STOCKADE, &program).unwrap();
    for user in [0, SOMEBODY] {
        let home = dir.path().join(user.to_string());
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::chown(&home, Some(user), Some(user)).unwrap();
        for seed in 1..=SCENES {
            let scene = Scene::random(seed, user, &home);
            let script = scene.script();
            let command = |words: &[String]| {
                let mut command = Command::new("setpriv");
                let [uid, gid] = ["--reuid", "--regid"].map(|word| format!("{word}={user}"));
                command
                    .args([&uid, &gid, "--clear-groups", "--"])
                    .args(words);
                command
                    .current_dir(&scene.cwd)
                    .env("HOME", &home)
                    .stdin(Stdio::null());
                run(command)
            };
            let shell = ["sh".to_owned(), "-c".to_owned(), script];
            let words: Vec<String> = std::iter::once(program.display().to_string())
                .chain(scene.flags.iter().cloned())
                .chain(shell.iter().cloned())
                .collect();
            let ran = command(&words).ends_with(0);
            let wrong = compare(&scene, &ran.stdout);
            assert!(
                wrong.is_empty(),
                "seed {seed} of user {user}: in {} with {:?}: {wrong:#?}\n{}",
                scene.cwd.display(),
                scene.flags,
                ran.stderr
            );
            // The script can do it all.
            command(&shell).ends_with(0);
            assert!(
                scene
                    .directories
                    .iter()
                    .all(|directory| Scene::was_written(directory))
            );
        }
    }
}
