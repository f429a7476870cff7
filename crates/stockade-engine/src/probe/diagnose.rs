//! From an errno and what the machine says about itself to a reason and a remedy.
//!
//! The kernel answers most refusals with the same number, `EPERM`, whoever refused: a sysctl, an
//! `AppArmor` rule, a container's filter. The facts around it tell them apart. Pure, so that
//! machines that are not at hand can be described in tests.
#![cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only the Linux probe has something to diagnose")
)]

use super::Gap;

/// What the machine says about itself.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each true or not"
)]
pub(super) struct Facts {
    /// Effective user id.
    pub(super) uid: u32,
    /// `Seccomp` of `/proc/self/status`: 2 if a filter is on this process.
    pub(super) filtered: bool,
    /// `NoNewPrivs` of `/proc/self/status`.
    pub(super) no_new_privileges: bool,
    /// Whether another Stockade started this process, as its environment tells.
    pub(super) in_stockade: bool,
    /// `kernel.unprivileged_userns_clone`, a Debian patch.
    pub(super) userns_clone: Option<u64>,
    /// `user.max_user_namespaces`.
    pub(super) max_user_namespaces: Option<u64>,
    /// `kernel.apparmor_restrict_unprivileged_userns`, Ubuntu 23.10 and later.
    pub(super) apparmor_restricts: bool,
    /// Marks of a container.
    pub(super) in_container: bool,
    /// No mount on `/`: the kernel refuses user namespaces in a chroot (`user_namespaces(7)`).
    pub(super) chrooted: bool,
    /// The security modules in use, where they can be read.
    pub(super) lsm: Option<String>,
}

impl Facts {
    /// What a sandbox around this process is seen to hold.
    pub(super) fn held_outside(&self) -> Vec<&'static str> {
        [
            (self.in_stockade, "the policy of another Stockade"),
            (self.in_container, "a container"),
            (self.filtered, "a system-call filter"),
            (self.no_new_privileges, "no new privileges"),
            (
                self.max_user_namespaces == Some(0),
                "no further user namespaces",
            ),
        ]
        .into_iter()
        .filter_map(|(is_held, words)| is_held.then_some(words))
        .collect()
    }
}

/// The errors that say something, with the same numbers on every Linux architecture we build for.
pub(super) mod errno {
    pub(crate) const EPERM: i32 = 1;
    pub(crate) const EACCES: i32 = 13;
    pub(crate) const EBUSY: i32 = 16;
    pub(crate) const ENODEV: i32 = 19;
    pub(crate) const EINVAL: i32 = 22;
    pub(crate) const ENOSPC: i32 = 28;
    pub(crate) const ENOSYS: i32 = 38;
    pub(crate) const EOPNOTSUPP: i32 = 95;
}

use errno::{EACCES, EBUSY, EINVAL, ENODEV, ENOSPC, ENOSYS, EOPNOTSUPP, EPERM};

const SECCOMP_FIX: &str = /*hint*/
    "in a container: `--security-opt seccomp=unconfined`, or a profile that \
                           allows clone, unshare and mount";
const APPARMOR_FIX: &str = /*hint*/
    "install an AppArmor profile for stockade that has the rule `userns,`, \
                            or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`";

/// A user namespace, or a step inside it, was refused.
pub(super) fn namespace(what: &str, errno: i32, facts: &Facts) -> Gap {
    let refused = matches!(errno, EPERM | EACCES);
    let (reason, fix) = if refused && facts.apparmor_restricts && facts.uid != 0 {
        (
            "AppArmor restricts user namespaces of ordinary users".to_owned(),
            Some(APPARMOR_FIX),
        )
    } else if refused && facts.filtered {
        let who = if facts.in_container {
            "the container's seccomp filter refuses it (Docker's default one does)"
        } else {
            "a seccomp filter on this process refuses it"
        };
        (who.to_owned(), Some(SECCOMP_FIX))
    } else if refused && facts.userns_clone == Some(0) && facts.uid != 0 {
        (
            "kernel.unprivileged_userns_clone is 0".to_owned(),
            Some(/*hint*/ "`sysctl kernel.unprivileged_userns_clone=1`"),
        )
    } else if refused && facts.chrooted {
        (
            "this process is in a chroot, where the kernel refuses user namespaces".to_owned(),
            Some(
                /*hint*/ "use pivot_root instead of chroot to enter the tree",
            ),
        )
    } else if errno == ENOSPC && facts.max_user_namespaces == Some(0) {
        (
            "user.max_user_namespaces is 0".to_owned(),
            Some(
                /*hint*/
                "`sysctl user.max_user_namespaces=15000`, in every namespace around this one",
            ),
        )
    } else if errno == ENOSPC {
        (
            "the limit of user namespaces, or of 32 nested ones, is reached".to_owned(),
            Some(
                /*hint*/
                "raise user.max_user_namespaces here and in every namespace around this one",
            ),
        )
    } else if matches!(errno, ENOSYS | EINVAL) {
        (
            "the kernel was built without user namespaces".to_owned(),
            Some(/*hint*/ "use a kernel with CONFIG_USER_NS=y"),
        )
    } else {
        (text(errno), None)
    };
    Gap::new(what, reason, fix.map(str::to_owned))
}

/// A new `/proc` was refused.
pub(super) fn proc(errno: i32, facts: &Facts) -> Gap {
    if errno != EPERM {
        return namespace("new /proc", errno, facts);
    }
    Gap::new(
        "new /proc",
        "parts of /proc are masked here, so the kernel refuses an unmasked one",
        Some(
            /*hint*/ "in a container: `--security-opt systempaths=unconfined`".to_owned(),
        ),
    )
}

