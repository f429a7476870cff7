//! Files that a script itself writes: what it reads from them later is known.

use crate::model::{Command, RedirectOp, Stdin, Word, WrittenFile};
use crate::parameter;
use crate::wrappers::{self, Inner};

use super::Reader;

impl Reader<'_> {
    /// Remembers constant text written to a file, in case it is run later.
    pub(super) fn note_files(&mut self, command: &Command, output: Option<&Word>) {
        if command.name() == Some("sed") {
            self.edit_file(command);
        }
        // Unknown parts stay in it as placeholders, which read as what they stand for.
        let mut text = output.map(|output| output.text.clone());
        let mut paths: Vec<&Word> = command
            .redirects
            .iter()
            .filter(|redirect| redirect.op.writes() && redirect.fd.is_none_or(|fd| fd == 1))
            .map(|redirect| &redirect.target)
            .collect();
        if command.name() == Some("tee") {
            let Stdin::Text(input) = &command.stdin else {
                return;
            };
            text = Some(input.text.clone());
            paths.extend(command.args());
        }
        let Some(text) = text else {
            return;
        };
        let here = command
            .redirects
            .iter()
            .find(|redirect| redirect.op == RedirectOp::HereDocument);
        let span = here.map_or(command.span, |redirect| redirect.target.span);
        // `$TF/setup.py`: what `mktemp` made stays the same throughout.
        let made = |word: &&Word| {
            let unknown =
                |hole: &crate::Hole| !matches!(hole.kind, crate::HoleKind::Substitution { .. });
            !word.holes.iter().any(unknown)
        };
        for path in paths
            .into_iter()
            .filter(made)
            .map(|word| word.text.as_str())
        {
            let path = path.strip_prefix("./").unwrap_or(path).to_owned();
            let append = command
                .redirects
                .iter()
                .any(|redirect| redirect.op == RedirectOp::Append);
            let old = self.files.remove(&path).filter(|_| append);
            let mut word = old.unwrap_or_default();
            if word.text.len() + text.len() < self.limits.nested_bytes {
                word.text.push_str(&text);
                word.span = span;
                let file = WrittenFile {
                    path: path.clone(),
                    text: word.clone(),
                    span: command.span,
                };
                self.script.files.push(file);
                self.files.insert(path, word);
            }
        }
    }

    /// What `cat` prints of files that the script itself has written, by name or by pattern.
    pub(super) fn written_text(&self, command: &Command) -> Option<Word> {
        if command.name() != Some("cat") || self.files.is_empty() {
            return None;
        }
        let mut whole: Option<Word> = None;
        let mut many = false;
        for arg in command.args() {
            let pattern = arg.constant()?;
            let fits = |path: &&String| match arg.literal() {
                Some(name) => *path == name,
                None => parameter::fits(pattern.as_bytes(), path.as_bytes(), Some(b'/')),
            };
            let mut paths: Vec<&String> = self.files.keys().filter(fits).collect();
            paths.sort();
            for path in paths {
                let text = &self.files[path];
                many |= whole.is_some();
                whole = Some(wrappers::concat(whole.take().unwrap_or_default(), text));
            }
        }
        whole.map(|mut whole| {
            whole.span = command.span;
            whole.spelling.computed |= many;
            whole
        })
    }

    /// `exec 3<<< text`: what a descriptor gives to whoever reads it.
    pub(super) fn note_descriptors(&mut self, command: &Command) {
        for redirect in &command.redirects {
            let here = matches!(
                redirect.op,
                RedirectOp::HereString | RedirectOp::HereDocument
            );
            if let (true, Some(fd)) = (here, redirect.fd) {
                let path = format!("/dev/fd/{fd}");
                self.files.insert(path, redirect.target.clone());
            }
        }
    }

    /// `sed -i script file`, for a file that the script has written.
    pub(super) fn edit_file(&mut self, command: &Command) {
        let args: Option<Vec<&str>> = command.args().iter().map(Word::literal).collect();
        let Some(args) = args.filter(|args| args.first().is_some_and(|arg| arg.starts_with("-i")))
        else {
            return;
        };
        let [_, script @ .., file] = args.as_slice() else {
            return;
        };
        let path = file.strip_prefix("./").unwrap_or(file);
        if let Some(word) = self.files.get_mut(path)
            && let Some(text) = crate::sed::output(script, &word.text)
        {
            word.text = text;
        }
    }

    /// What a command without words prints: nothing, or the file of `$(<file)`, whose text is
    /// known if the script wrote it.
    pub(super) fn printed(&self, command: &Command) -> Option<Word> {
        let read = command.redirects.iter().rev().find(|redirect| {
            redirect.op == RedirectOp::Read && redirect.fd.is_none_or(|fd| fd == 0)
        });
        let Some(redirect) = read else {
            return Some(Word::default());
        };
        let path = redirect.target.literal()?;
        let path = path.strip_prefix("./").unwrap_or(path);
        self.files.get(path).cloned()
    }

    /// What a command runs from a file that the script itself has written.
    pub(super) fn read_from_file(&self, command: &Command) -> Vec<Inner> {
        if self.files.is_empty() {
            return Vec::new();
        }
        let descriptor = || {
            let mut redirects = command.redirects.iter();
            let input = redirects.find(|redirect| redirect.op == RedirectOp::DuplicateIn)?;
            let shell = command.name().is_some_and(wrappers::is_shell);
            shell.then(|| format!("/dev/fd/{}", input.target.text))
        };
        let path = wrappers::script_file(command).map(str::to_owned);
        let Some(path) = path.or_else(descriptor) else {
            return Vec::new();
        };
        let Some(text) = self.files.get(path.strip_prefix("./").unwrap_or(&path)) else {
            return Vec::new();
        };
        wrappers::run_text(command, text).into_iter().collect()
    }
}
