//! The kernel's own mechanisms: children of the helper make the attempts.

mod trial;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use stockade_linux::probe::{Attempt, MARKER, Step, Subject, landlock_abi, landlock_errata};
use stockade_linux::seccomp::{Action, is_available};
use stockade_policy::STOCKADE_SANDBOX_ACTIVE;

use super::deadline::{self, Ended};
use super::diagnose::{self, Facts, errno};
use super::{Check, Gap, Landlock, Report, Seccomp, Support, System, Tier, cgroup, docker, tools};

/// A child needs a millisecond; on a machine that swaps, or is emulated and busy, it may need many
/// seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) fn probe(helper: &Path) -> Report {
    let facts = Facts::read();
    thread::scope(|scope| {
        let namespaces = scope.spawn(|| namespaces(helper, &facts));
        let bwrap = scope.spawn(|| tools::bwrap(None));
        let nsjail = scope.spawn(|| tools::nsjail(None));
        let runsc = scope.spawn(|| tools::runsc(None));
        let docker = scope.spawn(docker::probe);
        let mut landlock = landlock(helper, &facts);
        let seccomp = seccomp(helper);
        let (mut user_namespaces, overlay) = namespaces.join().unwrap_or_else(|_| broken_pair());
        // What the parts promise has to hold for the whole, so that a run is the last part.
        let mut tier = None;
        for promised in promised(&user_namespaces, &landlock, &seccomp) {
            let Err(gap) = trial::run(helper, promised) else {
                tier = Some(promised);
                break;
            };
            let part = match promised {
                Tier::Native => &mut user_namespaces.support,
                Tier::Landlock => &mut landlock.support,
            };
            let mut gaps = part.gaps().to_vec();
            gaps.push(gap);
            *part = Support::Partial { gaps };
        }
        Report {
            system: System::of(release()),
            tier,
            landlock,
            user_namespaces,
            seccomp,
            cgroup: cgroup::probe(),
            overlay,
            bwrap: bwrap.join().unwrap_or_else(|_| tools::broken("bwrap")),
            nsjail: nsjail.join().unwrap_or_else(|_| tools::broken("nsjail")),
            docker: docker.join().unwrap_or_else(|_| docker::broken()),
            runsc: runsc.join().unwrap_or_else(|_| tools::broken("runsc")),
        }
    })
}

/// Whether one tier holds here, without trying what it does not need.
pub(super) fn engine(helper: &Path, tier: Tier) -> Support {
    let facts = Facts::read();
    let base = match tier {
        Tier::Native => namespaces(helper, &facts).0.support,
        Tier::Landlock => landlock(helper, &facts).support,
    };
    let filter = seccomp(helper);
    let mut gaps: Vec<Gap> = [&base, &filter.support]
        .into_iter()
        .flat_map(Support::gaps)
        .cloned()
        .collect();
    let mut works = base.is_usable() && filter.listener;
    if works && let Err(gap) = trial::run(helper, tier) {
        gaps.push(gap);
        works = false;
    }
    if works {
        Support::from_gaps(gaps)
    } else {
        Support::None { gaps }
    }
}

/// Whether Landlock and a filter without a listener hold here.
pub(super) fn unmediated(helper: &Path) -> Support {
    let landlock = landlock(helper, &Facts::read()).support;
    let filter = seccomp(helper).support;
    let gaps = [&landlock, &filter].into_iter().flat_map(Support::gaps);
    let gaps: Vec<Gap> = gaps.cloned().collect();
    if landlock.is_usable() && filter.is_usable() {
        Support::from_gaps(gaps)
    } else {
        Support::None { gaps }
    }
}

/// What the sandbox around this process holds, as far as the kernel tells.
pub(super) fn surroundings() -> Option<String> {
    let held = Facts::read().held_outside();
    (!held.is_empty()).then(|| {
        format!(
            "the sandbox around this one still holds: {}",
            held.join(", ")
        )
    })
}

/// The tiers whose parts are all here, the strongest first. The filter and the mediator are part of
/// every tier, Landlock of the lower one in place of the mounts.
fn promised(namespaces: &Check, landlock: &Landlock, seccomp: &Seccomp) -> Vec<Tier> {
    let parts = [
        (Tier::Native, &namespaces.support),
        (Tier::Landlock, &landlock.support),
    ];
    let usable = parts.into_iter();
    let usable = usable.filter(|(_, part)| seccomp.listener && part.is_usable());
    usable.map(|(tier, _)| tier).collect()
}

