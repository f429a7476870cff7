//! Links that carry data: images and links whose address holds what it should not.
//!
//! A chat window or viewer that renders Markdown or HTML fetches an image without asking; whatever
//! stands in its address has left. Reported are addresses with placeholders to be filled in, with
//! long encoded values, or on hosts made for collecting requests.

use std::ops::Range;

use super::outflow::{Manner, Outflow};
use super::sensitive::Data;
use crate::hosts::{HostList, Standing, host_of, is_or_below, standing};

/// What begins a link.
pub(super) const LITERALS: [&str; 4] = ["](http", "<img", "src=\"http", "]: http"];

/// Longest address looked at.
const MAX_ADDRESS_BYTES: usize = 1024;

/// Adds the link at `at` if it carries data.
pub(super) fn at(
    text: &[u8],
    at: usize,
    allowed: &HostList,
    found: &mut Vec<(Range<usize>, Outflow)>,
) {
    let rest = text
        .get(at..(at + MAX_ADDRESS_BYTES).min(text.len()))
        .unwrap_or_default();
    let Some(scheme) = rest
        .windows(4)
        .take(64)
        .position(|window| window.eq_ignore_ascii_case(b"http"))
    else {
        return;
    };
    let start = at + scheme;
    let url = text
        .get(start..(start + MAX_ADDRESS_BYTES).min(text.len()))
        .unwrap_or_default();
    let length = url
        .iter()
        .position(|b| {
            b.is_ascii_whitespace()
                || matches!(b, b')' | b'"' | b'\'' | b'>' | b'<' | b'`' | b']' | b'[')
        })
        .unwrap_or(url.len());
    let Ok(url) = std::str::from_utf8(url.get(..length).unwrap_or_default()) else {
        return;
    };
    if !url.contains("://") {
        return;
    }
    let Some(host) = host_of(url) else { return };
    let image = is_image(text, at) || rest.starts_with(b"<img") || rest.starts_with(b"src=");
    if allowed.allows(&host) || !carries(url, &host, image) {
        return;
    }
    let outflow = Outflow {
        rule: if image {
            "egress.image-link"
        } else {
            "egress.link"
        },
        act: if image { "an image link" } else { "a link" },
        hosts: vec![host],
        data: Data::Local,
        manner: Manner::Send,
        wary: true,
    };
    found.push((start..start + length, outflow));
}

/// True if the `]` at `at` closes the text of an image: `![text](`.
fn is_image(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let back = before
        .iter()
        .rev()
        .take(200)
        .position(|byte| matches!(byte, b'[' | b')' | b'\n'));
    back.and_then(|back| at.checked_sub(back + 1))
        .is_some_and(|open| {
            text.get(open) == Some(&b'[')
                && open.checked_sub(1).and_then(|sign| text.get(sign)) == Some(&b'!')
        })
}

fn carries(url: &str, host: &str, image: bool) -> bool {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let lower = query.to_ascii_lowercase();
    let placeholder = [
        "{",
        "<",
        "$(",
        "[data",
        "[secret",
        "%7b",
        "=user_",
        "=data_here",
        "=base64",
    ]
    .iter()
    .any(|sign| lower.contains(sign));
    let value = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .any(|(name, value)| {
            let collects = [
                "data", "d", "q", "secret", "token", "exfil", "leak", "info", "content", "payload",
                "c", "p", "msg",
            ]
            .contains(&name.to_ascii_lowercase().as_str());
            collects
                && value.len() >= 32
                && value.chars().filter(char::is_ascii_digit).count() >= 2
                && !value.contains('+')
        });
    match standing(host) {
        // Invitations and avatars are not collected data.
        Standing::Drop => {
            image && !query.is_empty() || placeholder || value || (image && !is_chat(host))
        }
        Standing::Unknown => (placeholder || value) && image,
        Standing::Ordinary | Standing::Local | Standing::Metadata | Standing::Unqualified => false,
    }
}

fn is_chat(host: &str) -> bool {
    [
        "discord.com",
        "discordapp.com",
        "api.telegram.org",
        "hooks.slack.com",
    ]
    .iter()
    .any(|name| is_or_below(host, name))
}
