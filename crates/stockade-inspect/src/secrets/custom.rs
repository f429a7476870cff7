//! Secrets with a structure of their own: JWT, PEM, URLs with a password, webhooks, and so on.

use std::ops::Range;

use super::assign::looks_random;
use super::shape::{Alphabet, contains, is_example, is_filler, is_reference, is_uuid, kinds};
use crate::finding::ThreatLevel::{self, Critical, High, Low, Medium};
use crate::peek;

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
    ("-us", mailchimp),
    (".atlasv1.", terraform),
    ("/api/webhooks/", discord_webhook),
    ("/webhook/", teams_webhook),
    ("/webhookb2/", teams_webhook),
    ("00d", salesforce),
    ("7q~", azure_client),
    ("8q~", azure_client),
    ("://", url_password),
    (":aa", telegram),
    (";secret=", azure_key),
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
    ("accountkey=", azure_key),
    ("authorization", authorization),
    ("begin ", pem),
    ("directoryentry(", last_argument),
    ("eyj", jwt),
    ("hooks.slack.com/services/", slack_webhook),
    ("machine ", netrc),
    ("networkcredential(", last_argument),
    ("nral", new_relic),
    ("psexec", dash_p),
    ("putty-user-key-file-", putty),
    ("sharedaccesskey=", azure_key),
    ("sshpass -p", dash_p),
    ("unseal", unseal_key),
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
    if header < 16
        || payload < 16
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
        (false, _) => Match::new(rule, value, High, 0.7),
    })
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

fn slack_webhook(text: &[u8], at: usize) -> Option<Match> {
    let path = "hooks.slack.com/services/".len();
    let length = rest(text, at + path)
        .iter()
        .take(80)
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'/')
        .count();
    let key = text.get(at + path..at + path + length)?;
    (length >= 40
        && key.starts_with(b"T")
        && !is_example(key)
        && !is_filler(key.get(key.len() - 20..)?))
    .then(|| {
        Match::new(
            ("secret.slack-webhook", "Slack webhook"),
            at..at + path + length,
            High,
            0.9,
        )
    })
}

fn discord_webhook(text: &[u8], at: usize) -> Option<Match> {
    if !contains(text.get(at.saturating_sub(24)..at)?, b"discord") {
        return None;
    }
    let path = at + "/api/webhooks/".len();
    let id = rest(text, path)
        .iter()
        .take(24)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let token = Alphabet::Base64Url.run(rest(text, path + id + 1), 100);
    (id >= 17 && token >= 50).then(|| {
        Match::new(
            ("secret.discord-webhook", "Discord webhook"),
            at..path + id + 1 + token,
            High,
            0.9,
        )
    })
}

fn teams_webhook(text: &[u8], at: usize) -> Option<Match> {
    let host = text.get(at.saturating_sub(40)..at)?;
    if !contains(host, b"office.com") && !contains(host, b"office365.com") {
        return None;
    }
    let start = at + rest(text, at + 1).iter().position(|byte| *byte == b'/')? + 2;
    let length = rest(text, start)
        .iter()
        .take(200)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'@' | b'/'))
        .count();
    (length >= 100).then(|| {
        Match::new(
            ("secret.teams-webhook", "Teams webhook"),
            start..start + length,
            High,
            0.9,
        )
    })
}

/// `digits:AA` and 33 more: what `BotFather` hands out.
fn telegram(text: &[u8], at: usize) -> Option<Match> {
    if !rest(text, at).starts_with(b":AA") {
        return None;
    }
    let digits = text
        .get(..at)?
        .iter()
        .rev()
        .take(12)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let key = Alphabet::Base64Url.run(rest(text, at + 1), 60);
    ((8..=10).contains(&digits) && (34..=36).contains(&key)).then(|| {
        Match::new(
            ("secret.telegram", "Telegram bot token"),
            at - digits..at + 1 + key,
            Critical,
            0.9,
        )
    })
}

/// `AccountKey=…`, `SharedAccessKey=…`, `;Secret=…` of Azure connection strings.
fn azure_key(text: &[u8], at: usize) -> Option<Match> {
    let start = at
        + rest(text, at)
            .iter()
            .take(24)
            .position(|byte| *byte == b'=')?
        + 1;
    let length = Alphabet::Base64.run(rest(text, start), 120);
    let key = text.get(start..start + length)?;
    (length >= 40 && !is_filler(key) && !is_example(key)).then(|| {
        Match::new(
            ("secret.azure-key", "Azure key"),
            start..start + length,
            Critical,
            0.95,
        )
    })
}

/// Three characters, a digit, `Q~` and 34 more.
fn azure_client(text: &[u8], at: usize) -> Option<Match> {
    let start = at.checked_sub(3)?;
    let fits =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'~' | b'-');
    if joined(text, start)
        || !text.get(start..at)?.iter().all(fits)
        || rest(text, at).get(1) != Some(&b'Q')
    {
        return None;
    }
    let length = rest(text, at)
        .iter()
        .take(60)
        .take_while(|byte| fits(byte))
        .count();
    (34..=40).contains(&length).then(|| {
        Match::new(
            ("secret.azure-client", "Azure client secret"),
            start..at + length,
            Critical,
            0.95,
        )
    })
}