fn landlock(helper: &Path, facts: &Facts) -> Landlock {
    let abi = match landlock_abi() {
        Ok(abi) => abi,
        Err(error) => {
            let errno = error.raw_os_error().unwrap_or(errno::ENOSYS);
            return Landlock {
                support: Support::None {
                    gaps: vec![diagnose::landlock(errno, facts)],
                },
                abi: None,
                errata: 0,
            };
        }
    };
    let support = match attempt(helper, Subject::Landlock) {
        Ok(steps) => {
            match steps.first_failure(&[Step::LandlockRestrict, Step::LandlockEffective]) {
                None => Support::Full,
                Some((_, errno)) => Support::None {
                    gaps: vec![diagnose::landlock(errno, facts)],
                },
            }
        }
        Err(gap) => Support::None { gaps: vec![gap] },
    };
    Landlock {
        support,
        abi: Some(abi),
        errata: landlock_errata(),
    }
}

fn seccomp(helper: &Path) -> Seccomp {
    let mut result = Seccomp {
        support: Support::Full,
        listener: false,
        sync_wake_up: false,
    };
    let steps = match attempt(helper, Subject::Seccomp) {
        Ok(steps) => steps,
        Err(gap) => {
            result.support = Support::None { gaps: vec![gap] };
            return result;
        }
    };
    result.listener = steps.worked(Step::Listener) && is_available(Action::Notify).unwrap_or(false);
    result.sync_wake_up = steps.worked(Step::SyncWakeUp);
    result.support = match steps.first_failure(&[Step::Listener, Step::FilterEffective]) {
        None => Support::Full,
        // A filter without a listener still confines; only the mediator is missing.
        Some((Step::Listener, errno)) if errno != errno::ENOSYS => Support::Partial {
            gaps: vec![diagnose::listener(errno)],
        },
        Some((_, errno)) => Support::None {
            gaps: vec![diagnose::listener(errno)],
        },
    };
    result
}

fn namespaces(helper: &Path, facts: &Facts) -> (Check, Check) {
    /// Without these there is no sandbox to build.
    const FOUNDATION: [(Step, &str); 5] = [
        (Step::UserNamespace, "user namespace"),
        (Step::IdentityMap, "mapping of the user's id"),
        (Step::MountNamespace, "mount namespace"),
        (Step::PrivateMounts, "private mounts"),
        (Step::Tmpfs, "tmpfs"),
    ];
    const REST: [(Step, &str); 6] = [
        (Step::PidNamespace, "pid namespace"),
        (Step::NetworkNamespace, "network namespace"),
        (Step::IpcNamespace, "ipc namespace"),
        (Step::UtsNamespace, "uts namespace"),
        (Step::CgroupNamespace, "cgroup namespace"),
        (Step::NamespaceLimit, "namespace limit"),
    ];
    let steps = match attempt(helper, Subject::Namespaces) {
        Ok(steps) => steps,
        Err(gap) => {
            let none = Check {
                support: Support::None { gaps: vec![gap] },
            };
            return (none.clone(), none);
        }
    };
    for (step, what) in FOUNDATION {
        if let Some((_, errno)) = steps.first_failure(&[step]) {
            let none = Check {
                support: Support::None {
                    gaps: vec![diagnose::namespace(what, errno, facts)],
                },
            };
            return (none.clone(), none);
        }
    }
    let mut gaps: Vec<Gap> = REST
        .into_iter()
        .filter_map(|(step, what)| {
            let errno = steps.errno(step)?;
            (errno != 0).then(|| diagnose::namespace(what, errno, facts))
        })
        .collect();
    if let Some((_, errno)) = steps.first_failure(&[Step::Proc]) {
        gaps.push(diagnose::proc(errno, facts));
    }
    let overlay = match steps.first_failure(&[Step::Overlay]) {
        None => Support::Full,
        Some((_, errno)) => Support::None {
            gaps: vec![diagnose::overlay(errno)],
        },
    };
    (
        Check {
            support: Support::from_gaps(gaps),
        },
        Check { support: overlay },
    )
}

/// What a child reported.
struct Steps(HashMap<Step, i32>);

