//! What was asked for and what became of it: a bounded log, counters, and sums for a report.
//!
//! Everything here is bounded: a client that asks for a million names costs the memory of
//! [`MAX_HOSTS`] of them.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Serialize, Serializer};

use crate::attribution::ClientAddress;
use crate::gate::{Denial, Target};
use crate::text;

/// How a client asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP `CONNECT`.
    Connect,
    /// A question to the resolver.
    Dns,
    /// A port that is handed from one side to the other.
    Forward,
    /// An HTTP request.
    Http,
    /// The same in TLS that was opened.
    Https,
    /// SOCKS5.
    Socks5,
    /// A connection of a client that knows of no proxy.
    Tcp,
    /// The same, with TLS.
    Tls,
}

impl Protocol {
    /// As logs and reports spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Dns => "dns",
            Self::Forward => "forward",
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProxyLogEntry {
    /// When it came.
    #[serde(rename = "timestamp_ms", serialize_with = "as_millis")]
    pub timestamp: SystemTime,
    /// Which host was asked for, in its strict form, or what was said in place of one.
    pub host: String,
    /// On which port; 0 where none was named.
    pub port: u16,
    /// How.
    pub protocol: Protocol,
    /// The HTTP method, or the protocol's own word.
    pub method: String,
    /// Whether the policy let it pass.
    pub allowed: bool,
    /// The rule that decided; none if no rule speaks about the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, in words.
    pub reason: String,
    /// The smallest change that would have let it pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Why an allowed host could not be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Bytes from the client to the host.
    pub sent: u64,
    /// Bytes from the host to the client.
    pub received: u64,
    /// Whether it is still going on.
    pub open: bool,
}

/// Counters since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ProxyStats {
    /// Requests that the policy let pass.
    pub allowed_requests: u64,
    /// Requests that it refused.
    pub blocked_requests: u64,
    /// Bytes in both directions, those of open connections among them.
    pub total_bytes: u64,
    /// How often each host was asked for; what is beyond ten thousand hosts is under `(others)`.
    pub unique_hosts: BTreeMap<String, u64>,
}

/// All requests that were alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Traffic {
    /// Which host.
    pub host: String,
    /// On which port; 0 where none was named.
    pub port: u16,
    /// How.
    pub protocol: Protocol,
    /// Whether the policy let them pass.
    pub allowed: bool,
    /// The rule that decided.
    pub rule: Option<String>,
    /// Why.
    pub reason: String,
    /// The smallest change that would have let them pass.
    pub grant: Option<String>,
    /// How many there were.
    pub count: u64,
    /// Bytes from the client to the host.
    pub sent: u64,
    /// Bytes from the host to the client.
    pub received: u64,
}

/// How many hosts are told apart.
const MAX_HOSTS: usize = 10_000;
/// How many kinds of requests are summed up: their reasons hold text of the client.
const MAX_SUMS: usize = 2000;
/// What the rest is called.
const OTHERS: &str = "(others)";

#[derive(Debug)]
pub(crate) struct Ledger {
    state: Mutex<State>,
    bytes: AtomicU64,
    file: Option<Mutex<File>>,
}

#[derive(Debug, Default)]
struct State {
    ring: VecDeque<Arc<Record>>,
    capacity: usize,
    allowed: u64,
    blocked: u64,
    hosts: BTreeMap<String, u64>,
    sums: BTreeMap<Key, Sum>,
}

#[derive(Debug)]
struct Record {
    entry: ProxyLogEntry,
    sent: AtomicU64,
    received: AtomicU64,
    open: AtomicBool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The command of a session.
    command: Option<u64>,
    host: String,
    port: u16,
    protocol: Protocol,
    allowed: bool,
    rule: Option<String>,
    reason: String,
}

#[derive(Debug, Default)]
struct Sum {
    grant: Option<String>,
    count: u64,
    sent: u64,
    received: u64,
}

/// How a client asked, for the log.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) protocol: Protocol,
    pub(crate) method: String,
    /// Who asked, where that can be told.
    pub(crate) client: Option<ClientAddress>,
}

impl Ask {
    pub(crate) fn new(protocol: Protocol, method: impl Into<String>) -> Self {
        Self {
            protocol,
            method: method.into(),
            client: None,
        }
    }

    pub(crate) fn by(self, client: Option<ClientAddress>) -> Self {
        Self { client, ..self }
    }
}

/// An allowed request that is going on; it is closed in the books when the last copy is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Session(Arc<Open>);

#[derive(Debug)]
struct Open {
    record: Arc<Record>,
    ledger: Arc<Ledger>,
}

impl Ledger {
    /// `capacity` entries are kept; `file` gets every one as a line of JSON.
    pub(crate) fn new(capacity: usize, file: Option<File>) -> Self {
        Self {
            state: Mutex::new(State {
                capacity,
                ..State::default()
            }),
            bytes: AtomicU64::new(0),
            file: file.map(Mutex::new),
        }
    }

