//! Patterns of the shell that stand for a secret: `/etc/s?adow`, `~/.s*/id_*`.

use crate::words::Words;

/// Secrets that everyone knows where to find.
static SECRETS: Words = Words::new("shell/patterns secrets");

/// The secret that a pattern stands for, if it is not one for everything there is.
pub(super) fn secret(pattern: &str) -> Option<&'static str> {
    if !pattern.contains(['*', '?', '[']) || pattern.len() > 256 {
        return None;
    }
    let last = pattern.rsplit('/').next().unwrap_or_default();
    let letters = last.bytes().filter(u8::is_ascii_alphanumeric).count();
    let fits = |secret: &&&str| {
        let mut parts = secret.split('/');
        let mut given = pattern.split('/');
        loop {
            match (parts.next(), given.next()) {
                (None, None) => return true,
                (Some(part), Some(pattern)) if fits(pattern.as_bytes(), part.as_bytes()) => {}
                _ => return false,
            }
        }
    };
    SECRETS.iter().find(fits).filter(|_| letters > 0).copied()
}

/// Whether one part of a path fits a pattern. Bounded by the product of their lengths.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back = None;
    while t < text.len() {
        let step = match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'?') => 1,
            Some(b'[') => class(&pattern[p..], text[t]),
            Some(b) => usize::from(*b == text[t]),
            None => 0,
        };
        if step > 0 {
            p += step;
            t += 1;
        } else if let Some((after, start)) = &mut back {
            *start += 1;
            (p, t) = (*after, *start);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

/// The length of a bracket that a character fits; nothing if it does not.
fn class(pattern: &[u8], c: u8) -> usize {
    let Some(end) = pattern.iter().skip(2).position(|b| *b == b']') else {
        return 0;
    };
    let end = end + 2;
    let inside = &pattern[1..end];
    let (negated, inside) = match inside.split_first() {
        Some((b'!' | b'^', rest)) => (true, rest),
        _ => (false, inside),
    };
    let range = inside
        .windows(3)
        .any(|three| three[1] == b'-' && (three[0]..=three[2]).contains(&c));
    let found = range || inside.contains(&c);
    if found == negated { 0 } else { end + 1 }
}

#[cfg(test)]
mod tests {
    use super::secret;

    #[test]
    fn patterns_stand_for_secrets() {
        for pattern in [
            "/etc/s?adow",
            "/e*c/shadow",
            "/etc/sh*",
            "~/.ssh/id_r[a-s]a",
            "/etc/[!a]hadow",
        ] {
            assert!(secret(pattern).is_some(), "{pattern}");
        }
        for pattern in [
            "/etc/*",
            "/etc/*.conf",
            "/etc/shadow",
            "/etc/ssh*",
            "~/*",
            "/*/*/*",
            "[",
            "/etc/[",
            "/etc/[",
        ] {
            assert_eq!(secret(pattern), None, "{pattern}");
        }
    }
}
