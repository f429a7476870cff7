//! Any bytes as the user's and the project's profile: no panic, no escape sequence in a message,
//! and the project never widens.
//!
//! A NUL byte, which TOML does not allow, parts the two files.

#![no_main]

use std::collections::BTreeMap;
use std::io;

use libfuzzer_sys::fuzz_target;
use stockade_policy::profile::{Loader, Profile, ProfileError, Sources, explain_path};
use stockade_policy::{AbsPath, Surroundings};

struct Files(BTreeMap<AbsPath, Vec<u8>>);

impl Loader for Files {
    fn read(&self, path: &AbsPath) -> io::Result<Vec<u8>> {
        self.0
            .get(path)
            .cloned()
            .ok_or(io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &AbsPath) -> bool {
        path.depth() % 2 == 0
    }
}

fn abs(text: &str) -> AbsPath {
    AbsPath::new(text).expect("an absolute path")
}

fn resolve(user: &[u8], project: Option<&[u8]>) -> Result<Profile, ProfileError> {
    let around = Surroundings::new(abs("/home/u/ws")).with_home(abs("/home/u"));
    let sources = Sources {
        user: Some(abs("/home/u/.config/stockade/config.toml")),
        project: Some(abs("/home/u/ws/stockade.toml")),
        ..Sources::new(around)
    };
    let mut files = BTreeMap::from([(abs("/home/u/.config/stockade/config.toml"), user.to_vec())]);
    if let Some(project) = project {
        files.insert(abs("/home/u/ws/stockade.toml"), project.to_vec());
    }
    Profile::resolve(&sources, &Files(files))
}

fn check_message(error: &ProfileError) {
    let text = format!("{error}{}", error.hint().unwrap_or_default());
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |byte| *byte == 0);
    let user = [b"version = 1\n", parts.next().unwrap_or_default()].concat();
    let project = [b"version = 1\n", parts.next().unwrap_or_default()].concat();
    let alone = match resolve(&user, None) {
        Ok(profile) => profile,
        Err(error) => return check_message(&error),
    };
    assert!(!alone.show().to_string().contains('\u{1b}'));
    let narrowed = match resolve(&user, Some(&project)) {
        Ok(profile) => profile,
        Err(error) => return check_message(&error),
    };
    for path in [
        "/",
        "/usr/lib/x",
        "/home/u/ws/a/b",
        "/home/u/ws/.git/hooks/x",
        "/home/u/.ssh/id",
    ] {
        let (old, new) = (
            explain_path(&alone, &abs(path)),
            explain_path(&narrowed, &abs(path)),
        );
        assert!(old.read.allowed || !new.read.allowed, "read {path}");
        assert!(old.write.allowed || !new.write.allowed, "write {path}");
    }
    assert!(narrowed.network.mode.value <= alone.network.mode.value);
    assert!(narrowed.level.value >= alone.level.value);
});
