//! Names and the addresses that stand for them inside one sandbox.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use stockade_engine::network::Addresses;
use stockade_policy::host::HostName;

/// The first two addresses are the network's and the proxy's own.
const FIRST: u32 = 2;
/// A wildcard allows any number of names; a client that asks for more of them gets no more.
const MAX_NAMES: usize = 50_000;

#[derive(Debug)]
pub(crate) struct Names {
    addresses: Addresses,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    numbers: HashMap<HostName, u32>,
    names: Vec<HostName>,
}

impl Names {
    pub(crate) fn new(addresses: Addresses) -> Self {
        Self {
            addresses,
            table: Mutex::default(),
        }
    }

    /// The addresses of a name, the same ones every time; none if there are no more.
    pub(crate) fn addresses_of(&self, name: &HostName) -> Option<(Ipv4Addr, Option<Ipv6Addr>)> {
        let mut table = self.table();
        if let Some(number) = table.numbers.get(name) {
            return self.addresses.numbered(*number);
        }
        if table.names.len() >= MAX_NAMES {
            return None;
        }
        let number = FIRST + u32::try_from(table.names.len()).ok()?;
        table.names.push(name.clone());
        table.numbers.insert(name.clone(), number);
        self.addresses.numbered(number)
    }

    /// The name that an address stands for.
    pub(crate) fn name_of(&self, address: IpAddr) -> Option<HostName> {
        let number = self.addresses.number_of(address)?;
        let place = usize::try_from(number.checked_sub(FIRST)?).ok()?;
        self.table().names.get(place).cloned()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_addresses_and_they_lead_back() {
        let names = Names::new(Addresses::ROUTED);
        let name = |text: &str| HostName::parse(text).unwrap();
        let (v4, v6) = names.addresses_of(&name("a.test")).unwrap();
        assert_eq!(v4, Ipv4Addr::new(198, 18, 0, 2));
        let other = names.addresses_of(&name("b.test")).unwrap();
        assert_ne!(other.0, v4);
        assert_eq!(names.addresses_of(&name("A.test.")), Some((v4, v6)));
        assert_eq!(names.name_of(v4.into()), Some(name("a.test")));
        assert_eq!(names.name_of(v6.unwrap().into()), Some(name("a.test")));
        assert_eq!(names.name_of(other.1.unwrap().into()), Some(name("b.test")));
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
        let names = Names::new(Addresses::LOOPBACK);
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
