//! Hawk's selection of a backend.

use stockade::compat::hawk::{
    IsolationLevel, SandboxSelection, landlock_available, select_sandbox,
};
use stockade::{Backend, SandboxPolicy};

use crate::{Test, dir, door, own_path};

pub(crate) const TESTS: &[Test] = &[
    ("available", available),
    ("landlock", landlock),
    ("levels", levels),
];

fn available() {
    let place = dir();
    door().available(place.path()).unwrap();
    let broken = stockade::compat::Door::new("/bin/true");
    assert!(broken.available(place.path()).is_err());
}

fn landlock() {
    // As the kernel lists its security modules, where that list can be read.
    if let Ok(list) = std::fs::read_to_string("/sys/kernel/security/lsm") {
        let listed = list.split(',').any(|name| name.trim() == "landlock");
        assert_eq!(landlock_available(), listed, "{list}");
    }
    let report = stockade::engine::probe::probe(&own_path());
    assert_eq!(landlock_available(), report.landlock.abi.is_some());
}

/// The levels that need an engine are tried in `hawk_container`.
fn levels() {
    let place = dir();
    let policy = SandboxPolicy::workspace_write(vec![]);
    let select = |level| select_sandbox(level, &policy, place.path(), &own_path());
    let off: SandboxSelection = select(IsolationLevel::Off).unwrap();
    assert_eq!(off.backend, Backend::None);
    let chosen = select(IsolationLevel::Default).unwrap();
    assert!([Backend::Native, Backend::Landlock].contains(&chosen.backend));
    assert!(!chosen.reason.is_empty());
    for level in [
        IsolationLevel::Enhanced,
        IsolationLevel::Container,
        IsolationLevel::Maximum,
    ] {
        // Never below the level: what was chosen reaches it, or nothing was chosen.
        if let Ok(selection) = select(level) {
            assert_eq!(
                selection.gaps.iter().find(|gap| gap.contains("below")),
                None
            );
        }
    }
}
