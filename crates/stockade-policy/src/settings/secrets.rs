//! What is a secret: by the name of a setting, and by how its value looks.

use std::ffi::OsStr;

use crate::env;

/// Words of a name that make its value a secret.
const SECRET_WORDS: &[&str] = &[
    "auth", "auths", "cred", "creds", "headers", "key", "keyring", "keys", "otp", "pass", "pat",
    "pwd",
];

/// Parts of a name, written without anything between its words, that make its value a secret.
const SECRET_PARTS: &[&str] = &[
    "apikey",
    "authident",
    "authoriz",
    "cookie",
    "credential",
    "extraheader",
    "httpheader",
    "passphrase",
    "passw",
    "privatekey",
    "secret",
    "smtppass",
    "token",
];

/// Words that say that the next one is a credential, as in a header of HTTP.
const SCHEMES: &[&str] = &["basic", "bearer", "token"];

/// The shortest run of letters and digits, with at least one of each, that is taken for a token.
const MIN_MIXED_RUN: usize = 16;
/// The shortest run of letters alone, or digits alone, that is taken for a token.
const MIN_PLAIN_RUN: usize = 32;

/// Whether a setting of this name holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for letter in name.chars() {
        let begins = previous.is_lowercase() && letter.is_uppercase();
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        previous = letter;
    }
    let joined = words.concat();
    words
        .iter()
        .any(|word| SECRET_WORDS.contains(&word.as_str()))
        || SECRET_PARTS.iter().any(|part| joined.contains(part))
}

/// The text, unless it holds a secret that can't be taken out of it. Used for names.
pub(super) fn harmless(text: &str) -> Option<&str> {
    (clean(text)? == text).then_some(text)
}

/// The value without users, passwords and queries of addresses; none if it is a secret otherwise.
pub(super) fn clean(value: &str) -> Option<String> {
    let is_text = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    if !value.chars().all(is_text) || value.to_ascii_uppercase().contains("PRIVATE KEY") {
        return None;
    }
    let mut cleaned = String::new();
    let mut rest = value;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        cleaned.push_str(&clean_word(&rest[..end])?);
        let separators = rest[end..]
            .find(|letter| !is_separator(letter))
            .unwrap_or(rest.len() - end);
        cleaned.push_str(&rest[end..end + separators]);
        rest = &rest[end + separators..];
    }
    let is_secret = names_secret(&cleaned) || has_token(&cleaned);
    (!is_secret).then_some(cleaned)
}

fn is_separator(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | '`' | '<' | '>' | '(' | ')')
}

/// A word without what belongs to an address and must not be seen.
fn clean_word(word: &str) -> Option<String> {
    let Some((before, rest)) = word.split_once("://") else {
        return Some(without_user(word).to_owned());
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, place) = match authority.rsplit_once('@') {
        Some((user, place)) => (Some(user), place),
        None => (None, authority),
    };
    // A password with a slash in it reads as a port and a path.
    let bracket = place.rfind(']').unwrap_or(0);
    let port = place[bracket..].rsplit_once(':').map(|(_, port)| port);
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_doubtful = port.is_some() && path.replace("/@", "").contains('@');
    if port.is_some_and(|port| !is_port(port)) || is_doubtful || path.contains("://") {
        return None;
    }
    // Programs can't connect without the user's name in an address of ssh, and it is no secret.
    let is_ssh = before.ends_with("ssh") || before == "scp";
    let kept = user.filter(|user| is_ssh && !user.contains(':'));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let (kept, sign) = kept.map_or(("", ""), |user| (user, "@"));
    Some(format!("{before}://{kept}{sign}{place}{path}"))
}

/// `user:password@host` without a scheme becomes `host`.
fn without_user(word: &str) -> &str {
    let Some((user, place)) = word.rsplit_once('@') else {
        return word;
    };
    match user.split_once(':') {
        Some((_, "")) | None => word,
        Some(_) => place,
    }
}

