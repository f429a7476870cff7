//! The proxy by itself: a loopback port, a thread, a log.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use stockade_policy::CERTIFICATE_VARIABLES;
use stockade_policy::host::{Host, NetDecision};
use tokio::sync::{Semaphore, oneshot};

use crate::attribution::Attribution;
use crate::config::{ConfigError, ProxyConfig};
use crate::gate::{CurrentEgress, Gate};
use crate::ledger::{Ledger, ProxyLogEntry, ProxyStats, Traffic};
use crate::log_file;
use crate::memory;
use crate::server;
use crate::shutdown::ShutdownSignal;
use crate::tls::Inspector;
use crate::upstream::split_port;

/// A proxy that lets pass what its configuration allows.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use stockade_proxy::{NetworkProxy, ProxyConfig};
///
/// let mut proxy = NetworkProxy::new(ProxyConfig {
///     allowed_domains: vec!["*.example.org".into()],
///     ..ProxyConfig::default()
/// })?;
/// let address = proxy.start()?;
/// assert!(address.ip().is_loopback());
/// assert!(proxy.is_allowed("api.example.org"));
/// assert!(!proxy.is_allowed("example.com:443"));
/// proxy.stop();
/// # Ok(())
/// # }
/// ```
///
/// # Security
/// By itself it confines nobody: a program that does not want to use it does not. A sandbox with a
/// list of hosts has a proxy of its own that can't be gone around.
#[derive(Debug)]
pub struct NetworkProxy {
    gate: Arc<Gate>,
    listen: SocketAddr,
    trust_file: Option<PathBuf>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    address: SocketAddr,
    /// Dropping it ends the thread.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Why a proxy can't be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The port can't be had.
    #[error("can't listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The thread or its event loop can't be had.
    #[error("the proxy's thread can't be started")]
    Thread(#[source] io::Error),
    /// It is running.
    #[error("the proxy is running already")]
    Running,
}

impl NetworkProxy {
    /// A proxy that is not started yet.
    ///
    /// # Errors
    /// If the configuration makes no sense, or the log can't be opened.
    pub fn new(config: ProxyConfig) -> Result<Self, ProxyError> {
        let egress = config.egress()?;
        if !config.masks.is_empty() {
            memory::hide().map_err(ProxyError::Memory)?;
        }
        let file = match &config.log_file {
            Some(path) => Some(log_file::open(path).map_err(|source| ProxyError::Log {
                path: path.clone(),
                source,
            })?),
            None => None,
        };
        let looks_in = config.methods.is_limited() || !config.masks.is_empty();
        let trust_file = config.trust_file.filter(|_| looks_in);
        let inspector = trust_file.as_ref().map(|path| {
            let failed = |source| ProxyError::Trust {
                path: path.clone(),
                source,
            };
            let inspector = Inspector::new().map_err(failed)?;
            log_file::write(path, inspector.trust()).map_err(failed)?;
            Ok::<_, ProxyError>(Arc::new(inspector))
        });
        let inspector = inspector.transpose()?;
        let capacity = if config.log_requests {
            config.log_capacity
        } else {
            0
        };
        let gate = Gate {
            egress: CurrentEgress::new(egress),
            limits: config.limits,
            upstream: config.upstream,
            ledger: Arc::new(Ledger::new(capacity, file)),
            ending: ShutdownSignal::NEVER,
            masks: config.masks,
            inspector,
            attribution: Attribution::default(),
        };
        Ok(Self {
            gate: Arc::new(gate),
            listen: config.listen,
            trust_file,
            running: None,
        })
    }

