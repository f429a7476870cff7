//! What a URL or host name tells.

use crate::words::Words;
use std::sync::OnceLock;

/// The host of a URL, or of `host:port`, or of `user@host:path`.
pub(crate) fn host_of(text: &str) -> Option<&str> {
    let text = text.trim();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let end = rest
        .find(['/', '?', '#', '\\', ' ', '"', '\''])
        .unwrap_or(rest.len());
    let authority = &rest[..end];
    let host = authority.rsplit('@').next().unwrap_or(authority);
    if let Some(v6) = host.strip_prefix('[') {
        return v6.split(']').next().filter(|host| !host.is_empty());
    }
    let host = if host.matches(':').count() == 1 {
        host.split(':').next().unwrap_or(host)
    } else {
        host
    };
    (!host.is_empty()).then_some(host)
}

/// Whether the text is a URL.
pub(crate) fn is_url(text: &str) -> bool {
    let text = text.trim_start();
    [
        "http://", "https://", "ftp://", "ftps://", "ws://", "wss://", "tcp://", "sftp://",
    ]
    .iter()
    .any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    })
}

/// A reason to distrust a URL or host: a collector of stolen data, a bare public address.
pub(crate) fn suspicion(text: &str) -> Option<&'static str> {
    let host = host_of(text)?.to_ascii_lowercase();
    let after = text.to_ascii_lowercase();
    let listed = table().iter().any(|entry| entry.matches(&host, &after));
    if listed {
        return Some("a host of the kind that collects data or hides who serves it");
    }
    if says_so(&host) {
        return Some("a host whose name says what it is for");
    }
    if matches!(host.rsplit('.').next(), Some("onion" | "i2p")) {
        return Some("a hidden service");
    }
    if carries_data(&host) {
        return Some("a name that carries encoded data");
    }
    if is_url(text) && is_public_address(&host) {
        return Some("a bare address instead of a name");
    }
    None
}

/// `evil.example`, `exfil-3.example.org`: names that only stand for an attacker's.
fn says_so(host: &str) -> bool {
    static NAMES: Words = Words::new("hosts names");
    let mut labels = host.split(['.', '-', '_']);
    host.contains('.') && labels.any(|label| NAMES.contains(&label))
}

/// Whether the host of a URL is named for what an attacker does.
pub(crate) fn is_named_for_attack(url: &str) -> bool {
    host_of(url).is_some_and(|host| says_so(&host.to_ascii_lowercase()))
}

/// `c2VjcmV0.example.com` with its padding: names have no `=`, base64 does.
fn carries_data(host: &str) -> bool {
    let label = host.split('.').next().unwrap_or_default();
    let data = label.trim_end_matches('=');
    host.contains('.')
        && data.len() >= 6
        && data.len() < label.len()
        && label.len().is_multiple_of(4)
        && data.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// A reason to distrust a text that is a URL or host name: it is a collector's. Shorteners, paste
/// bins and tunnels have honest uses in texts and are left to [`suspicion`].
pub(crate) fn collector(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.len() > 512 || text.contains(' ') || !text.contains('.') {
        return None;
    }
    let host = host_of(text)?.to_ascii_lowercase();
    let lower = text.to_ascii_lowercase();
    let found = table()
        .iter()
        .any(|entry| entry.collector && entry.matches(&host, &lower));
    found.then_some("a host that collects data sent to it")
}

/// Whether a URL is that of a cloud's metadata service, which gives out credentials.
pub(crate) fn is_metadata(text: &str) -> bool {
    let hosts = [
        "169.254.169.254",
        "metadata.google.internal",
        "100.100.100.200",
        "fd00:ec2::254",
        "169.254.170.2",
        "metadata.goog",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "192.0.0.192",
    ];
    // What a machine is called and where it stands is no secret.
    let plain = matches!(
        text.trim_end_matches('/').rsplit('/').next(),
        Some(
            "public-ipv4"
                | "public-hostname"
                | "local-ipv4"
                | "local-hostname"
                | "instance-id"
                | "instance-type"
                | "availability-zone"
                | "region"
        )
    );
    !plain && host_of(text).is_some_and(|host| hosts.contains(&host))
}

/// Whether a host is this machine.
pub(crate) fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    matches!(
        host.as_str(),
        "localhost" | "::1" | "0.0.0.0" | "" | "host.docker.internal"
    ) || host.starts_with("127.") && host.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        || host
            .rsplit_once('.')
            .is_some_and(|(_, top)| matches!(top, "localhost" | "local" | "internal"))
}

