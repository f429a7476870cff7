//! The names of each language's libraries, and what they do: the tables in `rules/*.list`.

mod globals;

use std::sync::OnceLock;

use super::hash::{Map, Set};
use super::ir::Text;
use super::namespaces::looks_up;
use super::value::{Taint, Value};
use crate::paths::UNKNOWN;
use crate::words::Words;
use globals::{BUILTINS, GLOBALS, GO_BUILTINS, GO_PACKAGES};

/// A language family as the evaluator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Go,
    JavaScript,
    Python,
    Shell,
}

/// What a function does, and which arguments matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) action: &'static str,
    pub(crate) at: usize,
    /// A second position, where the table gives two numbers.
    pub(crate) second: usize,
    pub(crate) name: &'static str,
}

struct Table {
    entries: Map<&'static str, Entry>,
    /// Methods of objects whose class is not known, without the dot before them.
    methods: Map<&'static str, Entry>,
    roots: Set<&'static str>,
}

/// What gives one number after the other, where the language has no name for it.
pub(crate) const COUNTED: &str = "<range>";

/// Python modules whose members re-export others: `random._os` is `os`.
static REEXPORTED: Words = Words::new("program/api reexported");

impl Dialect {
    fn table(self) -> &'static Table {
        static PYTHON: OnceLock<Table> = OnceLock::new();
        static JAVASCRIPT: OnceLock<Table> = OnceLock::new();
        static GO: OnceLock<Table> = OnceLock::new();
        static SHELL: OnceLock<Table> = OnceLock::new();
        match self {
            Self::Python => PYTHON.get_or_init(|| read(include_str!("../../rules/python.list"))),
            Self::JavaScript => {
                JAVASCRIPT.get_or_init(|| read(include_str!("../../rules/javascript.list")))
            }
            Self::Go => GO.get_or_init(|| read(include_str!("../../rules/go.list"))),
            Self::Shell => SHELL.get_or_init(|| read("")),
        }
    }

    /// What the function with this name does.
    pub(crate) fn entry(self, path: &str) -> Option<Entry> {
        self.table().entries.get(path).copied()
    }

    /// What a method with this name does, whatever it belongs to.
    pub(crate) fn method(self, name: &str) -> Option<Entry> {
        self.table().methods.get(name).copied()
    }

    /// Whether a name is in the table.
    pub(crate) fn knows(self, path: &str) -> bool {
        self.table().entries.contains_key(path)
    }

    /// Whether a module is in the table.
    pub(crate) fn has_module(self, path: &str) -> bool {
        self.table()
            .roots
            .contains(path.split('.').next().unwrap_or(path))
            || path == "os/exec"
    }

    /// A name that the file does not define.
    pub(crate) fn global(self, name: &str) -> Value {
        let table = self.table();
        match self {
            Self::Shell => {
                let value = variable(name);
                // Outputs that nobody made have no name to tell them by.
                if value.is_unknown() && !name.starts_with('#') {
                    return Value::text(format!("{UNKNOWN}{name}")).with(value.taint);
                }
                return value;
            }
            Self::Python => {
                if table.roots.contains(name) || BUILTINS.contains(&name) {
                    return self.source(name, Value::api(name));
                }
            }
            Self::JavaScript => {
                // The program's own directory is as good as the one it works in.
                if name == "__dirname" {
                    return Value::text(".");
                }
                if name == COUNTED {
                    return Value::api("range");
                }
                if table.roots.contains(name) || GLOBALS.contains(&name) {
                    return self.source(name, Value::api(name));
                }
            }
            Self::Go => {
                let path = GO_PACKAGES
                    .iter()
                    .find(|(short, _)| *short == name)
                    .map(|(_, path)| *path);
                if let Some(path) = path.or_else(|| table.roots.contains(name).then_some(name)) {
                    return Value::api(path);
                }
                // Channels give what they were given.
                if name == "<-" {
                    return Value::UNKNOWN;
                }
                if GO_BUILTINS.contains(&name) {
                    return Value::api(name);
                }
            }
        }
        Value::unknown(Taint::UNBOUND | by_name(name))
    }

    /// What a parameter is by its name alone: a web server's request.
    pub(crate) fn parameter(self, name: &str) -> Option<Value> {
        match (self, name) {
            (Self::JavaScript, "req" | "request") => Some(Value::api("IncomingMessage")),
            (Self::Python, "request") => Some(Value::api("request")),
            _ => None,
        }
    }

    /// A member of an API.
    pub(crate) fn member(self, path: &str, attr: &str) -> Value {
        if matches!(attr, "__dict__" | "__call__" | "default") && !path.is_empty() {
            return Value::api(path);
        }
        if self == Self::Python && path == "sys" && attr == "executable" {
            return Value::text("python3");
        }
        if let (Self::Python, "os" | "os.path", "sep") | (Self::JavaScript, "path", "sep") =
            (self, path, attr)
        {
            return Value::text("/");
        }
        if self == Self::JavaScript && path == "process.env" {
            return variable(attr);
        }
        let joined = match self {
            Self::Python => python_path(path, attr),
            Self::JavaScript => javascript_path(path, attr),
            Self::Go if path == "os/user.Current()" && attr == "HomeDir" => {
                return Value::text("~");
            }
            Self::Go | Self::Shell => format!("{path}.{attr}"),
        };
        self.source(&joined, Value::api(joined.as_str()))
    }

    /// `api["key"]`
    pub(crate) fn item(self, path: &str, key: &str) -> Value {
        match (self, path) {
            (Self::Python, "os.environ") | (Self::JavaScript, "process.env") => variable(key),
            (Self::Python, "sys.modules") => Value::api(key),
            _ => self.member(path, key),
        }
    }

    /// What an import binds: `from sys import argv` is input by any name.
    pub(crate) fn imported(self, path: &Text) -> Value {
        if let Some(known) = self.renamed(path) {
            return self.source(&known, Value::api(known.as_str()));
        }
        self.source(path, Value::api(path.clone()))
    }

    /// Modules that are others under the names they have inside the interpreter.
    fn renamed(self, path: &str) -> Option<String> {
        if self != Self::Python {
            return None;
        }
        let (root, rest) = path.split_at(path.find('.').unwrap_or(path.len()));
        let known = match root {
            "posix" | "nt" => "os",
            "_io" => "io",
            "_socket" => "socket",
            "_pickle" | "cPickle" => "pickle",
            "subprocess32" => "subprocess",
            "_winreg" => "winreg",
            "_ctypes" => "ctypes",
            _ => return None,
        };
        Some(format!("{known}{rest}"))
    }

    /// Marks values that are sources in themselves: `sys.argv`, `process.env`.
    fn source(self, path: &str, value: Value) -> Value {
        let taint = match self.entry(path).map(|entry| entry.action) {
            Some("input") if is_request(path) => Taint::INPUT | Taint::REQUEST,
            Some("input") => Taint::INPUT,
            Some("environment") => Taint::ENVIRONMENT,
            Some("secret") => Taint::SECRET,
            _ => Taint::NONE,
        };
        value.with(taint)
    }
}