    /// Listens and serves on a thread of its own; gives the address.
    ///
    /// # Errors
    /// If the port or the thread can't be had.
    pub fn start(&mut self) -> Result<SocketAddr, StartError> {
        if self.running.is_some() {
            return Err(StartError::Running);
        }
        let failed = |source| StartError::Listen {
            address: self.listen,
            source,
        };
        let listener = TcpListener::bind(self.listen).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let runtime = event_loop().map_err(StartError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let gate = Arc::clone(&self.gate);
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(failed)?
        };
        let thread = std::thread::Builder::new()
            .name("stockade-proxy".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    let places = Arc::new(Semaphore::new(gate.limits.connections));
                    let ending = ShutdownSignal::NEVER;
                    let accept = server::accept(listener, places, ending, |stream, permit| {
                        server::serve(Arc::clone(&gate), stream, permit)
                    });
                    tokio::select! {
                        () = accept => {}
                        _ = stopped => {}
                    }
                });
                // A lookup that hangs must not hold up the end.
                runtime.shutdown_background();
            })
            .map_err(StartError::Thread)?;
        self.running = Some(Running {
            address,
            stop,
            thread,
        });
        Ok(address)
    }

    /// Ends it: every connection is closed. Log and counters stay.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.stop);
            // It panicked, which has been said already.
            let _ = running.thread.join();
        }
    }

    /// Where it listens, while it runs.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.as_ref().map(|running| running.address)
    }

    /// What the lists say about a host on a port, before anything is looked up.
    pub fn decide(&self, host: &str, port: u16) -> NetDecision {
        match Host::parse(host) {
            Ok(host) => self.gate.egress.get().decide(&host, port),
            Err(error) => NetDecision::bad_host(error),
        }
    }

    /// Whether the lists let a host pass: `host` (on port 443) or `host:port`.
    pub fn is_allowed(&self, host: &str) -> bool {
        split_port(host)
            .is_some_and(|(host, port)| self.decide(host, port.unwrap_or(443)).is_allowed())
    }

    /// The variables that make programs use it, those that are masked, and those that name the
    /// certificates to trust; empty while it does not run.
    pub fn env_vars(&self) -> BTreeMap<String, String> {
        let mut variables = self.address().map(env_vars).unwrap_or_default();
        if !variables.is_empty() {
            let masks = self.gate.masks.iter();
            variables.extend(masks.map(|own| (own.mask.name.to_string(), own.placeholder.clone())));
            if let Some(file) = &self.trust_file {
                let file = file.to_string_lossy();
                let names = CERTIFICATE_VARIABLES.iter();
                variables.extend(names.map(|name| ((*name).to_owned(), file.clone().into_owned())));
            }
        }
        variables
    }

    /// The requests, the oldest first; a bounded number of them.
    pub fn get_log(&self) -> Vec<ProxyLogEntry> {
        self.gate.ledger.entries()
    }

    /// What is over, summed up by host, port and decision.
    pub fn get_traffic(&self) -> Vec<Traffic> {
        self.gate.ledger.traffic()
    }

    /// The counters.
    pub fn get_stats(&self) -> ProxyStats {
        self.gate.ledger.stats()
    }
}

impl Drop for NetworkProxy {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Why a proxy can't be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The certificates to trust can't be made or written.
    #[error("can't write the certificates to trust to `{}`", path.display())]
    Trust {
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The memory that holds masked values can't be hidden.
    #[error("can't keep masked values out of core dumps")]
    Memory(#[source] io::Error),
    /// The log can't be opened.
    #[error("can't write the log `{}`", path.display())]
    Log {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// What programs read to find a proxy, in both spellings.
pub(crate) fn env_vars(address: SocketAddr) -> BTreeMap<String, String> {
    let http = format!("http://{address}");
    // A name that goes to the proxy as a name: the `h`.
    let socks = format!("socks5h://{address}");
    let own = "localhost,127.0.0.1,::1".to_owned();
    [
        ("HTTP_PROXY", &http),
        ("HTTPS_PROXY", &http),
        ("ALL_PROXY", &socks),
        ("NO_PROXY", &own),
    ]
    .into_iter()
    .flat_map(|(name, value)| {
        [
            (name.to_owned(), value.clone()),
            (name.to_lowercase(), value.clone()),
        ]
    })
    .collect()
}

/// One thread for everything; names are looked up on a few others.
pub(crate) fn event_loop() -> io::Result<tokio::runtime::Runtime> {
    raise_descriptor_limit();
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(16)
        .build()
}

/// Two thousand tunnels need more descriptors than the usual soft limit of 1024; the hard limit is
/// the administrator's.
fn raise_descriptor_limit() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // Where it can't be raised, fewer clients are served at one time.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: limit.maximum,
                maximum: limit.maximum,
            },
        );
    }
}
