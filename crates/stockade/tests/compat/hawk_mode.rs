//! Hawk's modes and wrapped commands.

use std::path::{Path, PathBuf};

use stockade::compat::Context;
use stockade::compat::hawk::{
    Mode, SandboxConfig, context_with_mode, mode_from_context, wrap_command,
};

use crate::{Test, dir};

pub(crate) const TESTS: &[Test] = &[
    ("contexts", contexts),
    ("words", words),
    ("wrapped", wrapped),
];

fn contexts() {
    let context = context_with_mode(&Context::new(), Mode::Strict);
    assert_eq!(mode_from_context(&context), Some(Mode::Strict));
    assert_eq!(mode_from_context(&Context::new()), None);
    // Cancelling and choosing go together.
    let (context, cancel) = context.with_cancel();
    let inner = context_with_mode(&context, Mode::Workspace);
    cancel.cancel();
    assert!(inner.is_cancelled());
    assert_eq!(mode_from_context(&inner), Some(Mode::Workspace));
}

fn words() {
    for (word, mode) in [
        ("strict", Mode::Strict),
        ("workspace", Mode::Workspace),
        ("off", Mode::Off),
    ] {
        assert_eq!(word.parse::<Mode>().unwrap(), mode);
        assert_eq!(mode.to_string(), word);
    }
    assert!("STRICT".parse::<Mode>().is_err() && "".parse::<Mode>().is_err());
}

fn wrapped() {
    let place = dir();
    let config = |mode| SandboxConfig {
        mode,
        workspace_dir: place.path().to_owned(),
        allow_network: false,
    };
    let off = wrap_command("echo x", &config(Mode::Off), Path::new("/nonexistent")).unwrap();
    assert_eq!(off.program, PathBuf::from("bash"));
    assert_eq!(off.args, ["-c", "echo x"]);
    // A helper that can't work is an error, and never a bare command.
    for helper in ["/nonexistent", "/bin/true"] {
        let refused = wrap_command("echo x", &config(Mode::Strict), Path::new(helper));
        assert!(refused.is_err(), "{helper}");
    }
}