/// Whether a name stands for what a visitor of a web server sends.
fn is_request(path: &str) -> bool {
    ["request.", "flask.request", "IncomingMessage."]
        .iter()
        .any(|start| path.starts_with(start))
}

/// An environment variable's value.
pub(crate) fn variable(name: &str) -> Value {
    let upper = name.to_ascii_uppercase();
    let known = if matches!(&*upper, "APPDATA" | "LOCALAPPDATA" | "USERPROFILE" | "TEMP") {
        &upper
    } else {
        name
    };
    match known {
        "HOME" | "USERPROFILE" => Value::text("~"),
        "APPDATA" => Value::text("~/AppData/Roaming"),
        "LOCALAPPDATA" => Value::text("~/AppData/Local"),
        "TMPDIR" | "TEMP" | "TMP" => Value::text("/tmp"),
        "PWD" => Value::text("."),
        "USER" | "USERNAME" | "LOGNAME" | "HOSTNAME" | "COMPUTERNAME" => {
            Value::unknown(Taint::IDENTITY)
        }
        _ if by_name(name) != Taint::NONE => Value::unknown(Taint::ENVIRONMENT),
        _ => Value::UNKNOWN,
    }
}

/// What a name alone suggests of its value.
pub(crate) fn by_name(name: &str) -> Taint {
    let lower = name.to_ascii_lowercase();
    let secret = [
        "password",
        "passwd",
        "secret",
        "credential",
        "cookies",
        "env_vars",
        "private_key",
        "access_key",
        "api_key",
        "apikey",
        "wallet",
        "keylog",
    ];
    if secret.iter().any(|word| lower.contains(word))
        || lower.ends_with("token")
        || lower.ends_with("tokens")
    {
        return Taint::SECRET;
    }
    if [
        "decoded",
        "decrypted",
        "deobf",
        "unpacked",
        "payload",
        "shellcode",
        "obfuscat",
    ]
    .iter()
    .any(|word| lower.contains(word))
        || lower == "sdec"
    {
        return Taint::DECODED;
    }
    if lower.starts_with("resp") || lower == "download" || lower == "downloaded" {
        return Taint::DOWNLOADED;
    }
    if lower == "conn" || lower.starts_with("sock") {
        return Taint::SOCKET;
    }
    Taint::NONE
}

