//! Methods of open files and archives.

use super::ir::Text;
use super::judge::Judge;
use super::places::{is_foreign, is_loose};
use super::value::{Args, Kind, Taint, Value};
use crate::files::Writing;
use crate::paths::Place;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// Methods of an open file.
    pub(super) fn handle(
        &mut self,
        path: &Text,
        origin: Taint,
        name: &str,
        args: &Args,
        span: Span,
    ) -> Value {
        match name {
            "write" | "writelines" | "Write" | "WriteString" | "end" | "add" => {
                let taint = args.taint();
                self.multiplies(taint, span);
                self.encrypts(path, origin, taint, span);
                self.writes_script(path, args.first(), span);
                let given = args.first().and_then(Value::as_text).unwrap_or_default();
                let source = Some(Place::new(given)).filter(|_| !given.is_empty());
                if let Some(place) = source.filter(is_foreign) {
                    self.archived.insert(path.clone());
                    if is_archive(path) {
                        self.peeks(given, span);
                        self.read(&place, span, Value::UNKNOWN);
                    }
                }
                if taint.has(Taint::DOWNLOADED | Taint::SOCKET) {
                    self.downloaded.insert(path.clone());
                }
                Value::UNKNOWN
            }
            "read" | "readlines" | "readline" | "Read" => {
                let place = Place::new(path);
                let kinds = place.kinds();
                let secret = [crate::paths::Kind::Credential, crate::paths::Kind::Private];
                let secret = secret.iter().any(|kind| kinds.contains(kind));
                let secret = secret && !path.ends_with(".pub");
                let mut own = if secret { Taint::SECRET } else { Taint::NONE };
                if is_foreign(&place) || self.archived.contains(path) {
                    own |= Taint::FOREIGN;
                }
                if is_loose(path) {
                    own |= Taint::LOOSE;
                }
                Value::unknown(Taint::FILE | own)
            }
            "extractall" => {
                if args.named("pwd").is_some() {
                    self.tries("extractall", args, span);
                }
                if let Some(target) = args.get(0, "path").and_then(Value::as_text) {
                    self.unpacks(target, span);
                }
                Value::UNKNOWN
            }
            _ => Value::of(Kind::Handle(path.clone())),
        }
    }

    /// `archive.extractall(…)`
    pub(super) fn unpacks_all(&mut self, base: &Value, args: &Args, span: Span) {
        let outside = Taint::DOWNLOADED | Taint::INPUT | Taint::SOCKET;
        let checked = args.named("filter").is_some() || args.get(1, "members").is_some();
        if base.taint.has(outside) && !checked {
            let reason = "unpacks an archive from outside, wherever its names point";
            self.findings.excerpt(Rule::FileWrite, span, reason);
        }
        if let Some(target) = args.get(0, "path").and_then(Value::as_text) {
            self.unpacks(target, span);
        }
    }

    /// An archive's files go to a place: nobody knows which.
    pub(super) fn unpacks(&mut self, target: &str, span: Span) {
        let place = Place::new(target);
        if place.is(crate::paths::Kind::System) || place.is_home() {
            let reason = format!("unpacks an archive over {target}");
            self.findings.add(Rule::FileWrite, span, reason);
        } else {
            self.write(&place, target, Writing::Append, Taint::NONE, span);
        }
    }
}

fn is_archive(path: &str) -> bool {
    [".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z"]
        .iter()
        .any(|ending| path.ends_with(ending))
}