/// Whether a text names a secret and gives it: `password=…`, `--token …`, `Bearer …`.
fn names_secret(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|letter: char| is_separator(letter) || matches!(letter, ',' | ';' | '&' | '?'))
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        let has_next = words.get(at + 1).is_some();
        let is_scheme = SCHEMES.contains(&word.to_ascii_lowercase().as_str());
        let is_flag = word.starts_with('-') && is_secret_name(word);
        let ends = |sign: char| word.strip_suffix(sign).is_some_and(is_secret_name);
        let assigns = ['=', ':'].iter().any(|sign| {
            let pair = word.split_once(*sign);
            pair.is_some_and(|(name, value)| !value.is_empty() && is_secret_name(name))
        });
        assigns || (has_next && (is_scheme || is_flag || ends('=') || ends(':')))
    })
}

/// Whether a part of the text looks like a token.
fn has_token(text: &str) -> bool {
    if env::has_token(OsStr::new(text)) || has_uuid(text) {
        return true;
    }
    let mut runs = text.split(|letter: char| !letter.is_ascii_alphanumeric());
    runs.any(|run| {
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        let is_mixed = digits > 0 && digits < run.len();
        run.len()
            >= if is_mixed {
                MIN_MIXED_RUN
            } else {
                MIN_PLAIN_RUN
            }
    })
}

/// Whether the text holds a UUID, which is what older tokens are.
fn has_uuid(text: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_of_uuid = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    let mut words = text.split(|letter| !is_of_uuid(letter));
    words.any(|word| {
        let groups: Vec<usize> = word.split('-').map(str::len).collect();
        groups.windows(GROUPS.len()).any(|window| window == GROUPS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in [
            "_authToken",
            "_auth",
            "_password",
            "npmAuthIdent",
            "password",
            "smtppass",
            "pass",
            "credsStore",
            "credHelpers",
            "auths",
            "HttpHeaders",
            "extraheader",
            "GITHUB_TOKEN",
            "credential-provider",
            "keyring-provider",
            "privateKey",
            "key",
            "api_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "registry",
            "init-author-name",
            "index-url",
            "cafile",
            "trusted-host",
            "strict-ssl",
            "proxyauthmethod",
            "linker",
            "rustflags",
            "username",
            "compass",
            "monkey",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn addresses_lose_their_users() {
        let cleaned = |text: &str| clean(text).unwrap();
        assert_eq!(
            cleaned("https://u:p@h.test:8443/a/"),
            "https://h.test:8443/a/"
        );
        assert_eq!(cleaned("https://secret@h.test/a?x=y#z"), "https://h.test/a");
        assert_eq!(
            cleaned("https://h.test:1/@scope/a"),
            "https://h.test:1/@scope/a"
        );
        assert_eq!(cleaned("a https://u:p@b c"), "a https://b c");
        assert_eq!(cleaned("u:p@proxy.test:3128"), "proxy.test:3128");
        assert_eq!(cleaned("git@h.test:org/repo"), "git@h.test:org/repo");
        assert_eq!(cleaned("ssh://git@h.test/x"), "ssh://git@h.test/x");
        assert_eq!(cleaned("ssh://git:pw@h.test/x"), "ssh://h.test/x");
        assert_eq!(
            cleaned("sparse+https://t@h.test/i/"),
            "sparse+https://h.test/i/"
        );
        assert_eq!(cleaned("https://[::1]:80/x"), "https://[::1]:80/x");
    }

    #[test]
    fn values() {
        for secret in [
            "ghp_abcdefghijklmnop1234",
            "https://user:pa/ss@h.test",
            "https://u:1/2@h.test",
            "curl -H 'Authorization: x'",
            "--password x",
            "a password=x",
            "Bearer x",
            "-----BEGIN RSA PRIVATE KEY-----",
            "0123456789abcdef0123456789abcdef01234567",
            "d3b07384-d9a0-4c5e-8f7a-1c2d3e4f5a6b",
            "https://a.test,https://u:p@b.test",
        ] {
            assert_eq!(clean(secret), None, "{secret}");
        }
        for harmless in [
            "https://registry.test/npm/",
            "true",
            "x86_64-unknown-linux-gnu",
            "/etc/ssl/cert.pem",
            "Jane Doe",
            "jane@example.test",
            "-C link-arg=-fuse-ld=lld",
            "!git log --oneline",
        ] {
            assert_eq!(clean(harmless).as_deref(), Some(harmless));
        }
    }
}
