//! Requests whose method is not what it seems.
//!
//! Where only some methods pass, a request must not carry another one behind its back, nor lead out
//! of HTTP to where no methods are.

use hyper::Request;
use hyper::header::{CONNECTION, HeaderMap, UPGRADE};
use stockade_policy::host::{NetDecision, NetworkRules};

/// Headers in which frameworks look for the method that was really meant.
const OVERRIDES: &[&str] = &[
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
];

/// An upgrade that a server may ignore, and that some clients offer with every first request.
const OPPORTUNISTIC: &str = "h2c";

/// Decides about the method of a request, whose host was decided about before.
pub(super) fn decide<B>(rules: &NetworkRules, request: &Request<B>) -> NetDecision {
    let stated = rules.decide_method(request.method().as_str());
    if !rules.methods.is_limited() || !stated.is_allowed() {
        return stated;
    }
    let headers = request.headers();
    for name in OVERRIDES {
        for value in headers.get_all(*name) {
            let method = String::from_utf8_lossy(value.as_bytes()).to_ascii_uppercase();
            let meant = rules.decide_method(method.trim());
            if !meant.is_allowed() {
                return meant;
            }
        }
    }
    if asks_to_leave(headers) {
        return rules.decide_unreadable("an upgrade to another protocol");
    }
    stated
}

fn asks_to_leave(headers: &HeaderMap) -> bool {
    let words = |name| {
        headers
            .get_all(name)
            .iter()
            .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
            .map(|word| String::from_utf8_lossy(word).trim().to_ascii_lowercase())
            .collect::<Vec<_>>()
    };
    let upgrades = words(UPGRADE);
    let asked = words(CONNECTION).iter().any(|word| word == "upgrade") || !upgrades.is_empty();
    asked && !upgrades.iter().all(|word| word == OPPORTUNISTIC)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade_policy::host::Methods;

    fn allowed(method: &str, headers: &[(&str, &str)]) -> bool {
        let rules = NetworkRules {
            methods: Methods::ReadOnly,
            ..NetworkRules::default()
        };
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        decide(&rules, &request.body(()).unwrap()).is_allowed()
    }

    #[test]
    fn nothing_is_asked_behind_a_methods_back() {
        assert!(allowed("GET", &[]));
        assert!(allowed("HEAD", &[("x-http-method-override", "get")]));
        assert!(!allowed("POST", &[]));
        assert!(!allowed("POST", &[("x-http-method-override", "GET")]));
        for name in OVERRIDES {
            assert!(!allowed("GET", &[(name, "post")]), "{name}");
            assert!(
                !allowed("GET", &[(name, "GET"), (name, " DELETE ")]),
                "{name}"
            );
        }
    }

    #[test]
    fn nothing_leads_out_of_http() {
        let upgrade = ("connection", "keep-alive, Upgrade");
        assert!(!allowed("GET", &[upgrade, ("upgrade", "websocket")]));
        assert!(!allowed("GET", &[("upgrade", "WebSocket")]));
        assert!(!allowed("GET", &[upgrade, ("upgrade", "h2c, websocket")]));
        assert!(allowed("GET", &[upgrade, ("upgrade", "h2c")]));
    }
}
