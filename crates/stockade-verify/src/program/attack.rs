//! Attacks on others: floods, passwords tried one after the other, database statements that
//! someone else may finish.

use super::api::{Dialect, Entry};
use super::ir::{Expr, ExprKind};
use super::judge::{Judge, Pace};
use super::value::{Args, Kind, Taint, Value};
use crate::paths::UNKNOWN;
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// Packets that the program makes itself.
    pub(super) fn crafted(&mut self, path: &str, args: &Args, endless: bool, span: Span) {
        self.sends(path, args, span);
        let many = |name: &str| args.named(name).and_then(Value::as_int).unwrap_or(0);
        if endless || many("loop") > 0 || many("count") >= 100 {
            let reason = format!("`{path}` sends packets without end");
            self.findings.add(Rule::NetworkFlood, span, reason);
        } else {
            let reason = format!("`{path}` sends packets that it made itself");
            self.findings.excerpt(Rule::NetworkAccess, span, reason);
        }
    }

    /// Something sent again and again, as fast as it goes.
    pub(super) fn floods(&mut self, path: &str, args: &Args, endless: bool, span: Span) {
        let noise = |value: &Value| {
            matches!(
                value.as_api(),
                Some("os.urandom()" | "random._urandom()" | "random.randbytes()")
            )
        };
        if endless && (self.pace == Pace::Hurried || args.all().any(noise)) {
            let reason = format!("`{path}` again and again, without end or pause");
            self.findings.add(Rule::NetworkFlood, span, reason);
        }
    }

    /// A log-in with one password after the other.
    /// Text or data that can run code, where that is rarely meant: judged by where it comes from.
    pub(super) fn weakly(&mut self, path: &str, entry: Entry, arg: Option<&Value>, span: Span) {
        let taint = arg.map_or(Taint::NONE, Value::deep_taint);
        let outside = Taint::INPUT | Taint::DOWNLOADED | Taint::SOCKET | Taint::DECODED;
        let constant = arg.and_then(Value::exact).is_some();
        match entry.action {
            "deserialize-weak" if taint.has(outside) => self.deserialize(path, entry, arg, span),
            "template" if taint.has(outside) => {
                let reason = format!("`{path}` takes a template from someone else, and runs it");
                self.findings.add(Rule::CodeDynamic, span, reason);
            }
            "code-weak" if constant || taint.has(outside) => self.code(path, arg, span),
            _ => {}
        }
    }

    pub(super) fn tries(&mut self, path: &str, args: &Args, span: Span) {
        let action = self.dialect.entry(path).map(|entry| entry.action);
        let named = args.named.iter().any(|(name, value)| {
            let asked = matches!(&**name, "password" | "passwd" | "pwd" | "auth" | "pass")
                || action == Some("login") && matches!(&**name, "user" | "username");
            asked && value.deep_taint().has(Taint::TRIED)
        });
        let guessed = args.all().any(guesses);
        let asks = path.rsplit('.').next().is_some_and(is_login_method);
        let login = path.rsplit('.').next().is_some_and(|name| {
            matches!(
                name,
                "login" | "auth_password" | "Password" | "extractall" | "write"
            )
        });
        let given = (login || asks) && args.taint().has(Taint::TRIED);
        if named || given || guessed {
            let reason = format!("`{path}` tries one password after the other");
            self.findings.add(Rule::SystemSurvey, span, reason);
        }
    }

    /// The same letter to everyone on a list.
    pub(super) fn mails(&mut self, path: &str, args: &Args, span: Span) {
        let to = args.positional.get(1).or_else(|| args.named("to_addrs"));
        if to.is_some_and(|to| to.deep_taint().has(Taint::TRIED)) {
            let reason = format!("`{path}` writes to everyone on a list");
            self.findings.excerpt(Rule::NetworkFlood, span, reason);
        }
    }

    /// A statement with a hole where a value belongs: whoever fills it may end it.
    pub(super) fn injects(&mut self, name: &str, statement: &Value, span: Span) {
        let Some(text) = statement.as_text().filter(|text| text.contains(UNKNOWN)) else {
            return;
        };
        let upper = text.trim_start().to_ascii_uppercase();
        let verbs = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "REPLACE "];
        if !verbs.iter().any(|verb| upper.starts_with(verb)) {
            return;
        }
        let before = |at: usize| upper[..at].trim_end_matches('%');
        let mut holes = upper.match_indices(UNKNOWN).map(|(at, _)| before(at));
        let quoted = holes.any(|before| {
            // Double quotes hold names as often as values.
            let compared = before.strip_suffix('"').map(str::trim_end);
            before.ends_with('\'')
                || compared.is_some_and(|before| before.ends_with('=') || before.ends_with("LIKE"))
        });
        let outside = statement.taint.has(Taint::INPUT);
        if quoted || outside {
            let reason = format!("`{name}` is given a statement put together from values");
            self.findings.add(Rule::SqlInjection, span, reason);
        } else if statement.taint.has(Taint::PARAM | Taint::UNBOUND) {
            let reason = format!("`{name}` is given a statement put together at run time");
            self.findings.warn(Rule::SqlInjection, span, reason);
        }
    }

    /// A file whose name comes from whoever visits a web server: `../../etc/passwd`.
    pub(super) fn named_by_visitor(
        &mut self,
        path: &str,
        rule: Rule,
        file: Option<&Value>,
        span: Span,
    ) {
        if file.is_some_and(|file| file.taint.has(Taint::REQUEST) && file.exact().is_none()) {
            let reason = format!("`{path}` is given a file that a visitor names");
            self.findings.add(rule, span, reason);
        }
    }

    /// `upload.save(path)`, `response.sendFile(path)`
    pub(super) fn hands_file(&mut self, name: &str, args: &Args, span: Span) {
        let rule = match name {
            "save" | "mv" => Rule::FileWrite,
            "sendFile" | "download" => Rule::CredentialRead,
            _ => return,
        };
        self.named_by_visitor(name, rule, args.first(), span);
    }

    /// Functions that everything goes through, replaced: modules loaded, requests sent.
    fn hooks(&mut self, base: &Value, member: &str, span: Span) {
        let Some(path) = base.as_api().filter(|_| self.dialect != Dialect::Go) else {
            return;
        };
        let hooked = match path {
            "builtins" | "__builtins__" => {
                matches!(member, "__import__" | "open" | "input" | "eval" | "exec")
            }
            _ if self.dialect == Dialect::Python => false,
            "module" | "Module" | "module.Module" => matches!(member, "_load" | "_resolveFilename"),
            "module.prototype" | "Module.prototype" => matches!(member, "require" | "_compile"),
            "http" | "https" => matches!(member, "request" | "get"),
            "XMLHttpRequest.prototype" => matches!(member, "open" | "send"),
            "child_process" => matches!(member, "spawn" | "exec" | "execSync" | "spawnSync"),
            "Object.prototype" => true,
            _ => false,
        };
        if hooked {
            let reason = format!("replaces `{path}.{member}`, which everything goes through");
            self.findings.excerpt(Rule::ProcessTamper, span, reason);
        }
    }

    /// `object.__proto__.x = …`
    pub(crate) fn pollutes(&mut self, span: Span) {
        let reason = "changes what all objects inherit";
        self.findings.excerpt(Rule::SandboxGadget, span, reason);
    }

    /// `scripts: {postinstall: …}`
    pub(crate) fn scripted(&mut self, pairs: &[(Value, Value)], span: Span) {
        for (key, value) in pairs {
            if let Some(hook @ ("preinstall" | "postinstall")) = key.exact()
                && value.as_text().is_some()
            {
                self.installs(hook, span);
            }
        }
    }

    /// `package.scripts.postinstall = …`
    pub(crate) fn installs(&mut self, hook: &str, span: Span) {
        let reason = format!("sets the `{hook}` command, which runs when a package is installed");
        self.findings
            .excerpt(Rule::PersistenceInstallHook, span, reason);
    }

    /// The wallet's own functions, replaced.
    pub(crate) fn replaces(&mut self, base: &Value, member: &str, span: Span) {
        let wallet = matches!(
            base.as_api(),
            Some("ethereum" | "solana" | "web3" | "tronWeb")
        );
        let asked = matches!(
            member,
            "request" | "send" | "sendAsync" | "signTransaction" | "signAndSendTransaction"
        );
        self.hooks(base, member, span);
        if wallet && asked {
            let reason = "puts itself between the page and the wallet";
            self.findings.add(Rule::Surveillance, span, reason);
        }
    }
}