/// An overlay was refused.
pub(super) fn overlay(errno: i32) -> Gap {
    let (reason, fix) = match errno {
        ENODEV => (
            "the kernel has no overlayfs".to_owned(),
            Some(
                /*hint*/ "`modprobe overlay`, or a kernel with CONFIG_OVERLAY_FS",
            ),
        ),
        EPERM | EINVAL => (
            "the kernel refuses overlays in a user namespace".to_owned(),
            Some(/*hint*/ "use Linux 5.11 or later"),
        ),
        other => (text(other), None),
    };
    Gap::new("overlay mount", reason, fix.map(str::to_owned))
}

/// Landlock could not be used.
pub(super) fn landlock(errno: i32, facts: &Facts) -> Gap {
    let (reason, fix) = match errno {
        EOPNOTSUPP => (
            match &facts.lsm {
                Some(list) => format!("it is not among the security modules in use ({list})"),
                None => "it was not enabled when the kernel started".to_owned(),
            },
            Some(
                /*hint*/ "add `landlock` to the kernel parameter `lsm=`",
            ),
        ),
        ENOSYS if facts.filtered => (
            "the kernel has no Landlock, or a seccomp filter hides it".to_owned(),
            Some(
                /*hint*/
                "use Linux 5.13 or later; in a container: a newer runtime's seccomp profile",
            ),
        ),
        ENOSYS => (
            "the kernel has no Landlock".to_owned(),
            Some(
                /*hint*/ "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK=y",
            ),
        ),
        EPERM if facts.filtered => (
            "a seccomp filter on this process refuses it".to_owned(),
            Some(SECCOMP_FIX),
        ),
        other => (text(other), None),
    };
    Gap::new("landlock", reason, fix.map(str::to_owned))
}

/// A filter with a listener was refused.
pub(super) fn listener(errno: i32) -> Gap {
    let (reason, fix) = match errno {
        EBUSY => (
            "another supervisor already listens to this process".to_owned(),
            Some(/*hint*/ "start Stockade outside of that supervisor"),
        ),
        EINVAL | EOPNOTSUPP => (
            "the kernel has no seccomp listener".to_owned(),
            Some(/*hint*/ "use Linux 5.0 or later"),
        ),
        ENOSYS => (
            "the kernel has no seccomp".to_owned(),
            Some(/*hint*/ "use a kernel with CONFIG_SECCOMP_FILTER=y"),
        ),
        other => (text(other), None),
    };
    Gap::new("seccomp listener", reason, fix.map(str::to_owned))
}

fn text(errno: i32) -> String {
    std::io::Error::from_raw_os_error(errno).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_namespace(errno: i32, facts: &Facts) -> String {
        namespace("user namespace", errno, facts).reason
    }

    #[test]
    fn the_same_errno_has_many_causes() {
        let user = Facts {
            uid: 1000,
            ..Facts::default()
        };
        let ubuntu = Facts {
            apparmor_restricts: true,
            ..user.clone()
        };
        let docker = Facts {
            filtered: true,
            in_container: true,
            ..Facts::default()
        };
        let debian = Facts {
            userns_clone: Some(0),
            ..user.clone()
        };
        let chroot = Facts {
            chrooted: true,
            ..user.clone()
        };
        assert!(user_namespace(EPERM, &ubuntu).contains("AppArmor"));
        assert!(user_namespace(EACCES, &ubuntu).contains("AppArmor"));
        assert!(user_namespace(EPERM, &docker).contains("Docker"));
        assert!(user_namespace(EPERM, &debian).contains("unprivileged_userns_clone"));
        assert!(user_namespace(EPERM, &chroot).contains("chroot"));
        assert!(user_namespace(EPERM, &user).contains("not permitted"));
    }

    #[test]
    fn root_is_not_told_about_rules_for_ordinary_users() {
        let facts = Facts {
            uid: 0,
            apparmor_restricts: true,
            userns_clone: Some(0),
            ..Facts::default()
        };
        assert!(!user_namespace(EPERM, &facts).contains("AppArmor"));
        assert!(!user_namespace(EPERM, &facts).contains("unprivileged"));
    }

    #[test]
    fn a_limit_of_zero_is_named() {
        let zero = Facts {
            max_user_namespaces: Some(0),
            ..Facts::default()
        };
        assert_eq!(
            user_namespace(ENOSPC, &zero),
            "user.max_user_namespaces is 0"
        );
        assert!(user_namespace(ENOSPC, &Facts::default()).contains("nested"));
    }

    #[test]
    fn landlock_missing_disabled_and_hidden_are_told_apart() {
        let lsm = Facts {
            lsm: Some("capability,yama".to_owned()),
            ..Facts::default()
        };
        let filtered = Facts {
            filtered: true,
            ..Facts::default()
        };
        assert!(
            landlock(EOPNOTSUPP, &lsm)
                .reason
                .contains("capability,yama")
        );
        assert!(landlock(ENOSYS, &filtered).reason.contains("seccomp"));
        assert!(
            !landlock(ENOSYS, &Facts::default())
                .reason
                .contains("seccomp")
        );
    }

    #[test]
    fn a_masked_proc_is_named() {
        assert!(proc(EPERM, &Facts::default()).reason.contains("masked"));
        assert!(listener(EBUSY).reason.contains("supervisor"));
        assert!(overlay(ENODEV).reason.contains("overlayfs"));
    }
}
