//! Names and the addresses that stand for them inside one sandbox.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stockade::network::{SYNTHETIC_COUNT, SYNTHETIC_V4, SYNTHETIC_V6};
use stockade_policy::host::HostName;

/// The first two addresses are the network's and the proxy's own.
const FIRST: u32 = 2;
/// A wildcard allows any number of names; a client that asks for more of them gets no more.
const MAX_NAMES: usize = 50_000;

#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<HostName, u32>,
    names: Vec<HostName>,
}

impl Names {
    /// The addresses of a name, the same ones every time; none if there are no more.
    pub(crate) fn addresses_of(&self, name: &HostName) -> Option<(Ipv4Addr, Ipv6Addr)> {
        let mut table = self.table();
        if let Some(number) = table.numbers.get(name) {
            return Some(addresses(*number));
        }
        if table.names.len() >= MAX_NAMES {
            return None;
        }
        let number = FIRST + u32::try_from(table.names.len()).ok()?;
        table.names.push(name.clone());
        table.numbers.insert(name.clone(), number);
        Some(addresses(number))
    }

    /// The name that an address stands for.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<HostName> {
        let number = match address {
            IpAddr::V4(ip) => {
                let number = ip.to_bits().checked_sub(SYNTHETIC_V4.to_bits())?;
                (number < SYNTHETIC_COUNT).then_some(number)?
            }
            IpAddr::V6(ip) => {
                let number = ip.to_bits().checked_sub(SYNTHETIC_V6.to_bits())?;
                u32::try_from(number).ok()?
            }
        };
        let place = usize::try_from(number.checked_sub(FIRST)?).ok()?;
        self.table().names.get(place).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn addresses(number: u32) -> (Ipv4Addr, Ipv6Addr) {
    (
        Ipv4Addr::from_bits(SYNTHETIC_V4.to_bits() + number),
        Ipv6Addr::from_bits(SYNTHETIC_V6.to_bits() + u128::from(number)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_addresses_and_they_lead_back() {
        let names = Names::default();
        let name = |text: &str| HostName::parse(text).unwrap();
        let (v4, v6) = names.addresses_of(&name("a.test")).unwrap();
        assert_eq!(v4, Ipv4Addr::new(198, 18, 0, 2));
        let other = names.addresses_of(&name("b.test")).unwrap();
        assert_ne!(other.0, v4);
        assert_eq!(names.addresses_of(&name("A.test.")), Some((v4, v6)));
        assert_eq!(names.name_of(v4.into()), Some(name("a.test")));
        assert_eq!(names.name_of(v6.into()), Some(name("a.test")));
        assert_eq!(names.name_of(other.1.into()), Some(name("b.test")));
        for nobody in [
            "198.18.0.1",
            "198.18.0.4",
            "198.17.255.255",
            "198.20.0.0",
            "::1",
            "8.8.8.8",
        ] {
            assert_eq!(names.name_of(nobody.parse().unwrap()), None, "{nobody}");
        }
    }

    #[test]
    fn there_is_an_end_to_names() {
        let names = Names::default();
        for number in 0..MAX_NAMES {
            let name = HostName::parse(&format!("n{number}.test")).unwrap();
            assert!(names.addresses_of(&name).is_some());
        }
        assert_eq!(
            names.addresses_of(&HostName::parse("more.test").unwrap()),
            None
        );
    }
}
