//! git's own configuration, judged by key where it is put in place.
//!
//! `.git/config` can run code: `core.fsmonitor`, `core.hooksPath`, `core.sshCommand`, aliases,
//! filters, includes. But `git init`, `clone`, `remote add` and `push -u` must be able to write
//! it. git writes `config.lock` beside it and renames that over `config`; at this moment the new
//! text is read once, compared with the old one, and if only harmless keys changed, a private
//! copy of what was read is put in place. What the program still holds open is not that file.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use stockade_rules::{AbsPath, Kind, RuleSet};

use super::caller::{Caller, errno};
use super::place::Name;
use super::record::Operation;
use super::{Answer, Mediator};

/// Nobody's configuration is larger.
const MAX_CONFIG: u64 = 1 << 20;

/// The name of the private copy while it is written; nobody else can open it in between.
const COPY: &str = "config.stockade";

impl Mediator<'_> {
    /// If this rename puts git's configuration in place, judges and does it.
    pub(super) fn place_git_config(
        &mut self,
        caller: &Caller,
        from: &Name,
        to: &Name,
        flags: RenameFlags,
    ) -> Result<Option<Answer>, Errno> {
        let is_config = self
            .plan
            .git_configs
            .iter()
            .any(|glob| glob.matches(&to.path));
        if !is_config || flags.contains(RenameFlags::EXCHANGE) {
            return Ok(None);
        }
        let new_file = open_regular(from)?;
        let new = read_all(&new_file)?;
        let old = match open_regular(to) {
            Ok(file) => read_all(&file)?,
            Err(Errno::NOENT) => Vec::new(),
            Err(error) => return Err(error),
        };
        let rules = &self.plan.rules;
        if !only_harmless_changes(&old, &new, &|worktree| {
            stays_inside(rules, &to.path, worktree)
        }) {
            let decision = self.rules.decide(Kind::Write, &to.path);
            return Err(self
                .records
                .deny(caller, Operation::GitConfig, &to.path, decision.rule));
        }
        let mode = Mode::from_bits_truncate(rustix::fs::fstat(&new_file)?.st_mode);
        self.set_umask(Mode::empty());
        let create =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copy = rustix::fs::openat(&to.directory, COPY, create, mode)?;
        let placed = File::from(copy)
            .write_all(&new)
            .map_err(|error| errno(&error))
            .and_then(|()| {
                rustix::fs::renameat_with(&to.directory, COPY, &to.directory, &to.last, flags)
            })
            .and_then(|()| rustix::fs::unlinkat(&from.directory, &from.last, AtFlags::empty()));
        if placed.is_err() {
            let _ = rustix::fs::unlinkat(&to.directory, COPY, AtFlags::empty());
        }
        placed.map(|()| Some(Answer::Value(0)))
    }
}

impl Mediator<'_> {
    /// libgit2 (`cargo new`) makes the file empty before it replaces it as git does. It gets to
    /// make it, and a descriptor that can't write.
    pub(super) fn create_empty_git_config(
        &mut self,
        caller: &Caller,
        name: &Name,
    ) -> Result<Option<OwnedFd>, Errno> {
        if !self
            .plan
            .git_configs
            .iter()
            .any(|glob| glob.matches(&name.path))
        {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from(0o666);
        self.with_umask_of(caller, |_| {
            rustix::fs::openat(&name.directory, &name.last, flags, mode).map(Some)
        })
    }
}

fn open_regular(name: &Name) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(&name.directory, &name.last, flags, Mode::empty())?;
    let kind = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(fd.as_fd())?.st_mode);
    if kind.is_file() {
        Ok(fd)
    } else {
        Err(Errno::ACCESS)
    }
}

fn read_all(fd: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let mut text = Vec::new();
    let file = File::from(fd.try_clone().map_err(|error| errno(&error))?);
    file.take(MAX_CONFIG + 1)
        .read_to_end(&mut text)
        .map_err(|error| errno(&error))?;
    if text.len() as u64 > MAX_CONFIG {
        Err(Errno::FBIG)
    } else {
        Ok(text)
    }
}

