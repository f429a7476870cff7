//! Network access of programs: who is talked to, what is sent.

use super::api::{Dialect, Entry};
use super::judge::{Judge, argument};
use super::value::{Args, Kind, Taint, Value};
use crate::hosts;
use crate::paths::UNKNOWN;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    pub(super) fn url(&mut self, path: &str, value: Option<&Value>, span: Span) -> bool {
        let text = match value.map(|value| &value.kind) {
            Some(Kind::Text(text)) => Some(text.to_string()),
            Some(Kind::Dict(pairs)) => {
                let socket = pairs
                    .iter()
                    .find(|(key, _)| key.as_text() == Some("socketPath"));
                if let Some((_, socket)) = socket {
                    self.runtime_socket(socket.as_text().unwrap_or_default(), span);
                }
                let member = |name: &str| {
                    pairs
                        .iter()
                        .find(|(key, _)| key.as_text() == Some(name))
                        .and_then(|(_, value)| value.as_text().map(str::to_owned))
                };
                member("url")
                    .or_else(|| member("uri"))
                    .or_else(|| member("hostname"))
                    .or_else(|| member("host"))
            }
            _ => None,
        };
        let chosen = text.as_ref().is_none_or(|text| text.starts_with(UNKNOWN));
        if chosen && value.is_some_and(|value| value.taint.has(Taint::REQUEST)) {
            let reason = format!("`{path}` asks an address that a visitor names");
            self.findings.raise(Rule::NetworkAccess, span, reason);
            return false;
        }
        let Some(text) = text else {
            self.findings.warn(
                Rule::NetworkAccess,
                span,
                format!("`{path}` opens a network connection"),
            );
            return false;
        };
        if self.is_own_page(&text) {
            return true;
        }
        self.runtime_socket(&text, span);
        let pipeline = text.contains("/contents/.github/workflows/");
        if pipeline && !matches!(path, "requests.get" | "fetch" | "axios.get") {
            let reason = format!("`{path}` puts a job into another repository's pipeline");
            self.findings.add(Rule::PersistenceGitHook, span, reason);
        }
        let metadata = hosts::is_metadata(&text);
        if !metadata && hosts::host_of(&text).is_some_and(hosts::is_local) {
            return true;
        }
        if metadata {
            let reason = format!("`{path}` asks the cloud for credentials");
            self.findings.add(Rule::CredentialRead, span, reason);
            return false;
        }
        let dressed = text.split("://").nth(1).is_some_and(|rest| {
            rest.split('/')
                .next()
                .is_some_and(|authority| authority.contains('@'))
        });
        match hosts::suspicion(&text) {
            Some(reason) => self.findings.add(
                Rule::NetworkHost,
                span,
                format!("`{path}` talks to {reason}"),
            ),
            None if dressed => self.findings.add(
                Rule::NetworkHost,
                span,
                format!("`{path}` sends credentials in a URL"),
            ),
            None => self.findings.warn(
                Rule::NetworkAccess,
                span,
                format!("`{path}` opens a network connection"),
            ),
        }
        false
    }

    pub(super) fn fetch(
        &mut self,
        path: &str,
        entry: Entry,
        args: &Args,
        span: Span,
        result: Value,
    ) -> Value {
        let arg = argument(args, entry).or_else(|| args.first());
        let local = self.url(path, arg, span);
        if path == "XMLHttpRequest().open" {
            self.seen.opened = arg.and_then(Value::as_text).map(str::to_owned);
        }
        if !local {
            self.sends(path, args, span);
        }
        let mut result = result.with(Taint::DOWNLOADED);
        let sent = Taint::SECRET | Taint::ENVIRONMENT | Taint::IDENTITY;
        result.taint = result.taint.without(sent);
        result
    }

    /// An address on the server that a page comes from: it has what is typed into the page anyway.
    fn is_own_page(&self, address: &str) -> bool {
        self.dialect == Dialect::JavaScript
            && address.starts_with(['/', '.', '?'])
            && !address.starts_with("//")
    }

    /// Data given to something that sends it.
    pub(super) fn sends(&mut self, path: &str, args: &Args, span: Span) {
        let opened = self.seen.opened.as_deref();
        if path == "XMLHttpRequest().send" && opened.is_some_and(|to| self.is_own_page(to)) {
            return;
        }
        let archive = |value: &Value| match &value.kind {
            Kind::Handle(file) => self.archived.contains(file),
            _ => false,
        };
        let buffer = |value: &Value| {
            let held = |value: &Value| {
                value
                    .as_api()
                    .is_some_and(|path| path.starts_with("io.BytesIO()"))
            };
            held(value)
                || matches!(&value.kind, Kind::Dict(pairs) if pairs.iter().any(|(_, value)| held(value)))
        };
        let packed = self.seen.packs.is_some() && args.all().any(buffer);
        let foreign = packed || args.all().any(archive);
        let taint = carried(args);
        if taint.has(Taint::SECRET) {
            self.findings.add(
                Rule::Exfiltration,
                span,
                format!("`{path}` sends credentials out"),
            );
        } else if taint.has(Taint::ENVIRONMENT) {
            self.findings.add(
                Rule::Exfiltration,
                span,
                format!("`{path}` sends the environment out"),
            );
        } else if taint.has(Taint::IDENTITY) {
            self.findings.add(
                Rule::Exfiltration,
                span,
                format!("`{path}` sends names of this machine and its users out"),
            );
        } else if taint.has(Taint::OUTPUT) && taint.has(Taint::SOCKET) {
            self.findings.add(
                Rule::ReverseShell,
                span,
                format!("`{path}` sends the output of commands from the network"),
            );
        } else if foreign || taint.has(Taint::FOREIGN) {
            self.findings.add(
                Rule::Exfiltration,
                span,
                format!("`{path}` sends a file that is not the program's own"),
            );
        } else if taint.has(Taint::FILE | Taint::OUTPUT) {
            self.findings.warn(
                Rule::Exfiltration,
                span,
                format!("`{path}` sends the content of files or the output of commands"),
            );
        }
    }

    /// The same, where it is only by its name that something sends.
    pub(super) fn sends_unknown(&mut self, name: &str, args: &Args, span: Span) {
        let taint = args.taint();
        let certain = Taint::SECRET | Taint::ENVIRONMENT | Taint::FOREIGN;
        let shell = taint.has(Taint::OUTPUT) && taint.has(Taint::SOCKET);
        if taint.has(certain) || shell {
            self.sends(name, args, span);
        }
    }

    pub(super) fn resolve(
        &mut self,
        path: &str,
        arg: Option<&Value>,
        span: Span,
        result: Value,
    ) -> Value {
        if let Some(value) = arg {
            let text = value.as_text().unwrap_or_default();
            let label = text.split('.').next().unwrap_or_default();
            let carries = label.contains(UNKNOWN) && text.matches('.').count() >= 2;
            let data = value.deep_taint().has(
                Taint::IDENTITY
                    | Taint::SECRET
                    | Taint::ENVIRONMENT
                    | Taint::OUTPUT
                    | Taint::FILE
                    | Taint::UNBOUND,
            );
            if carries && data {
                self.findings.add(
                    Rule::Exfiltration,
                    span,
                    format!("`{path}` sends data out in a name it looks up"),
                );
            } else if hosts::suspicion(text).is_some() {
                self.findings.add(
                    Rule::NetworkHost,
                    span,
                    format!("`{path}` talks to a host that collects data"),
                );
            }
        }
        result.with(if path.contains("xt") {
            Taint::DOWNLOADED
        } else {
            Taint::NONE
        })
    }
}

