//! Secrets with a structure of their own: JWT, PEM, URLs with a password, webhooks, and so on.

use std::ops::Range;

use super::assign::looks_random;
use super::shape::{Alphabet, contains, is_example, is_filler, is_reference, is_uuid};
use crate::finding::ThreatLevel::{self, Critical, High, Low, Medium};
use crate::peek;

pub(super) mod commands;

/// A secret that was recognised.
#[derive(Debug)]
pub(super) struct Match {
    pub(super) rule: &'static str,
    pub(super) name: &'static str,
    pub(super) value: Range<usize>,
    pub(super) level: ThreatLevel,
    pub(super) confidence: f32,
}

impl Match {
    const fn new(
        (rule, name): (&'static str, &'static str),
        value: Range<usize>,
        level: ThreatLevel,
        confidence: f32,
    ) -> Self {
        Self {
            rule,
            name,
            value,
            level,
            confidence,
        }
    }
}

/// A recogniser: looks at the text from the place where its literal was found.
pub(super) type Recognise = fn(&[u8], usize) -> Option<Match>;

/// Literals (compared without case), each with its recogniser.
pub(super) const CUSTOM: &[(&str, Recognise)] = &[
    ("\"auth\":", docker_auth),
    (" -u ", curl_user),
    (" --user ", curl_user),
    ("://", url_password),
    ("$1$", crypt_hash),
    ("$2a$", crypt_hash),
    ("$2b$", crypt_hash),
    ("$2y$", crypt_hash),
    ("$5$", crypt_hash),
    ("$6$", crypt_hash),
    ("$8$", crypt_hash),
    ("$9$", crypt_hash),
    ("$apr1$", crypt_hash),
    ("$argon2", crypt_hash),
    ("$krb5", crypt_hash),
    ("$y$", crypt_hash),
    ("authorization", authorization),
    ("begin ", pem),
    ("directoryentry(", last_argument),
    ("eyj", jwt),
    ("machine ", netrc),
    ("networkcredential(", last_argument),
    ("psexec", dash_p),
    ("putty-user-key-file-", putty),
    ("sshpass -p", dash_p),
    ("chpasswd", commands::chpasswd),
    ("sudo -s", commands::sudo),
    (":5432:", commands::pgpass),
    ("password 7 ", commands::veiled),
    ("{ssha", commands::directory_hash),
    ("{sha", commands::directory_hash),
    ("{smd5}", commands::directory_hash),
    ("following password", commands::following_line),
    ("?code=", commands::function_code),
    ("&code=", commands::function_code),
    ("identified by", commands::next_string),
    ("convertto-securestring", commands::next_string),
    ("insert into", commands::inserted),
    ("jdbc:oracle:thin:", commands::oracle),
    ("&sig=", commands::signature),
    ("?sig=", commands::signature),
];

fn rest(text: &[u8], at: usize) -> &[u8] {
    text.get(at..).unwrap_or_default()
}

