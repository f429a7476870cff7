//! Hawk's proxy: one that ends when its context is cancelled, and whose settings can be read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stockade_proxy::{
    NetworkProxy as Proxy, ProxyConfig, ProxyError, ProxyLogEntry, ProxyMode, ProxyStats,
    StartError,
};

use crate::compat::{CancelGuard, Context, FrontError};

/// A proxy on the loopback that lets pass what its configuration allows. By itself it confines
/// nobody; [`SandboxBuilder::allow`](crate::SandboxBuilder::allow) does.
#[derive(Debug)]
pub struct NetworkProxy {
    proxy: Arc<Mutex<Proxy>>,
    config: ProxyConfig,
    cancel: Option<CancelGuard>,
}

/// Why a proxy is not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkProxyError {
    /// The context was cancelled.
    #[error(transparent)]
    Cancelled(#[from] FrontError),
    /// The port or the thread can't be had.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl NetworkProxy {
    /// A proxy that is not started yet.
    ///
    /// # Errors
    /// If a pattern is none: a block pattern such as `10.*` is answered with its range in CIDR.
    pub fn new(config: ProxyConfig) -> Result<Self, ProxyError> {
        Ok(Self {
            proxy: Arc::new(Mutex::new(Proxy::new(config.clone())?)),
            config,
            cancel: None,
        })
    }

    /// Listens and serves until it is stopped or the context is cancelled; gives its address.
    ///
    /// # Errors
    /// If the context was cancelled, or the port can't be had.
    pub fn start(&mut self, context: &Context) -> Result<SocketAddr, NetworkProxyError> {
        context.check()?;
        let address = self.lock().start()?;
        let proxy = Arc::clone(&self.proxy);
        self.cancel = Some(context.after_cancel(move || lock(&proxy).stop()));
        Ok(address)
    }

    /// Ends it: every connection is closed. Log and counters stay.
    pub fn stop(&mut self) {
        self.cancel = None;
        self.lock().stop();
    }

    /// Hosts that may be reached.
    pub fn allowed_domains(&self) -> &[String] {
        &self.config.allowed_domains
    }

    /// Hosts that may not be reached, whatever else is said.
    pub fn blocked_domains(&self) -> &[String] {
        &self.config.blocked_domains
    }

    /// Whether every host may be reached that is not blocked.
    pub fn allow_all(&self) -> bool {
        self.config.mode == ProxyMode::Open
    }

    /// Whether no host may be reached.
    pub fn block_all(&self) -> bool {
        self.config.mode == ProxyMode::Closed
    }

    /// The port on which it listens; while it does not run, the one that it was configured with.
    pub fn port(&self) -> u16 {
        let address = self.lock().address();
        address.unwrap_or(self.config.listen).port()
    }

    /// Whether the lists let a host pass: `host` (on port 443) or `host:port`.
    pub fn is_allowed(&self, host: &str) -> bool {
        self.lock().is_allowed(host)
    }

    /// The variables that make programs use it; empty while it does not run.
    pub fn env_vars(&self) -> BTreeMap<String, String> {
        self.lock().env_vars()
    }

    /// The requests, the oldest first; a bounded number of them.
    pub fn get_log(&self) -> Vec<ProxyLogEntry> {
        self.lock().get_log()
    }

    /// The counters.
    pub fn get_stats(&self) -> ProxyStats {
        self.lock().get_stats()
    }

    fn lock(&self) -> MutexGuard<'_, Proxy> {
        lock(&self.proxy)
    }
}

fn lock(proxy: &Mutex<Proxy>) -> MutexGuard<'_, Proxy> {
    proxy.lock().unwrap_or_else(PoisonError::into_inner)
}