fn python_path(path: &str, attr: &str) -> String {
    if matches!(
        path,
        "builtins" | "__builtins__" | "__builtin__" | "six.moves.builtins"
    ) {
        if looks_up(attr) {
            return format!("builtins.{attr}");
        }
        return attr.to_owned();
    }
    // A function of a C library, however it was loaded.
    if matches!(path, "ctypes.cdll.LoadLibrary()" | "ctypes.PyDLL()")
        || path.starts_with("ctypes.cdll.")
    {
        return format!("ctypes.CDLL().{attr}");
    }
    // The module that a built-in function belongs to.
    if attr == "__self__" && BUILTINS.contains(&path) {
        return "builtins".to_owned();
    }
    let bare = attr.trim_start_matches('_');
    if matches!(attr, "os" | "subprocess" | "builtins") && path.contains('(') {
        return attr.to_owned();
    }
    if path.contains('.') || path != bare {
        // `subprocess.os`, `random._os`: modules seen through others.
        let module = REEXPORTED.contains(&bare)
            && !path.starts_with("os.path")
            && !matches!(path, "concurrent" | "google" | "backports");
        if module
            && (attr.starts_with('_') || REEXPORTED.contains(&path) || !path.contains('('))
            && !known_submodule(path, attr)
        {
            return bare.to_owned();
        }
    }
    format!("{path}.{attr}")
}

fn known_submodule(path: &str, attr: &str) -> bool {
    matches!(
        (path, attr),
        (
            "asyncio" | "gevent" | "eventlet.green" | "trio",
            "subprocess" | "socket" | "os"
        )
    )
}

fn javascript_path(path: &str, attr: &str) -> String {
    if matches!(
        path,
        "global" | "globalThis" | "window" | "self" | "this" | "root" | "top" | "frames"
    ) {
        return attr.to_owned();
    }
    if path == "fs" && attr == "promises" || path == "process.mainModule" && attr == "exports" {
        return path.to_owned();
    }
    let is_module = || {
        matches!(
            path,
            "module" | "module.parent" | "process.mainModule" | "require.main"
        )
    };
    if attr == "constructor" && is_module() {
        return "Module".to_owned();
    }
    if attr == "constructor" && (path == "Function" || path == "eval" || path.contains('.')) {
        return "Function".to_owned();
    }
    format!("{path}.{attr}")
}

fn read(text: &'static str) -> Table {
    let mut entries = Map::default();
    let mut methods = Map::default();
    let mut roots = Set::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(path), Some(action)) = (words.next(), words.next()) else {
            continue;
        };
        if path.starts_with('#') {
            continue;
        }
        let at = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
        let last = words.next().unwrap_or_default();
        let second = last.parse().unwrap_or(1);
        let name = if last.parse::<usize>().is_ok() {
            ""
        } else {
            last
        };
        let entry = Entry {
            action,
            at,
            second,
            name,
        };
        if let Some(method) = path.strip_prefix('.') {
            methods.insert(method, entry);
        } else {
            entries.insert(path, entry);
            roots.insert(
                path.split('.')
                    .next()
                    .unwrap_or(path)
                    .trim_end_matches("()"),
            );
        }
    }
    Table {
        entries,
        methods,
        roots,
    }
}

/// The last part of a Go import path, which is the name it is used by.
pub(crate) fn go_package_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let versioned =
        last.len() > 1 && last.starts_with('v') && last[1..].bytes().all(|b| b.is_ascii_digit());
    let name = if versioned {
        parts.next().unwrap_or(last)
    } else {
        last
    };
    name.trim_start_matches("go-")
        .split('.')
        .next()
        .unwrap_or(name)
}