/// True if the byte before `at` could belong to the same word.
fn joined(text: &[u8], at: usize) -> bool {
    at.checked_sub(1)
        .and_then(|before| text.get(before))
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// `header.payload[.signature]`, the header a JSON object that names an algorithm or type.
fn jwt(text: &[u8], at: usize) -> Option<Match> {
    let body = rest(text, at);
    if !body.starts_with(b"eyJ") || joined(text, at) {
        return None;
    }
    let header = Alphabet::Base64Url.run(body, 1024);
    let head = peek::base64(body.get(..header)?)?;
    if head.starts_with(b"{\"k\":\"") && header >= 60 {
        return Some(Match::new(
            ("secret.grafana", "Grafana key"),
            at..at + header,
            Critical,
            0.9,
        ));
    }
    let after = rest(body, header);
    let payload = after.strip_prefix(b".eyJ")?;
    let payload = Alphabet::Base64Url.run(payload, 8192) + 4;
    // A header cut short is no header.
    if header < 16
        || payload < 16
        || !head.trim_ascii_end().ends_with(b"}")
        || ![&b"\"alg\""[..], b"\"typ\"", b"\"kid\"", b"\"enc\""]
            .iter()
            .any(|field| contains(&head, field))
    {
        return None;
    }
    let signature = match rest(after, payload).split_first() {
        Some((b'.', signature)) => Alphabet::Dotted.run(signature, 8192) + 1,
        _ => 0,
    };
    let end = at + header + payload + signature;
    Some(Match::new(
        ("secret.jwt", "JSON web token"),
        at..end,
        High,
        0.9,
    ))
}

/// Private keys of every kind: RSA, EC, DSA, OPENSSH, ENCRYPTED, PGP, SSH2, `OpenVPN`.
fn pem(text: &[u8], at: usize) -> Option<Match> {
    let dashes = text
        .get(..at)?
        .iter()
        .rev()
        .take(8)
        .take_while(|b| matches!(b, b'-' | b' '))
        .count();
    if dashes < 4 {
        return None;
    }
    let line = rest(text, at);
    let close = line.iter().take(60).position(|byte| *byte == b'-')?;
    let label = line.get(..close)?;
    if !contains(label, b"PRIVATE KEY") && !contains(&label.to_ascii_lowercase(), b"static key") {
        return None;
    }
    let start = at - dashes;
    let body_at = at
        + close
        + rest(line, close)
            .iter()
            .take_while(|byte| **byte == b'-')
            .count();
    // The body may follow on the next line, or inside a string with \n or quotes between.
    let body = rest(text, body_at);
    let gap = body
        .iter()
        .take(160)
        .take_while(|b| !b.is_ascii_alphanumeric() || matches!(b, b'n' | b'r'))
        .count();
    let digits = Alphabet::Base64.run(rest(body, gap), 80);
    let headers = rest(body, gap).starts_with(b"Proc-Type")
        || rest(body, gap).starts_with(b"Version")
        || rest(body, gap).starts_with(b"Comment");
    if digits < 16 && !headers {
        // As a string in a program it is what the program looks for.
        let constant = matches!(body.first(), Some(b'"' | b'\''));
        let level = if constant { Low } else { Medium };
        return Some(Match::new(
            ("secret.private-key", "private key header"),
            start..body_at,
            level,
            0.5,
        ));
    }
    let end = find(body, b"-----END", 4096).map_or(body_at + gap + digits, |end| body_at + end);
    Some(Match::new(
        ("secret.private-key", "private key"),
        start..end,
        Critical,
        0.98,
    ))
}

fn putty(text: &[u8], at: usize) -> Option<Match> {
    let lines = find(rest(text, at), b"Private-Lines:", 4096)?;
    Some(Match::new(
        ("secret.private-key", "PuTTY private key"),
        at..at + lines,
        Critical,
        0.98,
    ))
}

/// `scheme://user:password@host`.
fn url_password(text: &[u8], at: usize) -> Option<Match> {
    let scheme = text
        .get(..at)?
        .iter()
        .rev()
        .take(20)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
        .count();
    if scheme < 2 {
        return None;
    }
    let authority = rest(text, at + 3);
    let length = authority
        .iter()
        .take(300)
        .take_while(|b| {
            !b.is_ascii_whitespace()
                && !matches!(
                    b,
                    b'/' | b'"'
                        | b'\''
                        | b'<'
                        | b'>'
                        | b'?'
                        | b'#'
                        | b'`'
                        | b'\\'
                        | b','
                        | b'|'
                        | b'('
                        | b')'
                        | b';'
                )
        })
        .count();
    let authority = authority.get(..length)?;
    let sign = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority
        .get(..sign)?
        .iter()
        .position(|byte| *byte == b':')?;
    let password = authority.get(colon + 1..sign)?;
    let user = authority.get(..colon)?;
    let host = authority.get(sign + 1..)?;
    if password.len() < 3
        || host.is_empty()
        || is_reference(password)
        || is_reference(user)
        || is_example(password)
        || (is_filler(password) && password.len() < 12)
        || contains(password, b"[")
        || password
            .iter()
            .all(|byte| matches!(byte, b'*' | b'x' | b'X' | b'.'))
    {
        return None;
    }
    let start = at + 3 + colon + 1;
    let value = start..start + password.len();
    let word = password.to_ascii_lowercase();
    let placeholder = matches!(
        &word[..],
        b"password"
            | b"pass"
            | b"passwd"
            | b"pwd"
            | b"pw"
            | b"token"
            | b"key"
            | b"mypassword"
            | b"p4ssw0rd"
    );
    let rule = ("secret.url-password", "password in a URL");
    let nobody = matches!(
        &user.to_ascii_lowercase()[..],
        b"user" | b"username" | b"usr" | b"login" | b"myuser" | b""
    );
    Some(match (placeholder, is_documentation_host(host) || nobody) {
        (true, true) => Match::new(rule, value, Low, 0.3),
        (true, false) => Match::new(rule, value, Medium, 0.5),
        (false, _) if looks_random(password) => Match::new(rule, value, Critical, 0.9),
        // Names for documentation (RFC 2606), and a word for a password.
        (false, _) if is_example_host(host) => Match::new(rule, value, Low, 0.3),
        (false, _) => Match::new(rule, value, High, 0.7),
    })
}

fn is_example_host(host: &[u8]) -> bool {
    let host = host.to_ascii_lowercase();
    [&b"example.com"[..], b"example.org", b"example.net"]
        .iter()
        .any(|name| contains(&host, name))
}

fn is_documentation_host(host: &[u8]) -> bool {
    let host = host
        .split(|byte| *byte == b':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    matches!(
        &host[..],
        b"host" | b"hostname" | b"server" | b"domain.com" | b"proxy" | b"localhost" | b"127.0.0.1"
    ) || contains(&host, b"example")
        || host.ends_with(b".test")
        || host.ends_with(b".local")
}

/// Hashes of passwords as crypt(5) writes them.
fn crypt_hash(text: &[u8], at: usize) -> Option<Match> {
    let length = rest(text, at)
        .iter()
        .take(200)
        .take_while(|b| {
            b.is_ascii_alphanumeric()
                || matches!(
                    b,
                    b'$' | b'.' | b'/' | b'=' | b',' | b'+' | b'*' | b'@' | b':'
                )
        })
        .count();
    let value = text.get(at..at + length)?;
    let last = value.rsplit(|byte| *byte == b'$').next()?;
    // bcrypt has no sign between salt and hash.
    let enough = if value.starts_with(b"$2") {
        last.len() == 53
    } else {
        last.len() >= 22
    };
    (enough && !is_filler(last) && looks_random(last)).then(|| {
        Match::new(
            ("secret.password-hash", "password hash"),
            at..at + length,
            Medium,
            0.7,
        )
    })
}

/// `Authorization: Bearer …`, `Basic …`, `token …`.
fn authorization(text: &[u8], at: usize) -> Option<Match> {
    if joined(text, at) {
        return None;
    }
    let mut from = at + "authorization".len();
    from += rest(text, from)
        .iter()
        .take(6)
        .take_while(|b| matches!(b, b'"' | b'\'' | b'\\' | b' ' | b']'))
        .count();
    if !matches!(text.get(from)?, b':' | b'=' | b',') {
        return None;
    }
    from += 1;
    from += rest(text, from)
        .iter()
        .take(8)
        .take_while(|b| matches!(b, b'"' | b'\'' | b'\\' | b' ' | b'`' | b'>' | b'f'))
        .count();
    let scheme = Alphabet::Alnum.run(rest(text, from), 12);
    let (scheme, start) = if text.get(from + scheme) == Some(&b' ') {
        (
            text.get(from..from + scheme)?.to_ascii_lowercase(),
            from + scheme + 1,
        )
    } else {
        (Vec::new(), from)
    };
    let length = rest(text, start)
        .iter()
        .take(2048)
        .take_while(|b| {
            b.is_ascii_alphanumeric()
                || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-' | b'.' | b'~' | b':')
        })
        .count();
    let value = text.get(start..start + length)?;
    if is_reference(value)
        || is_example(value)
        || is_filler(value)
        || value.starts_with(b"AWS4-HMAC")
    {
        return None;
    }
    let span = start..start + length;
    match &scheme[..] {
        b"basic" => {
            let decoded = peek::base64(value)?;
            let plain = length >= 8
                && decoded.contains(&b':')
                && decoded.iter().all(|b| (0x20..0x7f).contains(b));
            plain.then(|| Match::new(("secret.basic-auth", "basic credentials"), span, High, 0.9))
        }
        b"bearer" | b"token" | b"bot" | b"ssws" | b"apikey" | b"" => (length >= 14
            && value.iter().any(u8::is_ascii_digit)
            && (looks_random(value) || is_uuid(value) || contains(value, b".")))
        .then(|| {
            Match::new(
                ("secret.authorization", "authorization header"),
                span,
                High,
                0.8,
            )
        }),
        _ => None,
    }
}

/// `machine host login user password value`.
fn netrc(text: &[u8], at: usize) -> Option<Match> {
    let entry = rest(text, at);
    let entry = entry.get(..entry.len().min(300))?;
    let mut words = entry
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let host = words.nth(1)?;
    if is_documentation_host(host.split(|byte| *byte == b'/').next()?) {
        return None;
    }
    let mut login = false;
    while let Some(word) = words.next() {
        login |= word == b"login";
        if word == b"password" && login {
            let value = words.next()?.trim_ascii_end();
            let offset = value.as_ptr() as usize - entry.as_ptr() as usize;
            let start = at + offset;
            // The manual's own words for it.
            let described = [&b"string"[..], b"name", b"password", b"token"].contains(&value);
            let real = !described && !is_reference(value) && !is_example(value);
            return (value.len() >= 4 && real).then(|| {
                Match::new(
                    ("secret.netrc", "netrc password"),
                    start..start + value.len(),
                    High,
                    0.8,
                )
            });
        }
    }
    None
}

/// The password after `-p` of `sshpass` and `psexec`.
fn dash_p(text: &[u8], at: usize) -> Option<Match> {
    let line = rest(text, at);
    let line = line.get(
        ..line
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(line.len())
            .min(300),
    )?;
    let flag = find(line, b" -p", line.len())? + 3;
    let start = flag
        + rest(line, flag)
            .iter()
            .take_while(|b| matches!(b, b' ' | b'"' | b'\''))
            .count();
    let length = rest(line, start)
        .iter()
        .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\''))
        .count();
    let value = line.get(start..start + length)?;
    (length >= 4
        && !is_reference(value)
        && !is_example(value)
        && !value.eq_ignore_ascii_case(b"password"))
    .then(|| {
        Match::new(
            ("secret.command-password", "password on a command line"),
            at + start..at + start + length,
            High,
            0.7,
        )
    })
}

