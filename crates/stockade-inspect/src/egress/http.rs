//! curl, wget and other clients of HTTP.

use stockade_shell::{CommandId, Script, Word};

use super::arguments::{Argument, read};
use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_path, of_stdin, of_word};
use crate::hosts::host_of;

const CURL_SHORT: &str = "AbcCdDeEFhHKmoPQrtTuUwxXyYz";
const CURL_LONG: [&str; 44] = [
    "data",
    "data-ascii",
    "data-binary",
    "data-raw",
    "data-urlencode",
    "form",
    "form-string",
    "json",
    "upload-file",
    "request",
    "header",
    "user",
    "user-agent",
    "output",
    "url",
    "cookie",
    "cookie-jar",
    "config",
    "proxy",
    "connect-timeout",
    "max-time",
    "retry",
    "resolve",
    "cert",
    "key",
    "cacert",
    "referer",
    "range",
    "limit-rate",
    "write-out",
    "dump-header",
    "interface",
    "socks5",
    "socks5-hostname",
    "proxy-user",
    "url-query",
    "output-dir",
    "mail-to",
    "mail-from",
    "unix-socket",
    "connect-to",
    "oauth2-bearer",
    "noproxy",
    "capath",
];

pub(super) fn curl(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let mut request = Request::default();
    for argument in read(words, CURL_SHORT, &CURL_LONG) {
        match argument {
            Argument::Operand(word) => request.url(script, word),
            Argument::Option { name, value } => match (name, value) {
                (
                    "d" | "data" | "data-ascii" | "data-binary" | "data-urlencode" | "json",
                    Some(value),
                ) => {
                    request.send(
                        at_file(script, id, value.text)
                            .unwrap_or_else(|| of_word(script, value.word)),
                    );
                }
                ("data-raw" | "form-string" | "url-query", Some(value)) => {
                    request.send(of_word(script, value.word));
                }
                ("F" | "form", Some(value)) => {
                    let part = value
                        .text
                        .split_once('=')
                        .map_or(value.text, |(_, part)| part);
                    request.send(
                        at_file(script, id, part)
                            .or_else(|| part.strip_prefix('<').map(of_path))
                            .unwrap_or_else(|| of_word(script, value.word)),
                    );
                }
                ("T" | "upload-file", Some(value)) => {
                    request.send(if matches!(value.text, "-" | ".") {
                        of_stdin(script, id).max(Data::Local)
                    } else {
                        of_path(value.text)
                    });
                }
                ("X" | "request", Some(value)) => request.method(value.text),
                ("url", Some(value)) => request.url(script, value.word),
                ("G" | "get", _) => request.get = true,
                (
                    "H" | "header" | "A" | "user-agent" | "b" | "cookie" | "e" | "referer",
                    Some(value),
                ) => request.header(script, value.word),
                _ => {}
            },
        }
    }
    request.outflow("egress.curl", "curl")
}

/// `@file`, `name@file` and `@-`.
fn at_file(script: &Script, id: CommandId, text: &str) -> Option<Data> {
    let path = text.strip_prefix('@').or_else(|| {
        let (name, path) = text.split_once('@')?;
        (!name.contains(['=', ' ', '"', '{']) && !path.is_empty()).then_some(path)
    })?;
    Some(if path == "-" {
        of_stdin(script, id).max(Data::Literal)
    } else {
        of_path(path)
    })
}

const WGET_LONG: [&str; 14] = [
    "post-data",
    "post-file",
    "body-data",
    "body-file",
    "method",
    "header",
    "output-document",
    "input-file",
    "user-agent",
    "timeout",
    "tries",
    "directory-prefix",
    "user",
    "password",
];

pub(super) fn wget(script: &Script, words: &[Word]) -> Option<Outflow> {
    let mut request = Request::default();
    for argument in read(words, "OPoaiUtTeQDXAIRl", &WGET_LONG) {
        match argument {
            Argument::Operand(word) => request.url(script, word),
            Argument::Option { name, value } => match (name, value) {
                ("post-data" | "body-data", Some(value)) => {
                    request.send(of_word(script, value.word));
                }
                ("post-file" | "body-file", Some(value)) => request.send(of_path(value.text)),
                // Reads URLs from a file: each line of it becomes a request.
                ("i" | "input-file", Some(value)) if of_path(value.text) == Data::Sensitive => {
                    request.send(Data::Sensitive);
                }
                ("method", Some(value)) => request.method(value.text),
                ("header" | "U" | "user-agent", Some(value)) => request.header(script, value.word),
                _ => {}
            },
        }
    }
    request.outflow("egress.wget", "wget")
}