fn attempt(helper: &Path, subject: Subject) -> Result<Steps, Gap> {
    let broken = |reason: String| {
        Gap::new(
            subject.word(),
            reason,
            Some(
                /*hint*/ "reinstall stockade: its helper does not answer".to_owned(),
            ),
        )
    };
    let mut command = Command::new(helper);
    command.args([MARKER, subject.word()]);
    match deadline::run(command, PROBE_TIMEOUT) {
        Ended::Exited { stdout, .. } => {
            let steps: HashMap<Step, i32> = stdout
                .lines()
                .filter_map(Attempt::parse)
                .map(|attempt| (attempt.step, attempt.errno))
                .collect();
            if steps.is_empty() {
                return Err(broken(format!("`{}` gave no answer", helper.display())));
            }
            Ok(Steps(steps))
        }
        Ended::TimedOut => Err(broken(format!("`{}` hangs", helper.display()))),
        Ended::NotStarted(error) => Err(broken(format!(
            "`{}` can't be started: {error}",
            helper.display()
        ))),
    }
}

impl Steps {
    fn errno(&self, step: Step) -> Option<i32> {
        self.0.get(&step).copied()
    }

    fn worked(&self, step: Step) -> bool {
        self.errno(step) == Some(0)
    }

    /// The first of `steps` that failed; one that was not reached counts as refused.
    fn first_failure(&self, steps: &[Step]) -> Option<(Step, i32)> {
        steps
            .iter()
            .map(|step| (*step, self.errno(*step).unwrap_or(errno::EPERM)))
            .find(|(_, errno)| *errno != 0)
    }
}

impl Facts {
    fn read() -> Self {
        let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let effective_uid = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1));
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Self {
            uid: effective_uid.and_then(|id| id.parse().ok()).unwrap_or(0),
            filtered: field("Seccomp:") == Some("2"),
            no_new_privileges: field("NoNewPrivs:") == Some("1"),
            in_stockade: std::env::var_os(STOCKADE_SANDBOX_ACTIVE).is_some(),
            userns_clone: number("/proc/sys/kernel/unprivileged_userns_clone"),
            max_user_namespaces: number("/proc/sys/user/max_user_namespaces"),
            apparmor_restricts: number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
                == Some(1),
            in_container: ["/.dockerenv", "/run/.containerenv"]
                .iter()
                .any(|mark| Path::new(mark).exists()),
            chrooted: !mounts.is_empty()
                && !mounts
                    .lines()
                    .any(|line| line.split(' ').nth(4) == Some("/")),
            lsm: fs::read_to_string("/sys/kernel/security/lsm").ok(),
        }
    }
}

fn release() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_owned())
}

/// Only a bug gets here; the report must not turn it into "available".
fn broken_pair() -> (Check, Check) {
    let check = Check {
        support: Support::none("user namespace", "the probe itself failed", None),
    };
    (check.clone(), check)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(support: Support) -> Check {
        Check { support }
    }

    fn with(support: &Support) -> (Landlock, Seccomp) {
        (
            Landlock {
                support: support.clone(),
                abi: None,
                errata: 0,
            },
            Seccomp {
                support: support.clone(),
                listener: support.is_usable(),
                sync_wake_up: false,
            },
        )
    }

    #[test]
    fn the_tier_is_what_every_part_holds_up() {
        let none = Support::none("x", "y", None);
        let (landlock, seccomp) = with(&Support::Full);
        let (no_landlock, no_seccomp) = with(&none);
        let full = check(Support::Full);
        let nothing = check(none);
        let both = [Tier::Native, Tier::Landlock];
        assert_eq!(promised(&full, &landlock, &seccomp), both);
        assert_eq!(promised(&full, &no_landlock, &seccomp), [Tier::Native]);
        assert_eq!(promised(&nothing, &landlock, &seccomp), [Tier::Landlock]);
        assert_eq!(promised(&nothing, &no_landlock, &seccomp), []);
        assert_eq!(promised(&full, &landlock, &no_seccomp), []);
    }

    #[test]
    fn a_helper_that_does_not_answer_is_not_available() {
        let landlock = landlock(Path::new("/bin/true"), &Facts::default());
        assert!(!landlock.support.is_usable());
        let seccomp = seccomp(Path::new("/nonexistent/helper"));
        assert!(!seccomp.support.is_usable());
    }
}
