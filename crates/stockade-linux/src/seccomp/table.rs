//! Names and numbers of system calls, for each architecture a process on the machine can enter.
//!
//! A filter is only as good as its numbers. A name nobody knows is an error, never a rule that
//! matches nothing: a typo in a restriction must not disappear. A name that exists on *some*
//! architecture is accepted everywhere and matches nothing where the call does not exist (`umount`
//! is a call of i386 alone, `open` of x86 alone).
//!
//! The tables end with Linux 6.18. What a later kernel adds has no name here, and the filter
//! answers such numbers as an older kernel would (see [`FilterSpec::unknown`]): a list of refused
//! names can't know that a `fchroot` will be added beside `chroot`.
//!
//! [`FilterSpec::unknown`]: super::FilterSpec::unknown

use serde::{Deserialize, Serialize};

mod aarch64;
mod i386;
mod x32;
mod x86_64;

/// Set in the number of every x32 call; the audit architecture is that of `x86_64`.
pub const X32_BIT: u32 = 0x4000_0000;

/// A system call interface: one numbering of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Arch {
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit x86. A 64-bit process enters it with `int 0x80`.
    I386,
    /// `x86_64` with 32-bit pointers: its audit architecture and [`X32_BIT`].
    X32,
    /// 64-bit x86.
    #[serde(rename = "x86_64")]
    X86_64,
}

impl Arch {
    /// All interfaces with a table here.
    pub const ALL: [Self; 4] = [Self::Aarch64, Self::I386, Self::X32, Self::X86_64];

    /// The interface this program was built for, if there is a table for it.
    pub const fn native() -> Option<Self> {
        if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
            Some(Self::X86_64)
        } else {
            None
        }
    }

    /// The value of `seccomp_data.arch` (`AUDIT_ARCH_*` in `linux/audit.h`).
    pub const fn audit(self) -> u32 {
        const EM_386: u32 = 3;
        const EM_X86_64: u32 = 62;
        const EM_AARCH64: u32 = 183;
        const LE: u32 = 0x4000_0000;
        const IS_64_BIT: u32 = 0x8000_0000;
        match self {
            Self::Aarch64 => EM_AARCH64 | LE | IS_64_BIT,
            Self::I386 => EM_386 | LE,
            Self::X32 | Self::X86_64 => EM_X86_64 | LE | IS_64_BIT,
        }
    }

    /// The number of a call, if it exists on this architecture.
    pub fn number(self, name: &str) -> Option<u32> {
        let table = self.table();
        let at = table.binary_search_by_key(&name, |&(name, _)| name).ok()?;
        table.get(at).map(|&(_, number)| number)
    }

    /// The name of a call, if this architecture has one with that number.
    pub fn name(self, number: u32) -> Option<&'static str> {
        self.table()
            .iter()
            .find(|entry| entry.1 == number)
            .map(|&(name, _)| name)
    }

    /// Every call of this architecture, sorted by name.
    pub fn table(self) -> &'static [(&'static str, u32)] {
        match self {
            Self::Aarch64 => aarch64::NUMBERS,
            Self::I386 => i386::NUMBERS,
            Self::X32 => x32::NUMBERS,
            Self::X86_64 => x86_64::NUMBERS,
        }
    }
}

/// Whether any architecture has a call of this name.
pub fn is_known(name: &str) -> bool {
    Arch::ALL.iter().any(|arch| arch.number(name).is_some())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tables_are_sorted_and_without_duplicates() {
        for arch in Arch::ALL {
            let table = arch.table();
            assert!(
                table.windows(2).all(|pair| pair[0].0 < pair[1].0),
                "{arch:?} by name"
            );
            let numbers: BTreeSet<u32> = table.iter().map(|entry| entry.1).collect();
            assert_eq!(numbers.len(), table.len(), "{arch:?} has a number twice");
        }
    }

    #[test]
    fn tables_reach_linux_6_18() {
        for (arch, calls) in [
            (Arch::Aarch64, 325),
            (Arch::I386, 459),
            (Arch::X32, 372),
            (Arch::X86_64, 383),
        ] {
            assert_eq!(arch.table().len(), calls, "{arch:?}");
            let last = arch.number("file_setattr").unwrap();
            assert_eq!(last & !X32_BIT, 469, "{arch:?}");
            assert_eq!(arch.name(last), Some("file_setattr"));
        }
    }

    #[test]
    fn numbers_differ_where_architectures_do() {
        let of = |name| Arch::ALL.map(|arch| arch.number(name));
        assert_eq!(
            of("openat"),
            [Some(56), Some(295), Some(X32_BIT + 257), Some(257)]
        );
        assert_eq!(
            of("ioctl"),
            [Some(29), Some(54), Some(X32_BIT + 514), Some(16)]
        );
        assert_eq!(of("open"), [None, Some(5), Some(X32_BIT + 2), Some(2)]);
        assert_eq!(of("umount"), [None, Some(22), None, None]);
        assert!(is_known("umount"));
        assert!(!is_known("ptraec"));
        assert!(!is_known(""));
    }

    /// The C library's view of the same numbers, for every call a profile names.
    #[test]
    fn numbers_agree_with_libc() {
        macro_rules! same {
            ($($call:ident)*) => {
                $(assert_eq!(
                    Arch::native().unwrap().number(
                        stringify!($call).strip_prefix("SYS_").unwrap()
                    ).map(i64::from),
                    Some(libc::$call),
                    stringify!($call)
                );)*
            };
        }
        same!(SYS_ptrace SYS_mount SYS_umount2 SYS_init_module SYS_finit_module SYS_delete_module
            SYS_kexec_load SYS_bpf SYS_perf_event_open SYS_userfaultfd SYS_process_vm_readv
            SYS_process_vm_writev SYS_reboot SYS_swapon SYS_swapoff SYS_settimeofday
            SYS_clock_settime SYS_adjtimex SYS_add_key SYS_request_key SYS_keyctl SYS_acct
            SYS_quotactl SYS_unshare SYS_setns SYS_personality SYS_clone SYS_clone3 SYS_ioctl
            SYS_prctl SYS_socket SYS_socketpair SYS_seccomp SYS_open_tree SYS_move_mount
            SYS_fsopen SYS_fsconfig SYS_fsmount SYS_fspick SYS_mount_setattr SYS_pivot_root
            SYS_chroot SYS_open_by_handle_at SYS_name_to_handle_at SYS_io_uring_setup
            SYS_io_uring_enter SYS_io_uring_register SYS_pidfd_getfd SYS_process_madvise SYS_kcmp
            SYS_syslog SYS_clock_adjtime SYS_fanotify_init SYS_vhangup SYS_move_pages
            SYS_migrate_pages SYS_openat SYS_openat2 SYS_mkdirat SYS_renameat2 SYS_linkat
            SYS_symlinkat SYS_unlinkat SYS_mknodat SYS_fchmodat SYS_fchownat SYS_truncate
            SYS_connect SYS_bind SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_quotactl_fd
            SYS_read SYS_write SYS_execve);
        #[cfg(target_arch = "x86_64")]
        same!(SYS_open SYS_creat SYS_mkdir SYS_rename SYS_link SYS_symlink SYS_unlink SYS_rmdir
            SYS_mknod SYS_chmod SYS_chown SYS_lchown SYS_modify_ldt SYS_iopl SYS_ioperm
            SYS_kexec_file_load);
    }
}
