//! Tokens and webhooks of single services that no prefix tells.

use std::ops::Range;

use super::{Match, joined, rest};
use crate::finding::ThreatLevel::{Critical, High};
use crate::secrets::assign::looks_random;
use crate::secrets::shape::{Alphabet, contains, is_example, is_filler, kinds};

pub(super) fn slack_webhook(text: &[u8], at: usize) -> Option<Match> {
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

pub(super) fn discord_webhook(text: &[u8], at: usize) -> Option<Match> {
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

pub(super) fn teams_webhook(text: &[u8], at: usize) -> Option<Match> {
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
pub(super) fn telegram(text: &[u8], at: usize) -> Option<Match> {
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
pub(super) fn azure_key(text: &[u8], at: usize) -> Option<Match> {
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
pub(super) fn azure_client(text: &[u8], at: usize) -> Option<Match> {
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

pub(super) fn terraform(text: &[u8], at: usize) -> Option<Match> {
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

pub(super) fn mailchimp(text: &[u8], at: usize) -> Option<Match> {
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

pub(super) fn new_relic(text: &[u8], at: usize) -> Option<Match> {
    let hex = text
        .get(..at)?
        .iter()
        .rev()
        .take(40)
        .take_while(|b| b.is_ascii_hexdigit())
        .count();
    let key = text.get(at.checked_sub(hex)?..at)?;
    // Keys of a region begin with its name: `eu01xx`.
    let region = hex == 30 && text.get(..at - hex)?.ends_with(b"01xx");
    ((hex == 36 || region) && rest(text, at).starts_with(b"NRAL") && !is_filler(key)).then(|| {
        Match::new(
            ("secret.newrelic", "New Relic licence key"),
            at - hex..at + 4,
            High,
            0.9,
        )
    })
}

pub(super) fn salesforce(text: &[u8], at: usize) -> Option<Match> {
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

/// `Unseal Key 1: …` and `vault operator unseal …`.
pub(super) fn unseal_key(text: &[u8], at: usize) -> Option<Match> {
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

/// Six characters, `_`, 29 more and `_mmk`.
pub(super) fn maxmind(text: &[u8], at: usize) -> Option<Match> {
    let start = at.checked_sub(36)?;
    let key = text.get(start..at)?;
    let fits = key.get(6) == Some(&b'_')
        && key.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
        && !joined(text, start)
        && rest(text, at).starts_with(b"_mmk");
    fits.then(|| {
        Match::new(
            ("secret.maxmind", "MaxMind licence key"),
            start..at + 4,
            Critical,
            0.95,
        )
    })
}

/// `BUNDLE_ENTERPRISE__CONTRIBSYS__COM=cafebabe:deadbeef`, and the same in a URL.
pub(super) fn sidekiq(text: &[u8], at: usize) -> Option<Match> {
    let is_key = |key: &[u8]| {
        key.len() == 17
            && key
                .iter()
                .enumerate()
                .all(|(at, b)| (at == 8 && *b == b':') || (at != 8 && b.is_ascii_hexdigit()))
    };
    let near = text.get(at.saturating_sub(40)..text.len().min(at + 60))?;
    let found = near.windows(17).position(is_key)?;
    let start = at.saturating_sub(40) + found;
    Some(Match::new(
        ("secret.sidekiq", "Sidekiq licence"),
        start..start + 17,
        High,
        0.85,
    ))
}

pub(super) fn zapier_webhook(text: &[u8], at: usize) -> Option<Match> {
    let path = "hooks.zapier.com/hooks/catch/".len();
    let key = rest(text, at + path);
    let length = key
        .iter()
        .take(40)
        .take_while(|b| b.is_ascii_alphanumeric() || **b == b'/')
        .count();
    let (id, hook) = key
        .get(..length)?
        .split_at_checked(key.iter().take_while(|b| b.is_ascii_digit()).count())?;
    (id.len() >= 4 && hook.len() >= 6 && !is_example(hook)).then(|| {
        Match::new(
            ("secret.zapier-webhook", "Zapier webhook"),
            at..at + path + length,
            High,
            0.85,
        )
    })
}

/// The token of a device stands in the path: `/api/v1/TOKEN/telemetry`.
pub(super) fn thingsboard(text: &[u8], at: usize) -> Option<Match> {
    let near = text.get(at..text.len().min(at + 60))?;
    let path = memchr::memmem::find(near, b"/api/v1/")? + "/api/v1/".len();
    let start = at + path;
    let length = Alphabet::Alnum.run(rest(text, start), 40);
    let key = text.get(start..start + length)?;
    (length == 20 && looks_random(key)).then(|| {
        Match::new(
            ("secret.thingsboard", "ThingsBoard token"),
            start..start + length,
            High,
            0.85,
        )
    })
}

/// Tokens without a prefix, told by the structure of a long run of digits and letters.
pub(in crate::secrets) fn in_run(text: &[u8], run: Range<usize>) -> Option<Match> {
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
        .or_else(|| airtable(text, &run))
        .or_else(|| ngrok(text, &run))
        .or_else(|| numbered(text, &run))
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

/// Airtable: `pat`, fourteen characters, a point and 64 hexadecimal digits, of which `run` is the
/// last part.
fn airtable(text: &[u8], run: &Range<usize>) -> Option<Match> {
    let start = run.start.checked_sub(18)?;
    let id = text.get(start..run.start)?;
    let fits = id.starts_with(b"pat")
        && id.ends_with(b".")
        && id.get(..17)?.iter().all(u8::is_ascii_alphanumeric)
        && !joined(text, start);
    (run.len() == 64 && fits && text.get(run.clone())?.iter().all(u8::is_ascii_hexdigit)).then(
        || {
            Match::new(
                ("secret.airtable", "Airtable token"),
                start..run.end,
                Critical,
                0.95,
            )
        },
    )
}

/// ngrok: 27 characters, the first of them 1 or 2, `_` and 20 more.
fn ngrok(text: &[u8], run: &Range<usize>) -> Option<Match> {
    let bytes = text.get(run.clone())?;
    let (id, rest) = bytes.split_at_checked(27)?;
    let secret = rest.strip_prefix(b"_")?;
    let fits = matches!(id.first(), Some(b'1' | b'2'))
        && secret.len() >= 20
        && secret.len() <= 22
        && id.iter().chain(secret).all(u8::is_ascii_alphanumeric)
        && looks_random(id)
        && looks_random(secret);
    fits.then(|| Match::new(("secret.ngrok", "ngrok token"), run.clone(), Critical, 0.9))
}

/// `TrueNAS`: a small number, a hyphen and 64 characters, of which `run` is the last part or all.
fn numbered(text: &[u8], run: &Range<usize>) -> Option<Match> {
    let start = run.end.checked_sub(64)?;
    let key = text.get(start..run.end)?;
    let number = text
        .get(..start)?
        .strip_suffix(b"-")?
        .iter()
        .rev()
        .take(4)
        .take_while(|b| b.is_ascii_digit())
        .count();
    let begin = start.checked_sub(1 + number)?;
    let fits = (1..=3).contains(&number)
        && !joined(text, begin)
        && kinds(key) == 3
        && key.iter().all(u8::is_ascii_alphanumeric)
        && looks_random(key);
    fits.then(|| {
        Match::new(
            ("secret.truenas", "TrueNAS key"),
            begin..run.end,
            Critical,
            0.85,
        )
    })
}