/// The last string of a call that takes a user and a password.
fn last_argument(text: &[u8], at: usize) -> Option<Match> {
    let call = rest(text, at);
    let close = call.iter().take(400).position(|byte| *byte == b')')?;
    let call = call.get(..close)?;
    let end = call.iter().rposition(|byte| matches!(byte, b'"' | b'\''))?;
    let start = call
        .get(..end)?
        .iter()
        .rposition(|byte| matches!(byte, b'"' | b'\''))?
        + 1;
    let value = call.get(start..end)?;
    let strings = call
        .iter()
        .filter(|byte| matches!(byte, b'"' | b'\''))
        .count()
        / 2;
    (strings >= 2
        && value.len() >= 4
        && !is_reference(value)
        && !is_example(value)
        && !value.contains(&b' '))
    .then(|| {
        Match::new(
            ("secret.call-password", "password in a call"),
            at + start..at + end,
            High,
            0.7,
        )
    })
}

/// `"auth": "…"` of Docker's configuration: base64 of `user:password`.
fn docker_auth(text: &[u8], at: usize) -> Option<Match> {
    let from = at + "\"auth\":".len();
    let quote = rest(text, from).iter().take(4).position(|b| *b == b'"')?;
    let start = from + quote + 1;
    let length = Alphabet::Base64.run(rest(text, start), 512);
    let decoded = peek::base64(text.get(start..start + length)?)?;
    let (user, password) = decoded.split_at_checked(decoded.iter().position(|b| *b == b':')?)?;
    let printable = decoded.iter().all(u8::is_ascii_graphic);
    (printable && !user.is_empty() && password.len() >= 5 && !is_example(password)).then(|| {
        Match::new(
            ("secret.docker", "registry password"),
            start..start + length,
            Critical,
            0.9,
        )
    })
}