    /// Notes a request that was refused, and the command of a session that made it.
    pub(crate) fn deny(&self, ask: Ask, denial: &Denial, command: Option<u64>) {
        let record = Arc::new(Record::closed(ProxyLogEntry {
            allowed: false,
            rule: denial.rule.clone(),
            reason: denial.reason.clone(),
            grant: denial.grant.clone(),
            ..blank(ask, &denial.host, denial.port)
        }));
        self.note(&record);
        self.close(&record, command);
    }

    /// Notes a request that the policy lets pass, but that came to nothing.
    pub(crate) fn fail(&self, ask: Ask, target: &Target, rule: Option<String>, error: String) {
        let record = Arc::new(Record::closed(ProxyLogEntry {
            rule,
            error: Some(error),
            ..blank(ask, &target.host.to_string(), target.port)
        }));
        self.note(&record);
        self.close(&record, None);
    }

    /// Notes a request that begins.
    pub(crate) fn open(
        self: &Arc<Self>,
        ask: Ask,
        target: &Target,
        rule: Option<String>,
    ) -> Session {
        let record = Arc::new(Record {
            open: AtomicBool::new(true),
            ..Record::closed(ProxyLogEntry {
                rule,
                ..blank(ask, &target.host.to_string(), target.port)
            })
        });
        self.note(&record);
        Session(Arc::new(Open {
            record,
            ledger: Arc::clone(self),
        }))
    }

    pub(crate) fn entries(&self) -> Vec<ProxyLogEntry> {
        self.state()
            .ring
            .iter()
            .map(|record| record.now())
            .collect()
    }