/// Whether a submodule's configuration names a working tree that the sandbox may write anyway.
/// `git submodule` sets `core.worktree` there, to a relative path.
fn stays_inside(rules: &RuleSet, config: &Path, worktree: &[u8]) -> bool {
    let in_module = config.iter().any(|part| part == "modules");
    let place = config
        .parent()
        .and_then(|git| AbsPath::new(git.join(OsStr::from_bytes(worktree))).ok());
    in_module
        && !worktree.starts_with(b"/")
        && place.is_some_and(|place| rules.decide(Kind::Write, place.as_path()).allowed)
}

/// Whether every setting that is new in `new`, or changed, can neither run code nor redirect.
///
/// A text that can't be understood is not harmless.
fn only_harmless_changes(old: &[u8], new: &[u8], worktree: &dyn Fn(&[u8]) -> bool) -> bool {
    let Some(new) = settings(new) else {
        return false;
    };
    let old = settings(old).unwrap_or_default();
    new.difference(&old).all(|setting| {
        let is_worktree = setting.section == "core" && setting.variable == "worktree";
        setting.is_harmless() || is_worktree && worktree(&setting.value)
    })
}

/// One line of a configuration. Keys are compared as git does: section and variable without
/// regard to case, the part in quotes exactly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Setting {
    section: String,
    subsection: Option<Vec<u8>>,
    variable: String,
    value: Vec<u8>,
}

impl Setting {
    /// Keys that say what a repository is, where it is pushed and whose it is; everything that is
    /// not listed here may one day run something.
    fn is_harmless(&self) -> bool {
        let variable = self.variable.as_str();
        let named = self.subsection.is_some();
        match self.section.as_str() {
            "core" => matches!(
                variable,
                "repositoryformatversion"
                    | "filemode"
                    | "bare"
                    | "logallrefupdates"
                    | "ignorecase"
                    | "precomposeunicode"
                    | "symlinks"
                    | "autocrlf"
                    | "eol"
                    | "safecrlf"
                    | "sharedrepository"
                    | "quotepath"
                    | "abbrev"
                    | "sparsecheckout"
                    | "sparsecheckoutcone"
                    | "commitgraph"
                    | "multipackindex"
                    | "untrackedcache"
                    | "preloadindex"
                    | "compression"
                    | "loosecompression"
                    | "bigfilethreshold"
            ),
            "extensions" => matches!(
                variable,
                "objectformat"
                    | "refstorage"
                    | "noop"
                    | "partialclone"
                    | "preciousobjects"
                    | "compatobjectformat"
            ),
            "remote" => {
                named
                    && match variable {
                        // `ext::` and other helpers named in an address run programs
                        // (gitremote-helpers(7)).
                        "url" | "pushurl" => is_plain_address(&self.value),
                        "fetch" | "push" | "tagopt" | "mirror" | "prune" | "prunetags"
                        | "promisor" | "partialclonefilter" | "skipdefaultupdate"
                        | "skipfetchall" | "followremotehead" => true,
                        _ => false,
                    }
            }
            "branch" => named || matches!(variable, "autosetupmerge" | "autosetuprebase" | "sort"),
            "submodule" => {
                named
                    && match variable {
                        "url" => is_plain_address(&self.value),
                        "active" | "branch" | "ignore" | "fetchrecursesubmodules" | "shallow" => {
                            true
                        }
                        // `!command` is a value too.
                        "update" => matches!(
                            self.value.as_slice(),
                            b"checkout" | b"merge" | b"none" | b"rebase"
                        ),
                        _ => false,
                    }
            }
            "user" => matches!(variable, "name" | "email" | "useconfigonly"),
            "init" => variable == "defaultbranch",
            "pull" => matches!(variable, "rebase" | "ff"),
            "push" => matches!(variable, "default" | "autosetupremote" | "followtags"),
            "fetch" => matches!(variable, "prune" | "prunetags"),
            "merge" => !named && matches!(variable, "ff" | "conflictstyle" | "renames"),
            "rebase" => matches!(variable, "autosquash" | "autostash" | "updaterefs"),
            "gc" => matches!(variable, "auto" | "autodetach" | "autopacklimit"),
            "maintenance" => matches!(variable, "auto" | "strategy"),
            "index" => matches!(variable, "version" | "sparse" | "threads"),
            "status" | "advice" | "color" | "column" => true,
            _ => false,
        }
    }
}

