//! TLS that is opened, so that requests in it can be read: towards the client with a certificate
//! of the run's own authority, towards the host as the real client would.
//!
//! Protects the one thing that opening TLS puts at risk: the host at the other end is verified
//! against what this machine trusts, by the name that was asked for, and no client is ever told
//! less than that. The authority's key is in this process's memory alone and dies with it; who
//! trusts its certificate is the sandbox that it was made for.
//!
//! Only hosts for which something must be read are opened; others are tunnels as ever. Clients that
//! pin certificates, or bring their own, refuse, which is a failure and no way around.

mod authority;
mod trust;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustls::client::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use stockade_policy::host::Host;
use tokio::time::timeout;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use self::authority::Authority;
use self::trust::HostTrust;
use crate::error::Unreachable;
use crate::gate::Target;
use crate::rewind::Rewind;

/// The only protocol inside that is read.
const HTTP_1: &[u8] = b"http/1.1";

/// Opens TLS for one run.
#[derive(Debug)]
pub(crate) struct Inspector {
    authority: Authority,
    host: HostTrust,
    trust: String,
    /// Made at the first connection: reading all certificates takes some milliseconds.
    outward: OnceLock<Arc<ClientConfig>>,
}

impl Inspector {
    /// Makes an authority for one run.
    ///
    /// # Errors
    /// If the certificates that this machine trusts can't be read, or there is no randomness.
    pub(crate) fn new() -> io::Result<Self> {
        let authority = Authority::new().map_err(io::Error::other)?;
        let host = HostTrust::read()?;
        let mut trust = host.text().into_owned();
        if !trust.is_empty() && !trust.ends_with('\n') {
            trust.push('\n');
        }
        trust.push_str(authority.certificate());
        Ok(Self {
            authority,
            host,
            trust,
            outward: OnceLock::new(),
        })
    }

    /// What clients have to trust: everything that this machine does, and the run's own authority.
    pub(crate) fn trust(&self) -> &str {
        &self.trust
    }

    /// The host's side of a client's connection.
    pub(crate) async fn accept(
        &self,
        host: &Host,
        client: Rewind,
        limit: Duration,
    ) -> io::Result<TlsStream<Rewind>> {
        let config = self.authority.server(host).map_err(io::Error::other)?;
        let accept = TlsAcceptor::from(config).accept(client);
        match timeout(limit, accept).await {
            Ok(stream) => stream.map(TlsStream::from),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    /// The client's side of a connection to the host, which must prove that it is the one that was
    /// asked for.
    pub(crate) async fn connect(
        &self,
        target: &Target,
        server: Rewind,
        limit: Duration,
    ) -> Result<TlsStream<Rewind>, Unreachable> {
        let failed = |source| Unreachable::Tls {
            to: target.to_string(),
            source,
        };
        let config = self.outward().map_err(failed)?;
        let name = match &target.host {
            Host::Ip(ip) => ServerName::IpAddress((*ip).into()),
            Host::Name(name) => ServerName::try_from(name.to_string())
                .map_err(|error| failed(io::Error::other(error)))?,
        };
        let connect = TlsConnector::from(config).connect(name, server);
        match timeout(limit, connect).await {
            Ok(stream) => stream.map(TlsStream::from).map_err(failed),
            Err(_) => Err(Unreachable::ConnectTimeout {
                to: target.to_string(),
                after: limit,
            }),
        }
    }

    fn outward(&self) -> io::Result<Arc<ClientConfig>> {
        if let Some(config) = self.outward.get() {
            return Ok(Arc::clone(config));
        }
        let roots = self.host.roots()?;
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        Ok(Arc::clone(self.outward.get_or_init(|| Arc::new(config))))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