/// `HTTPie` and its kin: `http POST host field=value file@path`.
pub(super) fn httpie(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let mut request = Request::default();
    for argument in read(words, "aAos", &["auth", "output", "session"]) {
        let Argument::Operand(word) = argument else {
            continue;
        };
        let text = word.text.as_str();
        if !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase()) {
            request.method(text);
        } else if request.hosts.is_empty() {
            request.url(script, word);
        } else if let Some((_, path)) = text.split_once('@') {
            request.send(of_path(path));
        } else if text.contains('=') {
            request.send(of_word(script, word));
        }
    }
    if request.method_sends {
        request.data = request.data.max(of_stdin(script, id));
    }
    request.outflow("egress.http-client", "an HTTP client")
}

/// Browsers and openers: only what stands in the URL can leave.
pub(super) fn browser(script: &Script, id: CommandId, words: &[Word]) -> Option<Outflow> {
    let mut request = Request::default();
    // lynx posts what it reads.
    if words.iter().any(|word| word.text == "-post_data") {
        request.send(of_stdin(script, id));
    }
    for word in words.iter().filter(|word| word.text.contains("://")) {
        request.url(script, word);
    }
    let mut outflow = request.outflow("egress.browser", "a browser")?;
    if outflow.manner == Manner::Contact {
        outflow.manner = Manner::Session;
    }
    Some(outflow)
}

/// `bitsadmin /upload` and `certutil -urlcache`, which other systems have in place of curl.
pub(super) fn windows(words: &[Word]) -> Option<Outflow> {
    let hosts: Vec<String> = words
        .iter()
        .filter(|word| word.text.contains("://"))
        .filter_map(|word| host_of(&word.text))
        .collect();
    let uploads = words
        .iter()
        .any(|word| word.text.eq_ignore_ascii_case("/upload"));
    (!hosts.is_empty()).then_some(Outflow {
        rule: "egress.http-client",
        act: "an HTTP client",
        hosts,
        data: if uploads { Data::Local } else { Data::None },
        manner: if uploads {
            Manner::Send
        } else {
            Manner::Contact
        },
        wary: uploads,
    })
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one command line"
)]
struct Request {
    hosts: Vec<String>,
    data: Data,
    sends: bool,
    method_sends: bool,
    get: bool,
    covert: bool,
}

impl Request {
    fn url(&mut self, script: &Script, word: &Word) {
        let text = word.text.as_str();
        let local = ["file:", "data:", "javascript:"]
            .iter()
            .any(|scheme| text.starts_with(scheme));
        if text.is_empty() || local {
            return;
        }
        self.hosts.extend(host_of(text));
        // What is put into a URL leaves with it.
        let inserted = of_word(script, word);
        let after_host = text
            .split_once("://")
            .map_or(text, |(_, rest)| rest)
            .find(['/', '?']);
        let substituted = word.substitutions().next().is_some();
        if after_host.is_some() && (substituted || inserted == Data::Sensitive) {
            self.send(inserted);
        } else if substituted && text.contains("$()") && inserted > Data::Literal {
            // A command's output as part of the host name.
            self.covert = true;
            self.data = self.data.max(inserted);
        }
        if encoded_label(text) {
            self.covert = true;
        }
    }

    fn send(&mut self, data: Data) {
        self.sends = true;
        self.data = self.data.max(data).max(Data::Literal);
    }

    fn method(&mut self, method: &str) {
        self.method_sends |= matches!(
            method.to_ascii_uppercase().as_str(),
            "POST" | "PUT" | "PATCH"
        );
    }

    /// A header may carry a token to a service that expects it; output of a command is data.
    fn header(&mut self, script: &Script, word: &Word) {
        let data = word
            .substitutions()
            .flatten()
            .map(|id| super::sensitive::of_command(script, id))
            .max();
        let credential = word.text.to_ascii_lowercase().starts_with("authorization");
        if let Some(data) = data
            && data > Data::Literal
            && !credential
        {
            self.send(data);
        }
    }

    fn outflow(self, rule: &'static str, act: &'static str) -> Option<Outflow> {
        if self.hosts.is_empty() && !self.sends && !self.covert {
            return None;
        }
        let manner = if self.covert {
            Manner::Covert
        } else if self.sends && !(self.get && self.data <= Data::Literal) || self.method_sends {
            Manner::Send
        } else {
            Manner::Contact
        };
        Some(Outflow {
            rule,
            act,
            hosts: self.hosts,
            data: self.data,
            manner,
            wary: false,
        })
    }
}

/// True if the first label of the host looks like encoded data: `MTExLTExLTExMTE=.evil.test`.
pub(super) fn encoded_label(text: &str) -> bool {
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host.split(['/', '?', ':']).next().unwrap_or_default();
    let Some((label, rest)) = host.split_once('.') else {
        return false;
    };
    if !rest.contains('.') && !label.ends_with('=') {
        return false;
    }
    let digits = label.chars().filter(char::is_ascii_digit).count();
    let upper = label.chars().filter(char::is_ascii_uppercase).count();
    let hex = label.len() >= 24 && label.chars().all(|c| c.is_ascii_hexdigit()) && digits >= 4;
    label.ends_with('=') || hex || (label.len() >= 20 && digits >= 3 && upper >= 3)
}
