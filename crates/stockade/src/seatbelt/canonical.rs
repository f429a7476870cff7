//! The paths that macOS really has. The kernel compares with the path of the file that was
//! reached, links followed, so a rule about `/tmp` would never match.

use stockade_rules::AbsPath;

/// Links at the top of every macOS system.
const LINKS: &[(&str, &str)] = &[
    ("/etc", "/private/etc"),
    ("/tmp", "/private/tmp"),
    ("/var", "/private/var"),
];

/// The path with the system's own links followed.
pub(super) fn canonical(path: &AbsPath) -> AbsPath {
    for (link, target) in LINKS {
        if let Ok(rest) = path.as_path().strip_prefix(link)
            && let Ok(target) = AbsPath::new(target)
        {
            return target.join(rest).unwrap_or_else(|_| path.clone());
        }
    }
    path.clone()
}
