//! Where a text stands, which decides what a path in it means.

use std::ffi::OsStr;

use stockade_rules::{
    AbsPath, Access, GlobError, Kind, Origin, PathError, PathGlob, PathRule, Pattern,
};

use super::sources::Loader;

/// What relative paths, `~` and patterns are read against.
pub(super) struct Place<'a> {
    /// Relative text is below this directory.
    pub(super) base: &'a AbsPath,
    /// `~`.
    pub(super) home: Option<&'a AbsPath>,
    /// Tells a file called `[id].ts` from a pattern.
    pub(super) loader: &'a dyn Loader,
}

/// Why a text is neither a path nor a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathTextError {
    /// Not a path.
    #[error(transparent)]
    Path(#[from] PathError),
    /// Not a pattern.
    #[error(transparent)]
    Glob(#[from] GlobError),
}

impl Place<'_> {
    /// Reads a plain path.
    pub(super) fn path(&self, text: &OsStr) -> Result<AbsPath, PathError> {
        AbsPath::resolve(text, self.base, self.home)
    }

    /// Reads a path or a pattern and adds what was stated about it.
    ///
    /// A text with wildcards that exists as it stands is that path. A denial then holds for the
    /// pattern as well: otherwise code inside could void `deny_read = ["**/*.env"]` for the next
    /// run by making a file of that very name.
    pub(super) fn add_rules(
        &self,
        text: &OsStr,
        access: Access,
        origin: Origin,
        rules: &mut Vec<PathRule>,
    ) -> Result<(), PathTextError> {
        let path = self.path(text)?;
        let pattern = PathGlob::is_pattern(text.as_encoded_bytes()).then(|| text.to_str());
        let Some(pattern) = pattern.flatten() else {
            rules.push(PathRule::stated(Pattern::Subtree(path), access, origin));
            return Ok(());
        };
        let rule = |pattern| PathRule::stated(pattern, access, origin.clone());
        let literal = self.loader.exists(&path);
        let denies = [Kind::Read, Kind::Write]
            .iter()
            .any(|kind| access.allows(*kind) == Some(false));
        if literal {
            rules.push(rule(Pattern::Subtree(path)));
        }
        if !literal || denies {
            match self.glob(pattern) {
                Ok(glob) => rules.push(rule(Pattern::Glob(glob))),
                // `[id` is a fine name for a file and no pattern at all.
                Err(GlobError::OpenClass(_)) if literal => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn glob(&self, text: &str) -> Result<PathGlob, GlobError> {
        match (text.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => PathGlob::new(rest, home),
            _ => PathGlob::new(text, self.base),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    struct OneFile(&'static str);

    impl Loader for OneFile {
        fn read(&self, _: &AbsPath) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn exists(&self, path: &AbsPath) -> bool {
            path.as_path().as_os_str() == self.0
        }
    }

    fn patterns(text: &str, access: Access, file: &'static str) -> Vec<String> {
        let (base, home) = (AbsPath::new("/w*").unwrap(), AbsPath::new("/h").unwrap());
        let place = Place {
            base: &base,
            home: Some(&home),
            loader: &OneFile(file),
        };
        let (origin, mut rules) = (Origin::fixed("test"), Vec::new());
        place
            .add_rules(OsStr::new(text), access, origin, &mut rules)
            .unwrap();
        rules
            .iter()
            .map(|rule| match &rule.pattern {
                Pattern::Subtree(path) => format!("path {path}"),
                Pattern::Glob(glob) => format!("glob {glob}"),
            })
            .collect()
    }

    #[test]
    fn wildcards_make_a_pattern_unless_the_file_exists() {
        assert_eq!(patterns("src", Access::Read, ""), ["path /w*/src"]);
        assert_eq!(patterns("*.rs", Access::Read, ""), ["glob /w\\*/*.rs"]);
        assert_eq!(patterns("~/*.rs", Access::Read, ""), ["glob /h/*.rs"]);
        assert_eq!(
            patterns("/w/[id].ts", Access::Write, "/w/[id].ts"),
            ["path /w/[id].ts"]
        );
    }

    #[test]
    fn a_denial_keeps_the_pattern_beside_the_file() {
        assert_eq!(
            patterns("/w/**/*.env", Access::DenyRead, "/w/**/*.env"),
            ["path /w/**/*.env", "glob /w/**/*.env"]
        );
        assert_eq!(patterns("/w/[id", Access::Deny, "/w/[id"), ["path /w/[id"]);
    }

    #[test]
    fn what_is_neither_is_refused() {
        let base = AbsPath::root();
        let place = Place {
            base: &base,
            home: None,
            loader: &OneFile(""),
        };
        for text in ["", "~/x", "~/*", "~root/*", "a\0b", "[a", &"*/".repeat(70)] {
            let (origin, mut rules) = (Origin::fixed("test"), Vec::new());
            let added = place.add_rules(OsStr::new(text), Access::Read, origin, &mut rules);
            assert!(added.is_err(), "{text:?}");
        }
    }
}
