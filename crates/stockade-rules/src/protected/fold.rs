//! Names that a directory without regard to case takes for the same.
//!
//! Directories of ext4, f2fs and tmpfs can fold case (`chattr +F`). The kernel then drops ignorable
//! code points and compares by Unicode's full case folding (`fs/unicode`, NFDICF): `.g\u{200c}it`
//! is `.git`, and `con\u{fb01}g` is `config`. Nobody gives such names to ordinary files, so they
//! count as protected in every directory.

/// Whether a directory that folds case takes `component` for `name`, which is ASCII.
pub fn is_same_name(name: &str, component: &[u8]) -> bool {
    name.as_bytes().eq_ignore_ascii_case(component)
        || !component.is_ascii() && folds_to(name, component)
}

fn folds_to(name: &str, component: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(component) else {
        // The kernel compares such a name byte by byte.
        return false;
    };
    let mut rest = name.as_bytes();
    for letter in text.chars().filter(|letter| !is_ignorable(*letter)) {
        let mut buffer = [0; 4];
        let folded = match letter {
            '\u{df}' | '\u{1e9e}' => "ss",
            '\u{17f}' => "s",
            '\u{212a}' => "k",
            '\u{fb00}' => "ff",
            '\u{fb01}' => "fi",
            '\u{fb02}' => "fl",
            '\u{fb03}' => "ffi",
            '\u{fb04}' => "ffl",
            '\u{fb05}' | '\u{fb06}' => "st",
            other => other.encode_utf8(&mut buffer),
        };
        match rest.split_at_checked(folded.len()) {
            Some((start, end)) if start.eq_ignore_ascii_case(folded.as_bytes()) => rest = end,
            _ => return false,
        }
    }
    rest.is_empty()
}

/// `Default_Ignorable_Code_Point` of Unicode.
const fn is_ignorable(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_as_the_kernel_folds_them() {
        for (name, written) in [
            (".git", ".GIT"),
            (".git", ".g\u{200c}it"),
            (".git", "\u{feff}.Git\u{e0001}"),
            ("hooks", "hoo\u{212a}s"),
            (".bashrc", ".ba\u{17f}hrc"),
            ("config", "con\u{fb01}g"),
            (".bash_profile", ".bash_pro\u{fb01}LE"),
            ("author-script", "AUTHOR-\u{17f}cript"),
            ("x-ss", "x-\u{df}"),
        ] {
            assert!(is_same_name(name, written.as_bytes()), "{written}");
        }
    }

    #[test]
    fn other_names_stay_other_names() {
        for (name, written) in [
            // A dotless i has no other case, a dotted capital one folds to two code points.
            (".git", ".g\u{131}t"),
            (".git", ".g\u{130}t"),
            (".git", ".gi\u{ff54}"),
            (".git", ".gi"),
            (".git", ".gitx\u{200c}"),
            ("config", "con\u{fb02}g"),
            ("hooks", "h\u{f6}oks"),
        ] {
            assert!(!is_same_name(name, written.as_bytes()), "{written}");
        }
        assert!(!is_same_name(".git", b".gi\xfft"));
    }
}
