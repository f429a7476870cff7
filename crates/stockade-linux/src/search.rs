//! Where the program of a command may be.
//!
//! As shells search, not quite as `execvp(3)` does: that one answers `EACCES` as soon as one
//! directory of the search path can't be searched, and a name that is nowhere would then be *found
//! but not executable*. A policy may well close a directory of `PATH`.

use std::os::unix::ffi::OsStrExt;

use crate::plan::Text;

/// The search path of a command that has none.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Whether a program is looked for in the search path. One with a slash is itself.
pub fn is_searched(program: &Text) -> bool {
    !program.as_os_str().as_bytes().contains(&b'/')
}

/// The paths to try, in order: those in the absolute directories of the command's `PATH`. Relative
/// entries are skipped: they would mean whatever the working directory holds.
pub fn candidates(program: &Text, env: &[Text]) -> Vec<Text> {
    if !is_searched(program) {
        return vec![program.clone()];
    }
    let path = env
        .iter()
        .find_map(|entry| entry.as_os_str().as_bytes().strip_prefix(b"PATH="));
    let name = program.as_os_str().as_bytes();
    path.unwrap_or(DEFAULT_PATH)
        .split(|byte| *byte == b':')
        .filter(|directory| directory.first() == Some(&b'/'))
        .filter_map(|directory| Text::from_bytes([directory, b"/", name].concat()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(program: &str, env: &[&str]) -> Vec<String> {
        let text = |word: &str| Text::new(word).unwrap();
        let env: Vec<Text> = env.iter().map(|entry| text(entry)).collect();
        let found = candidates(&text(program), &env);
        let shown = |path: &Text| path.as_os_str().to_str().unwrap().to_owned();
        found.iter().map(shown).collect()
    }

    #[test]
    fn only_absolute_directories_are_searched() {
        let env = ["HOME=/home", "PATH=:/a:.:b:/c/"];
        assert_eq!(tried("ls", &env), ["/a/ls", "/c//ls"]);
        assert_eq!(tried("ls", &["PATH="]), [""; 0]);
    }

    #[test]
    fn without_a_path_the_usual_directories_are_searched() {
        let usual = ["/usr/local/bin/ls", "/usr/bin/ls", "/bin/ls"];
        assert_eq!(tried("ls", &["MYPATH=/a"]), usual);
    }

    #[test]
    fn a_program_with_a_slash_is_itself() {
        assert_eq!(tried("./ls", &["PATH=/a"]), ["./ls"]);
    }
}
