//! Headers that concern one connection and not the message (RFC 9110 section 7.6.1).

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

const HOP_BY_HOP: &[HeaderName] = &[
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
/// Those that no standard has, and everybody sends.
const HABITS: &[&str] = &["keep-alive", "proxy-connection"];

/// Takes out what is for the next hop alone; gives back the protocol that an upgrade asks for.
pub(crate) fn strip(headers: &mut HeaderMap) -> Option<HeaderValue> {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let upgrade = named
        .contains(&header::UPGRADE)
        .then(|| headers.get(header::UPGRADE).cloned())
        .flatten();
    for name in &named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    for name in HABITS {
        headers.remove(*name);
    }
    upgrade
}

/// Protocols in which a client names a host of its own: HTTP/2, TLS (RFC 2817), tunnels (RFC 9298).
const NAMING: &[&str] = &["connect-", "h2", "http", "ssl", "tls"];

/// Of the protocols that an upgrade offers those in which no host is named.
pub(crate) fn without_names(offered: &HeaderValue) -> Option<HeaderValue> {
    let offered = offered.to_str().ok()?.split(',').map(str::trim);
    let kept = offered.filter(|protocol| {
        let protocol = protocol.to_ascii_lowercase();
        !protocol.is_empty() && !NAMING.iter().any(|start| protocol.starts_with(start))
    });
    let kept = kept.collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&kept)
        .ok()
        .filter(|kept| !kept.is_empty())
}

/// Asks the next hop for the same upgrade.
pub(crate) fn ask_upgrade(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, protocol);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_the_next_hop_goes() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "keep-alive, X-Secret"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("x-secret", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eA=="),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("accept", "*/*"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(strip(&mut headers).unwrap(), "websocket");
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn an_upgrade_to_a_protocol_that_names_hosts_is_left_out() {
        let left = |offered: &'static str| without_names(&HeaderValue::from_static(offered));
        for offered in [
            "h2c",
            "H2",
            "TLS/1.2",
            "HTTP/2.0",
            "connect-udp",
            "h2c, tls/1.0",
            ",",
        ] {
            assert_eq!(left(offered), None, "{offered}");
        }
        assert_eq!(left("h2c, websocket").unwrap(), "websocket");
        assert_eq!(left("SPDY/3.1,websocket").unwrap(), "SPDY/3.1, websocket");
    }
}