fn terraform(text: &[u8], at: usize) -> Option<Match> {
    let before = text
        .get(..at)?
        .iter()
        .rev()
        .take(20)
        .take_while(|b| b.is_ascii_alphanumeric())
        .count();
    let start = at + ".atlasv1.".len();
    let after = Alphabet::Base64Url.run(rest(text, start), 100);
    (before == 14 && after >= 55).then(|| {
        Match::new(
            ("secret.terraform", "Terraform Cloud token"),
            at - before..start + after,
            Critical,
            0.95,
        )
    })
}

fn mailchimp(text: &[u8], at: usize) -> Option<Match> {
    let hex = text
        .get(..at)?
        .iter()
        .rev()
        .take(34)
        .take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        .count();
    let digits = rest(text, at + 3)
        .iter()
        .take(3)
        .take_while(|b| b.is_ascii_digit())
        .count();
    (hex == 32 && (1..=2).contains(&digits) && !joined(text, at - 32)).then(|| {
        Match::new(
            ("secret.mailchimp", "Mailchimp key"),
            at - hex..at + 3 + digits,
            Critical,
            0.9,
        )
    })
}

fn new_relic(text: &[u8], at: usize) -> Option<Match> {
    let hex = text
        .get(..at)?
        .iter()
        .rev()
        .take(40)
        .take_while(|b| b.is_ascii_hexdigit())
        .count();
    let key = text.get(at.checked_sub(hex)?..at)?;
    (hex == 36 && rest(text, at).starts_with(b"NRAL") && !is_filler(key)).then(|| {
        Match::new(
            ("secret.newrelic", "New Relic licence key"),
            at - hex..at + 4,
            High,
            0.9,
        )
    })
}

fn salesforce(text: &[u8], at: usize) -> Option<Match> {
    let org = Alphabet::Alnum.run(rest(text, at), 20);
    let after = rest(text, at + org).strip_prefix(b"!")?;
    let key = Alphabet::Dotted.run(after, 200);
    ((15..=18).contains(&org) && key >= 80).then(|| {
        Match::new(
            ("secret.salesforce", "Salesforce token"),
            at..at + org + 1 + key,
            Critical,
            0.9,
        )
    })
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
    let mut login = false;
    while let Some(word) = words.next() {
        login |= word == b"login";
        if word == b"password" && login {
            let value = words.next()?.trim_ascii_end();
            let offset = value.as_ptr() as usize - entry.as_ptr() as usize;
            let start = at + offset;
            return (value.len() >= 4 && !is_reference(value) && !is_example(value)).then(|| {
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

/// `Unseal Key 1: …` and `vault operator unseal …`.
fn unseal_key(text: &[u8], at: usize) -> Option<Match> {
    let line = rest(text, at);
    let line = line.get(
        ..line
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(line.len())
            .min(120),
    )?;
    let word = line
        .rsplit(|byte| matches!(byte, b' ' | b':' | b'=' | b'"'))
        .find(|word| word.len() >= 40)?;
    let start = at + (word.as_ptr() as usize - line.as_ptr() as usize);
    (word.iter().all(|byte| Alphabet::Base64.has(*byte)) && kinds(word) >= 3).then(|| {
        Match::new(
            ("secret.vault", "Vault unseal key"),
            start..start + word.len(),
            Critical,
            0.9,
        )
    })
}

/// Tokens without a prefix, told by the structure of a long run of digits and letters.
pub(super) fn in_run(text: &[u8], run: Range<usize>) -> Option<Match> {
    let bytes = text.get(run.clone())?;
    if bytes.len() == 84
        && bytes.get(76..80) == Some(b"AZDO")
        && bytes.iter().all(u8::is_ascii_alphanumeric)
    {
        return Some(Match::new(
            ("secret.azure-devops", "Azure DevOps token"),
            run,
            Critical,
            0.95,
        ));
    }
    if bytes.len() == 34
        && bytes.starts_with(b"SK")
        && bytes
            .iter()
            .skip(2)
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        return Some(Match::new(("secret.twilio", "Twilio key"), run, High, 0.85));
    }
    discord_token(text, &run)
}

/// Three parts: the base64 of a numeric id, a timestamp, a signature.
fn discord_token(text: &[u8], run: &Range<usize>) -> Option<Match> {
    let id = text.get(run.clone())?;
    if !(23..=28).contains(&id.len())
        || !matches!(id.first(), Some(b'M' | b'N' | b'O'))
        || text.get(run.end) != Some(&b'.')
    {
        return None;
    }
    let stamp = Alphabet::Base64Url.run(rest(text, run.end + 1), 10);
    let after = rest(text, run.end + 1 + stamp).strip_prefix(b".")?;
    let signature = Alphabet::Base64Url.run(after, 60);
    (stamp == 6 && (27..=40).contains(&signature)).then(|| {
        Match::new(
            ("secret.discord", "Discord bot token"),
            run.start..run.end + 2 + stamp + signature,
            Critical,
            0.9,
        )
    })
}

fn find(haystack: &[u8], needle: &[u8], limit: usize) -> Option<usize> {
    crate::normalize::find(haystack, needle, limit)
}
