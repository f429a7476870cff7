//! Names that mean something although the file does not define them.

use crate::words::Words;

/// Names of Python that are there without an import, or that pieces of code use without one.
pub(super) static BUILTINS: Words = Words::new("program/api/globals builtins");

/// The same of JavaScript, in Node and in browsers.
pub(super) static GLOBALS: Words = Words::new("program/api/globals globals");

/// The same of Go.
pub(super) const GO_BUILTINS: &[&str] = &[
    "string", "len", "append", "make", "panic", "byte", "rune", "nil", "true", "false", "print",
    "println", "copy", "int", "C", "range",
];

/// Packages by the names under which snippets use them without importing.
pub(super) const GO_PACKAGES: &[(&str, &str)] = &[
    ("exec", "os/exec"),
    ("http", "net/http"),
    ("ioutil", "io/ioutil"),
    ("base64", "encoding/base64"),
    ("hex", "encoding/hex"),
    ("base32", "encoding/base32"),
    ("filepath", "path/filepath"),
    ("user", "os/user"),
    ("tls", "crypto/tls"),
    ("smtp", "net/smtp"),
    ("unix", "golang.org/x/sys/unix"),
    ("gzip", "compress/gzip"),
    ("zlib", "compress/zlib"),
    ("url", "net/url"),
    ("json", "encoding/json"),
    ("fmt", "fmt"),
    ("os", "os"),
    ("io", "io"),
    ("net", "net"),
    ("strings", "strings"),
    ("strconv", "strconv"),
    ("bytes", "bytes"),
    ("bufio", "bufio"),
    ("syscall", "syscall"),
    ("log", "log"),
    ("time", "time"),
    ("context", "context"),
    ("path", "path"),
    ("regexp", "regexp"),
    ("runtime", "runtime"),
    ("reflect", "reflect"),
    ("unsafe", "unsafe"),
    ("plugin", "plugin"),
];