    /// Bytes in both directions since the start.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn stats(&self) -> ProxyStats {
        let state = self.state();
        ProxyStats {
            allowed_requests: state.allowed,
            blocked_requests: state.blocked,
            total_bytes: self.bytes(),
            unique_hosts: state.hosts.clone(),
        }
    }

    /// Sums of everything that is over.
    pub(crate) fn traffic(&self) -> Vec<Traffic> {
        let state = self.state();
        state.sums.iter().map(traffic).collect()
    }

    /// Takes the sums of one command of a session.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_traffic(&self, command: u64) -> Vec<Traffic> {
        let mut taken = Vec::new();
        self.state().sums.retain(|key, sum| {
            let is_own = key.command == Some(command);
            if is_own {
                taken.push(traffic((key, sum)));
            }
            !is_own
        });
        taken
    }

    fn note(&self, record: &Arc<Record>) {
        let mut state = self.state();
        let entry = &record.entry;
        if entry.allowed {
            state.allowed += 1;
        } else {
            state.blocked += 1;
        }
        let full = state.hosts.len() >= MAX_HOSTS;
        match state.hosts.get_mut(&entry.host) {
            Some(count) => *count += 1,
            None if full => *state.hosts.entry(OTHERS.to_owned()).or_default() += 1,
            None => {
                state.hosts.insert(entry.host.clone(), 1);
            }
        }
        if state.capacity > 0 {
            if state.ring.len() == state.capacity {
                state.ring.pop_front();
            }
            state.ring.push_back(Arc::clone(record));
        }
    }

    /// Sums a request up and writes its line.
    fn close(&self, record: &Record, command: Option<u64>) {
        record.open.store(false, Ordering::Relaxed);
        let entry = record.now();
        if let Some(file) = &self.file
            && let Ok(mut line) = serde_json::to_vec(&entry)
        {
            line.push(b'\n');
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            // A log that can't be written must not stop the traffic; the counters still tell.
            let _ = file.write_all(&line);
        }
        let mut state = self.state();
        let mut key = Key {
            command,
            host: entry.host,
            port: entry.port,
            protocol: entry.protocol,
            allowed: entry.allowed,
            rule: entry.rule,
            reason: entry.error.unwrap_or(entry.reason),
        };
        if state.sums.len() >= MAX_SUMS && !state.sums.contains_key(&key) {
            OTHERS.clone_into(&mut key.host);
            key.port = 0;
            key.rule = None;
            OTHERS.clone_into(&mut key.reason);
        }
        let sum = state.sums.entry(key).or_default();
        sum.grant = entry.grant;
        sum.count += 1;
        sum.sent += entry.sent;
        sum.received += entry.received;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Counts bytes from the client.
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.record.sent.fetch_add(bytes, Ordering::Relaxed);
        self.0.ledger.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes from the host.
    pub(crate) fn received(&self, bytes: u64) {
        self.0.record.received.fetch_add(bytes, Ordering::Relaxed);
        self.0.ledger.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Changes whenever something was moved.
    pub(crate) fn progress(&self) -> u64 {
        let record = &self.0.record;
        record
            .sent
            .load(Ordering::Relaxed)
            .wrapping_add(record.received.load(Ordering::Relaxed))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.ledger.close(&self.record, None);
    }
}

impl Record {
    fn closed(mut entry: ProxyLogEntry) -> Self {
        text::bound(&mut entry.host);
        text::bound(&mut entry.method);
        text::bound(&mut entry.reason);
        for field in [&mut entry.rule, &mut entry.grant, &mut entry.error] {
            field.iter_mut().for_each(text::bound);
        }
        Self {
            entry,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            open: AtomicBool::new(false),
        }
    }

    fn now(&self) -> ProxyLogEntry {
        ProxyLogEntry {
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            open: self.open.load(Ordering::Relaxed),
            ..self.entry.clone()
        }
    }
}

fn traffic((key, sum): (&Key, &Sum)) -> Traffic {
    Traffic {
        host: key.host.clone(),
        port: key.port,
        protocol: key.protocol,
        allowed: key.allowed,
        rule: key.rule.clone(),
        reason: key.reason.clone(),
        grant: sum.grant.clone(),
        count: sum.count,
        sent: sum.sent,
        received: sum.received,
    }
}

fn blank(ask: Ask, host: &str, port: u16) -> ProxyLogEntry {
    ProxyLogEntry {
        timestamp: SystemTime::now(),
        host: host.to_owned(),
        port,
        protocol: ask.protocol,
        method: ask.method,
        allowed: true,
        rule: None,
        reason: "allowed by policy".to_owned(),
        grant: None,
        error: None,
        sent: 0,
        received: 0,
        open: false,
    }
}

fn as_millis<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    serializer.serialize_u64(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stockade_policy::host::Host;

    fn target(host: &str) -> Target {
        Target {
            host: Host::parse(host).unwrap(),
            port: 443,
        }
    }

    fn ask() -> Ask {
        Ask::new(Protocol::Connect, "CONNECT")
    }

    #[test]
    fn bytes_of_an_open_connection_count_at_once() {
        let ledger = Arc::new(Ledger::new(10, None));
        let session = ledger.open(ask(), &target("a.test"), None);
        session.sent(3);
        session.received(4);
        assert_eq!(ledger.stats().total_bytes, 7);
        assert!(ledger.entries()[0].open);
        assert!(ledger.traffic().is_empty());
        drop(session);
        let entry = &ledger.entries()[0];
        assert_eq!((entry.sent, entry.received, entry.open), (3, 4, false));
        let [sum] = &ledger.traffic()[..] else {
            panic!("one sum")
        };
        assert_eq!((sum.count, sum.sent, sum.received), (1, 3, 4));
    }

    #[test]
    fn the_log_and_the_hosts_are_bounded() {
        let ledger = Arc::new(Ledger::new(5, None));
        for number in 0..MAX_HOSTS + 20 {
            drop(ledger.open(ask(), &target(&format!("h{number}.test")), None));
        }
        assert_eq!(ledger.entries().len(), 5);
        let stats = ledger.stats();
        assert_eq!(stats.unique_hosts.len(), MAX_HOSTS + 1);
        assert_eq!(stats.unique_hosts[OTHERS], 20);
        assert_eq!(ledger.traffic().len(), MAX_SUMS + 1);
        assert_eq!(stats.allowed_requests, MAX_HOSTS as u64 + 20);
    }

    #[test]
    fn no_client_decides_how_long_a_record_is() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let ledger = Arc::new(Ledger::new(10, Some(path.reopen().unwrap())));
        let long = "x".repeat(60_000);
        let denial = Denial {
            host: long.clone(),
            port: 80,
            rule: Some(long.clone()),
            reason: long.clone(),
            grant: Some(long.clone()),
        };
        ledger.deny(Ask::new(Protocol::Http, long.clone()), &denial, None);
        ledger.fail(ask(), &target("a.test"), Some(long.clone()), long);
        assert!(std::fs::metadata(path.path()).unwrap().len() < 8000);
        assert!(format!("{ledger:?}").len() < 16_000);
    }

    #[test]
    fn each_request_is_a_line_of_json() {
        let path = tempfile::NamedTempFile::new().unwrap();
        let ledger = Arc::new(Ledger::new(0, Some(path.reopen().unwrap())));
        drop(ledger.open(ask(), &target("a.test"), Some("allow a.test".into())));
        ledger.deny(
            ask(),
            &Denial {
                host: "b.test".into(),
                port: 80,
                rule: None,
                reason: "no rule allows the host".into(),
                grant: Some("--allow b.test".into()),
            },
            None,
        );
        let text = std::fs::read_to_string(path.path()).unwrap();
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["rule"], "allow a.test");
        assert_eq!(lines[0]["allowed"], true);
        assert_eq!(lines[1]["grant"], "--allow b.test");
        assert!(lines[1]["timestamp_ms"].as_u64().unwrap() > 1_700_000_000_000);
    }
}
