//! The paths that macOS really has. The kernel compares with the path of the file that was
//! reached, links followed, so a rule about `/tmp` would never match.

use stockade_rules::{AbsPath, PathGlob};

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

/// The same for a pattern whose first names are plain.
pub(super) fn canonical_glob(glob: &PathGlob) -> PathGlob {
    let start = glob.literal_prefix();
    let moved = LINKS.iter().find_map(|(link, target)| {
        start.as_path().strip_prefix(link).ok()?;
        let rest = glob.as_str().strip_prefix(link)?;
        PathGlob::new(&format!("{target}{rest}"), &AbsPath::root()).ok()
    });
    moved.unwrap_or_else(|| glob.clone())
}
