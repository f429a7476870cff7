//! Names that promise a secret: which identifiers do, and which only look like it.

use super::formats::tables::{
    KEY_OWNERS, NOT_SECRET, NOT_VALUES, PASSWORD_ENDS, PASSWORD_WORDS, SERVICES, TOKEN_ENDS,
    TOKEN_WORDS, VARIANTS,
};

/// What sort of value a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Promise {
    /// A key of some sort: only a random-looking value counts.
    Key,
    /// A token or secret made by a machine.
    Token,
    /// A password, which a person may have made up.
    Password,
}

/// Longest identifier looked at.
const MAX_NAME_BYTES: usize = 64;

/// What the name promises, if anything.
pub(super) fn promise(name: &[u8]) -> Option<Promise> {
    let name = name.get(name.len().saturating_sub(MAX_NAME_BYTES)..)?;
    let parts = parts(name);
    let last = parts.last()?;
    if NOT_VALUES.contains(&last.as_str())
        || parts.iter().any(|part| NOT_SECRET.contains(&part.as_str()))
    {
        return None;
    }
    // The last word says what a thing is: `password_last_used` is a date.
    let said = parts.iter().rposition(|part| !is_variant(part))?;
    let before = said.checked_sub(1).and_then(|before| parts.get(before));
    part_promise(parts.get(said)?, before.map(String::as_str))
}

/// Words after the name of a secret that leave it one: `API_KEY_PROD`, `password2`.
fn is_variant(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit()) || VARIANTS.contains(&part)
}

fn part_promise(part: &str, before: Option<&str>) -> Option<Promise> {
    let ends_with = |ends: &[&str]| ends.iter().any(|end| part.ends_with(end));
    if ends_with(PASSWORD_ENDS) || PASSWORD_WORDS.contains(&part) {
        return Some(Promise::Password);
    }
    if ends_with(TOKEN_ENDS)
        || TOKEN_WORDS.contains(&part)
        || (part == "key" && before.is_some_and(|word| KEY_OWNERS.contains(&word)))
        || (part == "auth" && before.is_none())
    {
        return Some(Promise::Token);
    }
    (matches!(part, "key" | "login" | "crumb" | "pat")
        || SERVICES.contains(&part)
        || (part.ends_with("key") && part.len() <= 16))
        .then_some(Promise::Key)
}

/// Splits `someName_OF-this.sort` into lower-case words.
fn parts(name: &[u8]) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut previous = b'_';
    for (at, byte) in name.iter().enumerate() {
        let next_is_lower = name.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let hump = byte.is_ascii_uppercase()
            && (previous.is_ascii_lowercase()
                || previous.is_ascii_digit()
                || (previous.is_ascii_uppercase() && next_is_lower));
        if (!byte.is_ascii_alphanumeric() || hump)
            && parts.last().is_some_and(|part| !part.is_empty())
        {
            parts.push(String::new());
        }
        if byte.is_ascii_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.push(char::from(byte.to_ascii_lowercase()));
        }
        previous = *byte;
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for (name, expected) in [
            ("password", Promise::Password),
            ("DB_PASSWORD", Promise::Password),
            ("dbPassword", Promise::Password),
            ("MYSQL_ROOT_PASS", Promise::Password),
            ("apikey", Promise::Token),
            ("softlayerapikey", Promise::Token),
            ("x-api-key", Promise::Token),
            ("AWS_SECRET_ACCESS_KEY", Promise::Token),
            ("clientSecret", Promise::Token),
            ("github_token", Promise::Token),
            ("LINKEDIN_KEY", Promise::Key),
            ("airtable", Promise::Key),
            ("MY_TRELLO_PROD", Promise::Key),
            ("PRIVATE_KEY_B64", Promise::Token),
        ] {
            assert_eq!(promise(name.as_bytes()), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_that_promise_nothing() {
        for name in [
            "public_key",
            "primaryKey",
            "cache-key",
            "passwordLength",
            "token_type",
            "secretName",
            "compass",
            "passive",
            "tokenizer",
            "keyboard",
            "",
            "monkeys",
            "api_key_path",
            "key_id",
            "twitch_channel",
            "password_hash",
            "bypass_token",
            "password_last_used",
            "PassStateEntered",
        ] {
            assert_eq!(promise(name.as_bytes()), None, "{name}");
        }
    }
}
