//! Requests whose method is not what it seems.
//!
//! Where only some methods pass, a request must not carry another one behind its back, nor lead out
//! of HTTP to where no methods are.
//!
//! A body is refused there: a server that expects none after GET reads it as the next request.

use hyper::Request;
use hyper::body::Body;
use hyper::header::{
    ACCESS_CONTROL_REQUEST_METHOD, CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName,
    TRANSFER_ENCODING, UPGRADE,
};
use stockade_policy::host::{NetDecision, NetworkRules};

/// Words in the names of headers in which frameworks look for the method that was really meant. They
/// are spelt in many ways, and gateways read `_` and `-` alike.
const OVERRIDES: &[&str] = &["method", "verb"];

/// An upgrade that a server may ignore, and that some clients offer with every first request.
const OPPORTUNISTIC: &str = "h2c";

/// Decides about the method of a request, whose host was decided about before.
pub(super) fn decide<B: Body>(rules: &NetworkRules, request: &Request<B>) -> NetDecision {
    let stated = rules.decide_method(request.method().as_str());
    if !rules.methods.is_limited() || !stated.is_allowed() {
        return stated;
    }
    let headers = request.headers();
    if has_body(request) {
        return rules.decide_unreadable("a request with a body");
    }
    for (_, value) in headers.iter().filter(|(name, _)| is_override(name)) {
        let method = String::from_utf8_lossy(value.as_bytes()).to_ascii_uppercase();
        let meant = rules.decide_method(method.trim());
        if !meant.is_allowed() {
            return meant;
        }
    }
    if asks_to_leave(headers) {
        return rules.decide_unreadable("an upgrade to another protocol");
    }
    stated
}

fn has_body<B: Body>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    !request.body().is_end_stream()
        || headers.contains_key(TRANSFER_ENCODING)
        || lengths.any(|length| length.as_bytes() != b"0")
}

fn is_override(name: &HeaderName) -> bool {
    // Browsers ask with it whether a method would be allowed.
    *name != ACCESS_CONTROL_REQUEST_METHOD
        && OVERRIDES.iter().any(|word| name.as_str().contains(word))
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
        let body = http_body_util::Empty::<bytes::Bytes>::new();
        decide(&rules, &request.body(body).unwrap()).is_allowed()
    }

    #[test]
    fn nothing_is_asked_behind_a_methods_back() {
        assert!(allowed("GET", &[]));
        assert!(allowed("HEAD", &[("x-http-method-override", "get")]));
        assert!(!allowed("POST", &[]));
        assert!(!allowed("POST", &[("x-http-method-override", "GET")]));
        for name in [
            "x-http-method-override",
            "X_HTTP_Method_Override",
            "x-http-method",
            "X-Method-Override",
            "X-Original-Method",
            "x-forwarded-method",
            "_method",
            "x.http.method",
            "X-HTTP-Verb-Override",
        ] {
            assert!(!allowed("GET", &[(name, "post")]), "{name}");
            assert!(
                !allowed("GET", &[(name, "GET"), (name, " DELETE ")]),
                "{name}"
            );
        }
    }

    #[test]
    fn a_preflight_and_an_empty_body_pass() {
        assert!(allowed(
            "OPTIONS",
            &[("Access-Control-Request-Method", "POST")]
        ));
        assert!(allowed("GET", &[("content-length", "0")]));
        assert!(!allowed("GET", &[("content-length", "1")]));
        assert!(!allowed("GET", &[("transfer-encoding", "chunked")]));
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