/// `{"user": "admin", "pin": one after the other}`
pub(super) fn guesses(value: &Value) -> bool {
    let Kind::Dict(pairs) = &value.kind else {
        return false;
    };
    pairs.iter().any(|(key, value)| {
        let asked = key.exact().is_some_and(|key| {
            matches!(
                key.to_ascii_lowercase().as_str(),
                "password" | "passwd" | "pass" | "pwd" | "pin" | "otp" | "passcode"
            )
        });
        asked && value.deep_taint().has(Taint::TRIED | Taint::SERIES)
    })
}

/// Methods that say whether a password is right.
pub(super) fn is_login_method(name: &str) -> bool {
    matches!(
        name,
        "authenticate" | "try_login" | "check_password" | "verify_password" | "checkpw"
    )
}

/// `for word in passwords`: a list that is elsewhere, named after what it holds.
pub(super) fn is_wordlist(iter: &Expr) -> bool {
    matches!(&iter.kind, ExprKind::Name(name) if matches!(
        name.to_ascii_lowercase().as_str(),
        "words" | "wordlist" | "passwords" | "passwds" | "password_list" | "passlist" | "pins"
    ))
}

/// One line of a file, one of many words: what is tried if it is a password.
pub(super) fn tried(iter: &Value) -> Taint {
    let listed = match &iter.kind {
        Kind::Handle(_) => true,
        Kind::Api(path) => path.starts_with("itertools.") && path.ends_with("()"),
        Kind::List(items) => items.len() > 2 && items.iter().all(|item| item.exact().is_some()),
        _ => iter.deep_taint().has(Taint::FILE),
    };
    let numbers = match &iter.kind {
        Kind::List(items) => items.len() > 16 && items.iter().all(|item| item.as_int().is_some()),
        _ => false,
    };
    match (listed, numbers) {
        (true, _) => Taint::TRIED,
        (_, true) => Taint::SERIES,
        _ => Taint::NONE,
    }
}
