//! Homes beside the one that `HOME` names: who changes a variable does not move the credentials.

use stockade_rules::AbsPath;

/// Homes of accounts that nobody logs in to lie below these, and hold no credentials.
#[cfg(any(test, target_os = "linux"))]
const SYSTEM: &[&str] = &[
    "/bin",
    "/dev",
    "/etc",
    "/nonexistent",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/var/cache",
    "/var/lib",
    "/var/run",
    "/var/spool",
];

/// The homes that exist and whose files this user could read, without `home`.
#[cfg(target_os = "linux")]
pub(super) fn others(home: Option<&AbsPath>) -> Vec<AbsPath> {
    use std::os::unix::fs::MetadataExt;
    // The owner is the effective user; root, if this process must not be looked into (proc(5)).
    let user = std::fs::metadata("/proc/self").map_or(0, |data| data.uid());
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut homes = in_passwd(&passwd, (user != 0).then_some(user));
    if user == 0 {
        // Users that another service knows, such as LDAP, have their homes here as well.
        let listed = std::fs::read_dir("/home").into_iter().flatten().flatten();
        homes.extend(listed.filter_map(|entry| AbsPath::new(entry.path()).ok()));
        homes.extend(AbsPath::new("/root"));
    }
    homes.sort();
    homes.dedup();
    homes.retain(|other| Some(other) != home && other.as_path().is_dir());
    homes
}

/// Elsewhere the environment is all that is asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn others(_: Option<&AbsPath>) -> Vec<AbsPath> {
    Vec::new()
}

#[cfg(any(test, target_os = "linux"))]
/// The homes in a text as `passwd(5)` has it, of one user or of all.
fn in_passwd(text: &str, user: Option<u32>) -> Vec<AbsPath> {
    let home = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let number: u32 = fields.next()?.parse().ok()?;
        let home = AbsPath::new(fields.nth(2)?).ok()?;
        let system = || SYSTEM.iter().any(|place| home.as_path().starts_with(place));
        let is_meant = match user {
            Some(user) => number == user,
            None => !system(),
        };
        (is_meant && home != AbsPath::root()).then_some(home)
    };
    text.lines().filter_map(home).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/bin/false\n\
                          ann:x:1000:1000:Ann,,,:/home/ann:/bin/sh\nbad\nweb:x:33:33::/srv/web:/x\n\
                          nobody:x:65534:65534::/:/bin/false\nrel:x:7:7::home:/x\n";

    fn homes(user: Option<u32>) -> Vec<String> {
        let homes = in_passwd(PASSWD, user);
        homes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_user_has_one_home_and_root_can_read_all() {
        assert_eq!(homes(Some(1000)), ["/home/ann"]);
        assert_eq!(homes(Some(1)), ["/usr/sbin"]);
        assert_eq!(homes(Some(65534)), [""; 0]);
        assert_eq!(homes(None), ["/root", "/home/ann", "/srv/web"]);
    }
}
