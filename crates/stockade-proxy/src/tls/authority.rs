//! The authority of one run: a key that never leaves this memory, and certificates for the hosts
//! that are asked for.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use stockade_policy::host::Host;

use super::{HTTP_1, provider};

/// Longer than any run; a clock that is a little off does no harm.
const BEFORE: Duration = Duration::from_secs(24 * 3600);
const AFTER: Duration = Duration::from_secs(30 * 24 * 3600);

/// As many certificates are kept; a pattern may stand for any number of names.
const MAX_KEPT: usize = 256;

pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    certificate: String,
    /// One key for every host: all of them are this process.
    key: KeyPair,
    kept: Mutex<HashMap<Host, Arc<ServerConfig>>>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub(super) enum AuthorityError {
    #[error("a certificate can't be made: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("a certificate can't be used: {0}")]
    Tls(#[from] rustls::Error),
}

impl Authority {
    pub(super) fn new() -> Result<Self, AuthorityError> {
        let mut params = CertificateParams::default();
        name(&mut params, "Stockade, for one run");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        Ok(Self {
            certificate: issuer.as_ref().pem(),
            issuer,
            key: KeyPair::generate()?,
            kept: Mutex::default(),
        })
    }

    /// Its certificate, in PEM.
    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// How to be this host.
    pub(super) fn server(&self, host: &Host) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = kept.get(host) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.make(host)?);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn make(&self, host: &Host) -> Result<ServerConfig, AuthorityError> {
        let text = match host {
            Host::Ip(ip) => ip.to_string(),
            Host::Name(name) => name.to_string(),
        };
        let mut params = CertificateParams::new([text])?;
        // Not the host's name, which may be longer than this field allows (64, RFC 5280).
        name(&mut params, "Stockade");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Strict clients, such as Python's, want to be told who signed (RFC 5280 section 4.2.1.1).
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&self.key, &self.issuer)?;
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::try_from(self.key.serialize_der())
            .map_err(|error| rustls::Error::General(error.to_owned()))?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![HTTP_1.to_vec()];
        Ok(config)
    }
}

fn name(params: &mut CertificateParams, text: &str) {
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, text);
    let now = SystemTime::now();
    params.not_before = (now - BEFORE).into();
    params.not_after = (now + AFTER).into();
}

/// Without keys.
impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_one_certificate_and_there_are_not_too_many() {
        let authority = Authority::new().unwrap();
        let host = Host::parse("a.test").unwrap();
        let first = authority.server(&host).unwrap();
        assert!(Arc::ptr_eq(&first, &authority.server(&host).unwrap()));
        for number in 0..MAX_KEPT + 10 {
            let host = Host::parse(&format!("h{number}.test")).unwrap();
            authority.server(&host).unwrap();
        }
        assert!(authority.kept.lock().unwrap().len() <= MAX_KEPT);
        let long = format!("{}.{}.test", "a".repeat(63), "b".repeat(63));
        assert!(authority.server(&Host::parse(&long).unwrap()).is_ok());
        assert!(authority.server(&Host::parse("::1").unwrap()).is_ok());
    }

    #[test]
    fn no_run_has_the_authority_of_another() {
        let (one, other) = (Authority::new().unwrap(), Authority::new().unwrap());
        assert_ne!(one.certificate(), other.certificate());
        assert!(!format!("{one:?}").contains("KEY"));
    }
}
