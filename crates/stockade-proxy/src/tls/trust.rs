//! The certificates that this machine trusts.

use std::borrow::Cow;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use stockade_policy::CERTIFICATE_FILES;

/// The variable that names another file, as OpenSSL has it.
const VARIABLE: &str = "SSL_CERT_FILE";

/// What this machine trusts, as it is written.
#[derive(Debug)]
pub(super) struct HostTrust {
    place: Option<PathBuf>,
    text: Vec<u8>,
}

impl HostTrust {
    /// Reads the file that the environment names, or the system's own.
    ///
    /// # Errors
    /// If the file that the environment names can't be read.
    pub(super) fn read() -> io::Result<Self> {
        if let Some(named) = std::env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
            return Self::from_file(Path::new(&named)).map_err(|error| {
                let place = Path::new(&named).display();
                io::Error::new(error.kind(), format!("{VARIABLE} `{place}`: {error}"))
            });
        }
        let mut known = CERTIFICATE_FILES.iter().map(Path::new);
        Ok(known
            .find_map(|place| Self::from_file(place).ok())
            .unwrap_or(Self {
                place: None,
                text: Vec::new(),
            }))
    }

    fn from_file(place: &Path) -> io::Result<Self> {
        Ok(Self {
            text: fs::read(place)?,
            place: Some(place.to_owned()),
        })
    }

    /// As text; comments that are none become something else.
    pub(super) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// As what hosts are verified against.
    ///
    /// # Errors
    /// If there is not one certificate: then no host could ever be verified.
    pub(super) fn roots(&self) -> io::Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(&self.text).flatten();
        // Old ones that nobody can read are in every bundle.
        let (usable, _) = roots.add_parsable_certificates(certificates);
        if usable > 0 {
            return Ok(roots);
        }
        Err(io::Error::other(match &self.place {
            Some(place) => format!("`{}` has no certificate to trust", place.display()),
            None => format!("this machine trusts no certificates; {VARIABLE} can name a file"),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_certificate_nobody_is_trusted() {
        for text in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n%\n"] {
            let trust = HostTrust {
                place: None,
                text: text.into(),
            };
            let error = trust.roots().unwrap_err().to_string();
            assert!(error.contains("SSL_CERT_FILE"), "{error}");
        }
        assert!(HostTrust::from_file(Path::new("/no/such/file")).is_err());
    }
}
