//! Any bytes as a policy in JSON: no panic, it survives a round trip, it is no wider than itself,
//! and its profile grants no more than it does.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use stockade_policy::profile::Profile;
use stockade_policy::{AbsPath, SandboxPolicy, Surroundings};
use stockade_rules::Kind;

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).expect("an absolute path")
}

fuzz_target!(|data: &[u8]| {
    let policy = match SandboxPolicy::from_json(data) {
        Ok(policy) => policy,
        Err(error) => return drop(error.to_string()),
    };
    let json = policy
        .to_json()
        .expect("a policy that was read can be written");
    assert_eq!(
        SandboxPolicy::from_json(json.as_bytes()).as_ref(),
        Ok(&policy)
    );
    let around = Surroundings::new(abs("/home/u/ws")).with_home(abs("/home/u"));
    assert!(policy.is_at_most_in(&policy, &around));
    let Ok(profile) = Profile::from_policy(&policy, &around) else {
        return;
    };
    drop(profile.show().to_string());
    drop(profile.to_sandbox_policy());
    for path in [
        "/",
        "/etc/x",
        "/tmp/x",
        "/home/u/ws/a",
        "/home/u/ws/.git/hooks/x",
        "/home/u/.ssh/id",
    ] {
        let path = Path::new(path);
        let allowed = |kind| profile.rules.decide(kind, path).allowed;
        assert!(
            !allowed(Kind::Read) || policy.is_path_readable_in(path, &around),
            "{path:?}"
        );
        assert!(
            !allowed(Kind::Write) || policy.is_path_writable_in(path, &around),
            "{path:?}"
        );
    }
});
