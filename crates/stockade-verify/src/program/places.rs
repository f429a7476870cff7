//! Places that a program reads, writes and deletes: whose they are.

use super::judge::Judge;
use super::value::{Kind, Taint, Value};
use crate::files::{Deletion, Writing};
use crate::paths::{Place, Root, UNKNOWN};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn read(&mut self, place: &Place, span: Span, mut result: Value) -> Value {
        result.taint |= Taint::FILE;
        if let Some(up) = climbed(place) {
            return self.read(&up, span, result);
        }
        if is_foreign(place) || self.archived.contains(place.path.as_str()) {
            result.taint |= Taint::FOREIGN;
        }
        if is_loose(&place.path) {
            result.taint |= Taint::LOOSE;
        }
        let mut secret = self.files().read(place, span, self.findings);
        let browser = ["/User Data/", "/Firefox/Profiles"]
            .iter()
            .any(|store| place.path.contains(store));
        if browser && !secret {
            secret = true;
            let reason =
                format!("reads {}, what a browser keeps", place.path).replace(UNKNOWN, "…");
            self.findings.add(Rule::CredentialRead, span, reason);
        }
        if secret || place.is(crate::paths::Kind::Private) {
            result.taint |= Taint::SECRET;
        }
        if place.is(crate::paths::Kind::Disk) {
            let reason = format!("reads the device {}", place.path);
            self.findings
                .only_in_excerpt(Rule::CredentialRead, span, reason);
        }
        if place.is(crate::paths::Kind::Account) {
            let reason = format!("reads {}", place.path);
            self.findings
                .only_in_excerpt(Rule::AccountRead, span, reason);
        }
        result
    }

    /// A place written out that is someone else's: `/root/…`, `/home/NAME/…`, all of `/etc`.
    pub(super) fn peeks(&mut self, path: &str, span: Span) {
        let home = ["/root", "/home"].iter().any(|home| {
            let below = path.strip_prefix(home);
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let all = matches!(path.trim_end_matches('/'), "/etc" | "/boot" | "/var/log");
        let place = Place::new(path);
        if self.context.excerpt
            && (home || all)
            && !place.within(&self.analysis.verifier.allowed_paths)
        {
            let reason = format!("looks into {path}").replace(UNKNOWN, "…");
            self.findings.add(Rule::SystemSurvey, span, reason);
        }
    }

    pub(super) fn write(
        &mut self,
        place: &Place,
        path: &str,
        how: Writing,
        taint: Taint,
        span: Span,
    ) {
        self.files().write(place, how, span, self.findings);
        if let Some(source) = self.links.get(path) {
            let source = Place::new(source);
            self.files().write(&source, how, span, self.findings);
        }
        let fd = path.strip_prefix("/proc/self/fd/");
        if fd.is_some_and(|fd| fd.contains(UNKNOWN)) {
            let reason = "writes a file by a descriptor that was opened for something else";
            self.findings.excerpt(Rule::FileWrite, span, reason);
        }
        let hook = path.rsplit_once("/hooks/").map_or("", |(_, hook)| hook);
        let known = [
            "pre-commit",
            "post-commit",
            "pre-push",
            "post-merge",
            "post-checkout",
        ];
        if known.contains(&hook) && !place.is(crate::paths::Kind::GitHook) {
            let reason = format!("writes {hook}: git's hooks or configuration");
            self.findings
                .excerpt(Rule::PersistenceGitHook, span, reason);
        }
        self.multiplies(taint, span);
        if path.to_ascii_lowercase().ends_with("autorun.inf") {
            let reason = "writes what starts when a drive is plugged in";
            self.findings.add(Rule::PersistenceStartup, span, reason);
        }
        self.encrypts(path, taint, taint, span);
        if taint.has(Taint::DOWNLOADED | Taint::SOCKET) {
            self.downloaded.insert(path.into());
        }
    }

    /// The program's own source, written into other files.
    pub(super) fn multiplies(&mut self, taint: Taint, span: Span) {
        if taint.has(Taint::OWN) {
            let reason = "writes the program itself into another file";
            self.findings
                .excerpt(Rule::PersistenceStartup, span, reason);
        }
    }

    /// Encrypted content written over files of the user or the system, or over whatever a walk
    /// found. `origin` is where the file's name comes from.
    pub(super) fn encrypts(&mut self, path: &str, origin: Taint, taint: Taint, span: Span) {
        if !taint.has(Taint::ENCRYPTED) || !path.contains(UNKNOWN) {
            return;
        }
        let place = Place::new(path);
        let found = origin.has(Taint::WALKED) && taint.has(Taint::FILE);
        if self.is_theirs(&place) || found && !place.within(&self.analysis.verifier.allowed_paths) {
            let reason = "replaces files by encrypted ones";
            self.findings.add(Rule::DestroyFiles, span, reason);
        }
    }

    /// A place of the user or the system, where the program has nothing to write.
    pub(super) fn is_theirs(&self, place: &Place) -> bool {
        matches!(place.root, Root::Home | Root::Absolute)
            && !place.within(&self.analysis.verifier.allowed_paths)
    }

    pub(super) fn delete(&mut self, place: &Place, how: Deletion, span: Span) {
        self.files().delete(place, how, span, self.findings);
    }

    pub(super) fn chmod(&mut self, path: &str, mode: Option<&Value>, span: Span) {
        let Some(bits) = mode.and_then(mode_bits) else {
            self.executable.insert(path.into());
            return;
        };
        if bits & 0o111 != 0 {
            self.executable.insert(path.into());
        }
        if bits & 0o4000 != 0 {
            self.findings.add(
                Rule::FileMode,
                span,
                format!("makes {path} run with its owner's rights"),
            );
        } else if bits & 0o1002 == 0o2 {
            let place = Place::new(path);
            if bits & 0o777 == 0o777 || !place.within(&self.analysis.verifier.allowed_paths) {
                self.findings.add(
                    Rule::FileMode,
                    span,
                    format!("lets everyone write {path}").replace(UNKNOWN, "…"),
                );
            }
        }
    }
}

/// A mode as a number, or as the names of its bits.
fn mode_bits(mode: &Value) -> Option<i64> {
    match &mode.kind {
        Kind::Int(bits) => Some(*bits),
        Kind::Api(name) => Some(match name.rsplit('.').next()? {
            "S_ISUID" | "ModeSetuid" => 0o4000,
            "S_ISGID" | "ModeSetgid" => 0o2000,
            "S_IRWXU" => 0o700,
            "S_IRWXG" => 0o070,
            "S_IRWXO" => 0o007,
            "S_IWOTH" => 0o002,
            "S_IXUSR" | "S_IEXEC" => 0o100,
            "S_IXGRP" => 0o010,
            "S_IXOTH" => 0o001,
            "ModePerm" => 0o777,
            name if name.starts_with("S_I") || name.starts_with("Mode") => 0,
            _ => return None,
        }),
        Kind::List(parts) => parts
            .iter()
            .try_fold(0, |bits, part| Some(bits | mode_bits(part)?)),
        _ => None,
    }
}

/// Whether a value names the program's own file.
pub(super) fn is_own(value: &Value) -> bool {
    match &value.kind {
        Kind::Api(name) => matches!(&**name, "__file__" | "__filename"),
        Kind::Text(path) => &**path == "/proc/self/exe",
        _ => false,
    }
}

/// A place where anyone may put a file.
pub(super) fn is_loose(path: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/dev/shm/"]
        .iter()
        .any(|place| path.starts_with(place))
}

/// A file of the system or the user, not the program's own.
pub(super) fn is_foreign(place: &Place) -> bool {
    let system = ["/etc", "/var", "/home"].iter().any(|directory| {
        let below = place.path.strip_prefix(directory);
        below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    (system && !place.path.starts_with("/var/tmp/"))
        || place.root == Root::Home && !place.path.starts_with("~/.cache/")
}

/// `../../../etc/passwd`: wherever it begins, it ends there.
fn climbed(place: &Place) -> Option<Place> {
    let roots = ["/proc/self/root/", "/proc/1/root/"];
    if let Some(below) = roots.iter().find_map(|root| place.path.strip_prefix(root)) {
        return Some(Place::new(&format!("/{below}")));
    }
    let mut below = place.path.as_str();
    let mut steps = 0;
    while let Some(rest) = below.strip_prefix("../") {
        below = rest;
        steps += 1;
    }
    let up = Place::new(&format!("/{below}"));
    let told = [crate::paths::Kind::Account, crate::paths::Kind::Credential];
    (steps > 1 && told.into_iter().any(|kind| up.is(kind))).then_some(up)
}
