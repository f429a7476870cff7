//! Patterns and hosts: no panic, one spelling for each, and decisions that do not depend on the
//! spelling.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_policy::host::{Host, HostPattern, NetworkRules, decide_network};

fuzz_target!(|texts: (&str, &str, u16)| {
    let (pattern, host, port) = texts;
    let parsed = HostPattern::danger_parse(pattern);
    if let Ok(read) = &parsed {
        assert_eq!(HostPattern::danger_parse(&read.to_string()).as_ref(), Ok(read));
    }
    if let Ok(read) = Host::parse(host) {
        assert_eq!(Host::parse(&read.to_string()).as_ref(), Ok(&read));
        let text = read.to_string();
        assert!(!text.contains(['\0', '\r', '\n', '@', '%', '/', ' ']), "{text}");
        if let Ok(pattern) = parsed {
            let rules = |allow: bool| NetworkRules {
                allow: if allow { vec![pattern.clone()] } else { Vec::new() },
                block: if allow { Vec::new() } else { vec![pattern.clone()] },
                ..NetworkRules::default()
            };
            let upper = host.to_ascii_uppercase();
            let same = |rules: &NetworkRules| {
                decide_network(rules, host, port).is_allowed()
                    == decide_network(rules, &upper, port).is_allowed()
            };
            assert!(same(&rules(true)) || Host::parse(&upper).is_err());
            assert!(!decide_network(&rules(false), host, port).is_allowed());
        }
    }
});
