//! Which HTTP methods pass: the decision about one request, once its host may be reached.
//!
//! Protects what is behind an allowed host from being changed by code that only needs to read. It
//! does not keep anything secret: whoever may ask a host can put what it knows into the question.

use super::rules::{NetDecision, NetReason, NetVerdict, NetworkRules};
use crate::profile::words::words;

words! {
    /// Which HTTP methods pass; later is wider.
    #[derive(Default)]
    pub enum Methods("set of methods") {
        /// Those that ask and change nothing: GET, HEAD and OPTIONS. What is no HTTP that can be
        /// read is refused.
        ReadOnly = "read-only",
        /// All of them, and what is no HTTP.
        #[default]
        Any = "any",
    }
}

impl Methods {
    /// The methods of [`Methods::ReadOnly`]. Methods are compared as they are written: `get` is
    /// none of these (RFC 9110 section 9.1).
    pub const READ_ONLY: [&'static str; 3] = ["GET", "HEAD", "OPTIONS"];

    /// Whether only some pass.
    pub fn is_limited(&self) -> bool {
        *self == Self::ReadOnly
    }
}

/// The change that lets every method pass.
const GRANT: &str = "--net-methods any";

impl NetworkRules {
    /// Decides about the method of a request. Says nothing about the host: ask
    /// [`NetworkRules::decide`] first.
    pub fn decide_method(&self, method: &str) -> NetDecision {
        if !self.methods.is_limited() {
            return NetDecision::open();
        }
        if Methods::READ_ONLY.contains(&method) {
            return NetDecision {
                verdict: NetVerdict::Allow,
                rule: Some(self.methods_rule()),
                reason: NetReason::Listed,
                grant: None,
            };
        }
        // What is written into logs and answers must not be as long as a client likes.
        let method: String = method.chars().take(24).collect();
        self.refuse_method(NetReason::Method(method.escape_debug().to_string()))
    }

    /// Decides about what is no HTTP request that can be read; `what` it is, in words.
    pub fn decide_unreadable(&self, what: &'static str) -> NetDecision {
        if !self.methods.is_limited() {
            return NetDecision::open();
        }
        self.refuse_method(NetReason::Unreadable(what))
    }

    fn refuse_method(&self, reason: NetReason) -> NetDecision {
        NetDecision {
            verdict: NetVerdict::Deny,
            rule: Some(self.methods_rule()),
            reason,
            grant: Some(GRANT.to_owned()),
        }
    }

    fn methods_rule(&self) -> String {
        format!("methods {}", self.methods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_methods_that_ask_pass() {
        let mut rules = NetworkRules::default();
        assert!(rules.decide_method("DELETE").is_allowed());
        assert!(rules.decide_unreadable("ssh").is_allowed());
        rules.methods = Methods::ReadOnly;
        for method in ["GET", "HEAD", "OPTIONS"] {
            assert!(rules.decide_method(method).is_allowed(), "{method}");
        }
        for method in [
            "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "get", "GETX", "", "MKCOL",
        ] {
            let decision = rules.decide_method(method);
            assert!(!decision.is_allowed(), "{method}");
            assert_eq!(decision.rule.as_deref(), Some("methods read-only"));
            assert_eq!(decision.grant.as_deref(), Some("--net-methods any"));
        }
        assert!(!rules.decide_unreadable("ssh").is_allowed());
        let long = rules.decide_method(&"\u{7}X".repeat(4000));
        assert!(long.reason.to_string().len() < 200);
        assert!(!long.reason.to_string().contains('\u{7}'));
    }

    #[test]
    fn read_only_is_narrower() {
        assert!(Methods::ReadOnly < Methods::Any);
        assert_eq!(Methods::default(), Methods::Any);
    }
}
