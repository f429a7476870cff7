//! Variables whose value never enters the sandbox: `--mask NAME=HOST`.
//!
//! Protects a token from code that only has to use it: inside, the variable holds a placeholder,
//! and the proxy puts the value in on the way to the hosts it is for. It does not keep the code
//! from using the token there, nor a host from handing it out.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::env::EnvError;
use crate::host::{Host, HostPattern, HostPatternError};

use super::environment::EnvName;

/// A variable, and the hosts that its value is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Mask {
    /// The variable.
    pub name: EnvName,
    /// Who gets the value; without a port, on every port that is allowed.
    pub hosts: Vec<HostPattern>,
}

/// Why a text is no [`Mask`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// There is no `=`, or no host behind it. The text is not repeated: it may be a secret.
    #[error("it is not of the form NAME=HOST[,HOST…]; the value is read from the environment")]
    Form,
    /// The name is none.
    #[error(transparent)]
    Name(#[from] EnvError),
    /// A host is none.
    #[error(transparent)]
    Host(#[from] HostPatternError),
}

impl Mask {
    /// Whether the value is for this host on this port.
    pub fn is_for(&self, host: &Host, port: u16) -> bool {
        self.hosts.iter().any(|pattern| {
            pattern.hosts().contains(host) && pattern.port().is_none_or(|own| own == port)
        })
    }

    /// The first host of the mask that no pattern of a list covers.
    pub(super) fn first_outside(&self, list: &[&HostPattern]) -> Option<&HostPattern> {
        self.hosts.iter().find(|host| {
            !list.iter().any(|allowed| {
                let same_port = match (host.port(), allowed.port()) {
                    (None, _) => true,
                    (Some(own), Some(port)) => own == port,
                    (Some(own), None) => matches!(own, 80 | 443),
                };
                same_port && allowed.hosts().covers(host.hosts())
            })
        })
    }
}

impl FromStr for Mask {
    type Err = MaskError;

    fn from_str(text: &str) -> Result<Self, MaskError> {
        let (name, hosts) = text.split_once('=').ok_or(MaskError::Form)?;
        if hosts.is_empty() {
            return Err(MaskError::Form);
        }
        let hosts = hosts.split(',').map(|host| HostPattern::parse(host.trim()));
        Ok(Self {
            name: EnvName::new(name.as_ref())?,
            hosts: hosts.collect::<Result<_, _>>()?,
        })
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=", self.name)?;
        for (at, host) in self.hosts.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(text: &str) -> Mask {
        text.parse().unwrap()
    }

    #[test]
    fn masks_are_read_and_printed() {
        assert_eq!(
            mask("TOKEN=a.test, *.b.test:443").to_string(),
            "TOKEN=a.test,*.b.test:443"
        );
        for text in [
            "TOKEN",
            "TOKEN=",
            "=a.test",
            "TOKEN=a b",
            "TOKEN=*",
            "TOKEN=a.test,",
        ] {
            assert!(text.parse::<Mask>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_for_its_hosts_alone() {
        let mask = mask("TOKEN=a.test:443,*.b.test");
        let is_for = |host: &str, port| mask.is_for(&Host::parse(host).unwrap(), port);
        assert!(is_for("a.test", 443));
        assert!(!is_for("a.test", 80));
        assert!(is_for("x.b.test", 8080));
        assert!(!is_for("xb.test", 443));
        assert!(!is_for("x.a.test", 443));
    }

    #[test]
    fn every_host_must_be_on_the_list() {
        let list = ["*.a.test", "b.test:8080"].map(|text| HostPattern::parse(text).unwrap());
        let list: Vec<&HostPattern> = list.iter().collect();
        let outside = |text: &str| {
            let mask = mask(text);
            mask.first_outside(&list).map(ToString::to_string)
        };
        assert_eq!(outside("T=x.a.test,a.test:80,b.test,b.test:8080"), None);
        assert_eq!(outside("T=x.a.test,c.test").as_deref(), Some("c.test"));
        assert_eq!(outside("T=b.test:443").as_deref(), Some("b.test:443"));
        assert_eq!(outside("T=a.test:22").as_deref(), Some("a.test:22"));
        assert_eq!(outside("T=*.test.b.test").as_deref(), Some("*.test.b.test"));
    }
}