/// Whether all the addresses among some words are this machine's, and there is one.
pub(crate) fn only_local<'t>(texts: impl Iterator<Item = &'t str>) -> bool {
    let mut some = false;
    for text in texts {
        let local = host_of(text).is_some_and(is_local);
        if is_url(text) && !local {
            return false;
        }
        some |= local;
    }
    some
}

/// A literal address that is not private, loopback or reserved for documents' own network.
pub(crate) fn is_public_address(host: &str) -> bool {
    match host.parse::<std::net::IpAddr>() {
        Ok(std::net::IpAddr::V4(v4)) => {
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_unspecified()
                || v4.is_link_local()
                || v4.is_broadcast())
        }
        Ok(std::net::IpAddr::V6(v6)) => {
            let first = v6.segments()[0];
            !(v6.is_loopback()
                || v6.is_unspecified()
                || first & 0xfe00 == 0xfc00
                || first & 0xffc0 == 0xfe80)
        }
        Err(_) => false,
    }
}

/// A literal address of another machine, near or far.
pub(crate) fn is_bare_address(host: &str) -> bool {
    let Ok(std::net::IpAddr::V4(v4)) = host.parse::<std::net::IpAddr>() else {
        return is_public_address(host);
    };
    !(v4.is_loopback() || v4.is_unspecified() || v4.is_link_local() || v4.is_broadcast())
}

struct Entry {
    name: &'static str,
    path: Option<&'static str>,
    /// Serves nothing else than collecting.
    collector: bool,
}

impl Entry {
    fn matches(&self, host: &str, text: &str) -> bool {
        let same = host == self.name
            || host
                .strip_suffix(self.name)
                .is_some_and(|head| head.ends_with('.'));
        same && self.path.is_none_or(|path| text.contains(path))
    }
}

fn table() -> &'static [Entry] {
    static TABLE: OnceLock<Vec<Entry>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut collector = false;
        let mut out = Vec::new();
        for line in include_str!("../rules/hosts.list").lines() {
            match line {
                "[collectors]" => collector = true,
                "[others]" => collector = false,
                "" => {}
                line if line.starts_with('#') => {}
                line => {
                    let (name, path) = line
                        .find('/')
                        .map_or((line, None), |at| (&line[..at], Some(&line[at..])));
                    out.push(Entry {
                        name,
                        path,
                        collector,
                    });
                }
            }
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_cut_out() {
        assert_eq!(
            host_of("https://me:pw@Example.com:443/x?y"),
            Some("Example.com")
        );
        assert_eq!(host_of("example.com:80"), Some("example.com"));
        assert_eq!(host_of("http://[::1]:80/"), Some("::1"));
        assert_eq!(host_of(""), None);
        assert!(is_local("127.0.0.1") && is_local("127.1") && !is_local("127.example.org"));
        let only = |texts: &[&str]| only_local(texts.iter().copied());
        assert!(only(&["http://localhost/x", "a.json"]) && !only(&["a.json"]));
        assert!(!only(&["http://localhost/", "https://example.org/"]));
    }

    #[test]
    fn collectors_and_bare_addresses_are_suspect() {
        assert!(suspicion("https://abc.oastify.com/x").is_some());
        assert!(suspicion("https://discord.com/api/webhooks/1/x").is_some());
        assert!(suspicion("https://discord.com/channels").is_none());
        assert!(suspicion("http://8.8.4.4/x").is_some());
        assert!(suspicion("http://192.168.1.1/x").is_none());
        assert!(suspicion("c2VjcmV0cw==.example.org").is_some());
        assert!(suspicion("key=.example.org").is_none());
        assert!(suspicion("https://exfil-1.example.org/").is_some());
        assert!(suspicion("https://devil.example.org/evil").is_none());
        assert!(suspicion("https://notoastify.com/").is_none());
        assert!(suspicion("https://github.com/a/b").is_none());
    }
}