/// A path, or an address whose transport git has built in.
fn is_plain_address(address: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(address) else {
        return false;
    };
    // A leading dash would be taken for an option (CVE-2017-1000117).
    if text.starts_with('-') || text.contains("::") {
        return false;
    }
    match text.split_once("://") {
        Some((scheme, rest)) => {
            matches!(
                scheme,
                "https" | "http" | "ssh" | "git" | "file" | "git+ssh" | "ssh+git"
            ) && !rest.starts_with('-')
        }
        None => true,
    }
}

/// The settings of a configuration file (git-config(1), "Syntax"); none if it is not one.
fn settings(text: &[u8]) -> Option<BTreeSet<Setting>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Lines { rest: text };
    let mut found = BTreeSet::new();
    let mut section: Option<(String, Option<Vec<u8>>)> = None;
    loop {
        reader.skip_blank();
        match reader.peek() {
            None => return Some(found),
            Some(b'[') => section = Some(reader.section()?),
            Some(_) => {
                let (variable, value) = reader.setting()?;
                let (section, subsection) = section.clone()?;
                found.insert(Setting {
                    section,
                    subsection,
                    variable,
                    value,
                });
            }
        }
    }
}

struct Lines<'a> {
    rest: &'a [u8],
}

impl Lines<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// White space, line ends and comments.
    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.next();
                }
                b'#' | b';' => self.skip_line(),
                _ => return,
            }
        }
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// `[section]`, `[section "subsection"]`, or the old `[section.subsection]`.
    fn section(&mut self) -> Option<(String, Option<Vec<u8>>)> {
        self.next();
        let mut name = String::new();
        loop {
            match self.next()? {
                b']' => break,
                b' ' | b'\t' => {
                    let subsection = self.quoted_subsection()?;
                    return Some((name.to_ascii_lowercase(), Some(subsection)));
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    name.push(char::from(byte));
                }
                _ => return None,
            }
        }
        match name.split_once('.') {
            Some((section, subsection)) => {
                let subsection = subsection.to_ascii_lowercase().into_bytes();
                Some((section.to_ascii_lowercase(), Some(subsection)))
            }
            None => Some((name.to_ascii_lowercase(), None)),
        }
    }

    fn quoted_subsection(&mut self) -> Option<Vec<u8>> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.next();
        }
        if self.next()? != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b'"' => return (self.next()? == b']').then_some(name),
                b'\n' => return None,
                b'\\' => name.push(self.next()?),
                byte => name.push(byte),
            }
        }
    }

    fn setting(&mut self) -> Option<(String, Vec<u8>)> {
        let mut variable = String::new();
        while let Some(byte) = self.peek() {
            if !(byte.is_ascii_alphanumeric() || byte == b'-') {
                break;
            }
            variable.push(char::from(byte));
            self.next();
        }
        if !variable.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return None;
        }
        let variable = variable.to_ascii_lowercase();
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.next();
        }
        match self.peek() {
            Some(b'=') => {
                self.next();
                Some((variable, self.value()?))
            }
            // A variable alone means true.
            None | Some(b'\n' | b'\r' | b'#' | b';') => {
                self.skip_line();
                Some((variable, b"true".to_vec()))
            }
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        let mut quoted = false;
        // How long the value is without white space at its end.
        let mut solid = 0;
        loop {
            match self.next() {
                None | Some(b'\n') => {
                    if quoted {
                        return None;
                    }
                    value.truncate(solid);
                    return Some(value);
                }
                Some(b'"') => {
                    quoted = !quoted;
                    solid = value.len();
                }
                Some(b'\\') => {
                    match self.next()? {
                        b'\n' => continue,
                        b'n' => value.push(b'\n'),
                        b't' => value.push(b'\t'),
                        b'b' => value.push(8),
                        byte @ (b'\\' | b'"') => value.push(byte),
                        _ => return None,
                    }
                    solid = value.len();
                }
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    value.truncate(solid);
                    return Some(value);
                }
                Some(b' ' | b'\t' | b'\r') if !quoted && value.is_empty() => {}
                Some(byte) => {
                    value.push(byte);
                    if quoted || !matches!(byte, b' ' | b'\t' | b'\r') {
                        solid = value.len();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(old: &str, new: &str) -> bool {
        only_harmless_changes(old.as_bytes(), new.as_bytes(), &|_| false)
    }

    const FRESH: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

    #[test]
    fn what_init_clone_remote_and_push_write_passes() {
        assert!(harmless("", FRESH));
        let cloned = format!(
            "{FRESH}[remote \"origin\"]\n\turl = https://h.test/r.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n"
        );
        assert!(harmless(FRESH, &cloned));
        assert!(harmless(
            FRESH,
            &format!("{FRESH}[user]\n\tname = A \"B\" C\n\temail=a@b\n")
        ));
    }

    #[test]
    fn what_runs_code_does_not() {
        for line in [
            "[core]\n\tfsmonitor = ./x",
            "[core]\n\thooksPath = h",
            "[CORE]\n\tHooksPath = h",
            "[core] sshCommand = x",
            "[core]\n\teditor = x",
            "[core]\n\tworktree = /elsewhere",
            "[alias]\n\tst = !x",
            "[include]\n\tpath = x",
            "[includeIf \"gitdir:/\"]\n\tpath = x",
            "[filter \"f\"]\n\tclean = x",
            "[remote \"o\"]\n\tuploadpack = x",
            "[remote \"o\"]\n\turl = ext::sh -c x",
            "[remote \"o\"]\n\turl = --upload-pack=x",
            "[remote.o]\n\turl = ext::x",
            "[submodule \"s\"]\n\tupdate = !x",
            "[gpg]\n\tprogram = x",
            "[extensions]\n\tworktreeConfig = true",
            "[merge \"d\"]\n\tdriver = x",
            "[credential]\n\thelper = x",
        ] {
            assert!(!harmless(FRESH, &format!("{FRESH}{line}\n")), "{line}");
        }
    }

    #[test]
    fn what_was_there_may_stay() {
        let before = format!("{FRESH}[core]\n\thooksPath = mine\n");
        assert!(harmless(&before, &format!("{before}[user]\n\tname = n\n")));
        assert!(!harmless(&before, &before.replace("mine", "theirs")));
    }

    #[test]
    fn tricks_of_the_syntax_are_read_as_git_reads_them() {
        assert!(!harmless(FRESH, "[core]\n\tfs\\\nmonitor = x\n"));
        assert!(!harmless(
            FRESH,
            "[core]\n\tbare = false # \n\tfsmonitor = x\n"
        ));
        assert!(harmless(FRESH, "[core]\n\tbare = false # fsmonitor = x\n"));
        assert!(!harmless(FRESH, "[remote \"o\"] url = \"ext\"::x\n"));
        assert!(!harmless(FRESH, "[remote \"o\"] url = e\\\nxt::x\n"));
        assert!(!harmless(FRESH, "no section = x\n"));
        assert!(!harmless(FRESH, "[core\n"));
    }
}
