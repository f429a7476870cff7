//! Files that tell git where its directory is: `.git` as a file, `commondir` and `gitdir`.

/// The path in a `.git` file, relative to its directory; `None` if git refuses the file.
///
/// As git's `read_gitfile_gently`: `gitdir: `, a path, and line ends that are dropped. Nothing
/// but a line end at the end is dropped, and a line end inside is part of the path.
pub fn git_file(text: &[u8]) -> Option<&[u8]> {
    const MAX_BYTES: usize = 1 << 20;
    let path = text.strip_prefix(b"gitdir: ")?;
    if text.len() > MAX_BYTES {
        return None;
    }
    path_line(path)
}

/// The path in a `commondir` or `gitdir` file, relative to its directory; `None` if it is empty.
pub fn path_line(text: &[u8]) -> Option<&[u8]> {
    let last = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    // Git looks for the line ends before it takes the path as a C string: a path that begins with
    // a NUL byte is not refused and leads to the directory itself.
    match text[..=last].split(|byte| *byte == 0).next() {
        None | Some([]) => Some(b"."),
        path => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_file_names_a_directory() {
        assert_eq!(git_file(b"gitdir: ../r/.git\n"), Some(&b"../r/.git"[..]));
        assert_eq!(git_file(b"gitdir: a b\r\n\n"), Some(&b"a b"[..]));
        assert_eq!(git_file(b"gitdir:  a \n"), Some(&b" a "[..]));
        assert_eq!(git_file(b"gitdir: a\nb\n"), Some(&b"a\nb"[..]));
        assert_eq!(git_file(b"gitdir: a\0b\n"), Some(&b"a"[..]));
        assert_eq!(git_file(b"gitdir: \0b\n"), Some(&b"."[..]));
        for text in [
            &b""[..],
            b"gitdir: ",
            b"gitdir: \n",
            b"gitdir:x",
            b" gitdir: x",
            b"x",
        ] {
            assert_eq!(git_file(text), None);
        }
    }

    #[test]
    fn a_path_alone() {
        assert_eq!(path_line(b"../..\n"), Some(&b"../.."[..]));
        assert_eq!(path_line(b"\n"), None);
        assert_eq!(path_line(b""), None);
    }
}