/// Methods that give away what they are given, by their names.
pub(super) fn is_sending(name: &str) -> bool {
    let verbs = ["send", "upload", "post", "put_", "publish", "emit", "stor"];
    verbs.iter().any(|verb| name.starts_with(verb)) || name == "put"
}

/// Where what a request carries comes from, without what it is signed with.
fn carried(args: &Args) -> Taint {
    let given = args.positional.iter().map(|value| ("", value));
    let named = args.named.iter().map(|(name, value)| (&**name, value));
    given
        .chain(named)
        .fold(Taint::NONE, |taint, (name, value)| {
            taint | carried_by(name, value, 2)
        })
}

/// The same of one part. Headers that log in, name the client or are put together elsewhere carry
/// nothing; any other header may.
fn carried_by(name: &str, value: &Value, depth: usize) -> Taint {
    let Kind::Dict(pairs) = &value.kind else {
        return match name {
            "headers" | "auth" | "cookies" | "cert" | "verify" | "proxies" | "timeout" => {
                Taint::NONE
            }
            _ => value.deep_taint(),
        };
    };
    let inner = |signs: fn(&str) -> bool| {
        let pairs = pairs.iter().take(256);
        pairs.fold(Taint::NONE, |taint, (key, value)| {
            let key = key.exact().unwrap_or_default();
            if signs(key) {
                return taint;
            }
            taint | carried_by(key, value, depth.saturating_sub(1))
        })
    };
    match name {
        "auth" | "cookies" | "proxies" => Taint::NONE,
        "headers" => inner(is_login),
        // Options: `{headers: {…}, body: …}`
        "" if depth > 0 => inner(|_| false),
        _ => value.deep_taint(),
    }
}

/// Headers that say who asks.
pub(super) fn is_login(header: &str) -> bool {
    let header = header.to_ascii_lowercase();
    let words = [
        "auth",
        "token",
        "api-key",
        "apikey",
        "access-key",
        "signature",
    ];
    matches!(&*header, "cookie" | "user-agent" | "referer" | "origin")
        || words.iter().any(|word| header.contains(word))
}
