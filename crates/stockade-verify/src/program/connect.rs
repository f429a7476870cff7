//! Connections: to whom, and whether one address after the other is tried.

use super::judge::Judge;
use super::value::{Args, Kind, Taint, Value};
use crate::hosts;
use crate::paths::UNKNOWN;
use crate::result::Span;
use crate::rule::Rule;

/// Connections that a loop of an ordinary program does not open.
const CROWD: usize = 100;

impl Judge<'_> {
    /// The socket of what runs containers: whoever may write to it has the host.
    pub(super) fn runtime_socket(&mut self, address: &str, span: Span) {
        let runtimes = ["docker.sock", "containerd.sock", "crio.sock", "podman.sock"];
        if runtimes
            .iter()
            .any(|runtime| address.ends_with(runtime) || address.contains(&format!("{runtime}/")))
        {
            let reason = "talks to what runs the machine's containers";
            self.findings.excerpt(Rule::ContainerEscape, span, reason);
        }
    }

    /// `net.connect(port, host)` with one port after the other.
    pub(super) fn tries_ports(&mut self, args: &Args, span: Span) {
        let [port, host, ..] = args.positional.as_slice() else {
            return;
        };
        let host = host.as_text().and_then(hosts::host_of);
        let elsewhere = host.is_some_and(|host| !hosts::is_local(host));
        if elsewhere && port.is_unknown() && port.taint.has(Taint::SERIES) {
            let reason = "tries one port after the other";
            self.findings.add(Rule::SystemSurvey, span, reason);
        }
    }

    pub(super) fn connects(&mut self, address: Option<&Value>, span: Span) {
        let host = address.and_then(|value| match &value.kind {
            Kind::List(items) => items.first().and_then(Value::as_text).map(str::to_owned),
            Kind::Text(text) => Some(text.to_string()),
            Kind::Dict(pairs) => pairs
                .iter()
                .find(|(key, _)| key.as_text() == Some("host"))
                .and_then(|(_, value)| value.as_text().map(str::to_owned)),
            _ => None,
        });
        self.runtime_socket(host.as_deref().unwrap_or_default(), span);
        let local = host
            .as_deref()
            .and_then(hosts::host_of)
            .is_some_and(hosts::is_local);
        if local {
            return;
        }
        self.seen.connects.get_or_insert(span);
        let here = self.seen.dials.entry(span.start).or_default();
        *here += 1;
        if *here == CROWD {
            let reason = "opens a hundred connections and more from one place";
            self.findings.excerpt(Rule::NetworkFlood, span, reason);
        }
        let dialled = address.filter(|value| value.as_text().is_some());
        if let Some(value) = dialled {
            self.seen.hosts.extend(host.clone());
            let series = value.taint.has(Taint::SERIES);
            let ports = value.as_text().is_some_and(|text| text.ends_with(UNKNOWN));
            let ports = ports && host.as_deref().is_some_and(|host| !host.contains('/'));
            let one_by_one = ports || host.as_deref().is_some_and(is_numbered);
            if series && one_by_one || self.seen.hosts.len() > 10 {
                let reason = "tries one address after the other";
                self.findings.add(Rule::SystemSurvey, span, reason);
            }
        }
        if let Some([_, port, ..]) = address.and_then(Value::as_list) {
            self.seen.ports.extend(port.as_int());
            self.seen.hosts.extend(host.clone());
            let many = self.seen.ports.len() > 10 || self.seen.hosts.len() > 10;
            if port.taint.has(Taint::SERIES) || many {
                let reason = "tries one address after the other";
                self.findings.add(Rule::SystemSurvey, span, reason);
            }
        }
        match host.as_deref().and_then(hosts::suspicion) {
            Some(reason) => {
                self.findings
                    .add(Rule::NetworkHost, span, format!("connects to {reason}"));
            }
            None => self
                .findings
                .warn(Rule::NetworkAccess, span, "opens a network connection"),
        }
    }
}

/// An address whose last numbers are filled in: `10.0.0.…`.
fn is_numbered(host: &str) -> bool {
    host.contains(UNKNOWN)
        && host
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ':' | UNKNOWN))
}