/// `curl -u name:password`.
fn curl_user(text: &[u8], at: usize) -> Option<Match> {
    let line = text.get(at.saturating_sub(200)..at)?;
    let line = line.rsplit(|byte| *byte == b'\n').next()?;
    if !contains(line, b"curl") && !contains(line, b"http") {
        return None;
    }
    let after = rest(text, at + 3);
    let gap = after.iter().position(|byte| *byte == b' ')? + 1;
    let value = after.get(gap..)?;
    let quote = usize::from(matches!(value.first(), Some(b'"' | b'\'')));
    let value = value.get(quote..)?;
    let length = value
        .iter()
        .take(160)
        .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'\''))
        .count();
    let value = value.get(..length)?;
    let colon = value.iter().position(|byte| *byte == b':')?;
    let password = value.get(colon + 1..)?;
    let start = at + 3 + gap + quote + colon + 1;
    let placeholder = [
        &b"pass"[..],
        b"password",
        b"passwd",
        b"secret",
        b"token",
        b"pwd",
        b"key",
    ]
    .iter()
    .any(|word| password.eq_ignore_ascii_case(word))
        || contains(&password.to_ascii_lowercase(), b"password")
        || contains(&password.to_ascii_lowercase(), b"token");
    let real = password.len() >= 4
        && !placeholder
        && !is_reference(password)
        && !is_example(password)
        && !is_filler(password)
        && !contains(value, b"://");
    real.then(|| {
        Match::new(
            ("secret.basic-auth", "password"),
            start..start + password.len(),
            High,
            0.75,
        )
    })
}

fn find(haystack: &[u8], needle: &[u8], limit: usize) -> Option<usize> {
    crate::normalize::find(haystack, needle, limit)
}
