//! The address of a service: `http(s)://HOST[:PORT][/PATH]`.

use std::net::IpAddr;

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BaseUrl {
    /// As written, IPv6 addresses in brackets.
    pub(super) host: String,
    pub(super) port: u16,
}

impl BaseUrl {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.trim().split_once("://")?;
        let usual_port = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return None,
        };
        let authority = rest.split(['/', '?', '#']).next()?;
        if authority.contains('@') {
            return None;
        }
        let is_address = authority.starts_with('[');
        let end_of_host = if is_address {
            authority.find(']')? + 1
        } else {
            authority.find(':').unwrap_or(authority.len())
        };
        let (host, port) = authority.split_at(end_of_host);
        let port = match port.strip_prefix(':') {
            Some(digits) => digits.parse().ok()?,
            None if port.is_empty() => usual_port,
            None => return None,
        };
        let host = host.to_owned();
        (!host.is_empty()).then_some(Self { host, port })
    }

    /// Whether the service runs on this machine.
    pub(super) fn is_loopback(&self) -> bool {
        let address = self.host.trim_matches(['[', ']']).parse::<IpAddr>();
        address.map_or(self.host.eq_ignore_ascii_case("localhost"), |address| {
            address.is_loopback()
        })
    }

    /// The pattern of a host list.
    pub(super) fn pattern(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}
