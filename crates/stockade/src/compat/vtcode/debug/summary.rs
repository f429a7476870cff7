//! What this machine offers, in words.

use std::fmt::Write;
use std::path::Path;

use stockade_policy::{SandboxPolicy, SandboxType};

use stockade_engine::probe::{Report, Support, Tier, probe};

/// What this machine offers, for people. Everything in it was tried just now; `helper` makes the
/// attempts.
pub fn sandbox_capabilities_summary(helper: &Path) -> String {
    summary(&probe(helper))
}

fn summary(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    let tier = match report.tier {
        Some(Tier::Native) => "native: namespaces, mounts, Landlock, seccomp, limits",
        Some(Tier::Landlock) => "landlock: Landlock, seccomp, limits; no namespaces",
        None => "none: nothing here can confine a command",
    };
    writeln!(text, "Sandbox capabilities")?;
    writeln!(
        text,
        "  platform default: {}",
        SandboxType::platform_default()
    )?;
    writeln!(text, "  tier: {tier}")?;
    writeln!(text, "Tried on this machine")?;
    for (name, support) in [
        ("landlock", &report.landlock.support),
        ("user namespaces", &report.user_namespaces.support),
        ("seccomp", &report.seccomp.support),
        ("cgroups", &report.cgroup.support),
        ("overlay", &report.overlay.support),
    ] {
        let word = match support {
            Support::Full => "yes",
            Support::Partial { .. } => "in part",
            Support::None { .. } => "no",
        };
        writeln!(text, "  {name}: {word}")?;
        for gap in support.gaps() {
            writeln!(text, "    {}: {}", gap.what, gap.reason)?;
        }
    }
    writeln!(text, "Policies")?;
    for policy in [
        SandboxPolicy::read_only(),
        SandboxPolicy::workspace_write(Vec::new()),
        SandboxPolicy::full_access(),
    ] {
        writeln!(text, "  {}", policy.description())?;
    }
    Ok(())
}
