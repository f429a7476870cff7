//! What a container does to directories of the host that it is given.

use stockade_shell::{Command, Word};

use super::Judge;
use super::gather::is_others;
use crate::paths::Kind;

/// Directories given to one container that are looked at.
const MOST: usize = 8;

impl Judge<'_> {
    /// `docker run -v ~:/h alpine rm -rf /h`: judged as what it does to the host.
    pub(super) fn does_to_mounted(&mut self, name: &str, command: &Command) {
        let args = command.args();
        let runs = |word: &Word| matches!(word.text.as_str(), "run" | "create");
        let engine = matches!(name, "docker" | "podman" | "nerdctl");
        if !engine || !args.iter().take(4).any(runs) {
            return;
        }
        let mounts: Vec<(&str, &str)> = args
            .iter()
            .filter_map(|word| mount(&word.text))
            .filter(|(source, _)| {
                let place = self.place(source);
                is_others(&place) || place.is(Kind::System)
            })
            .take(MOST)
            .collect();
        let Some((_, inner)) = mounts.first().and(args.split_last()) else {
            return;
        };
        // A command line in one word, or the words after the image, whatever that is called.
        let line = args
            .iter()
            .find(|word| word.text.contains(' '))
            .map(|word| word.text.clone());
        let words = || {
            let from = inner.iter().rposition(|word| mount(&word.text).is_some());
            let rest = args.get(from.map_or(0, |at| at + 1)..).unwrap_or_default();
            let texts: Vec<&str> = rest.iter().skip(1).map(|word| word.text.as_str()).collect();
            texts.join(" ")
        };
        let line = line.unwrap_or_else(words);
        for part in line.split(['\n', ';']).flat_map(|part| part.split("&&")) {
            let mut told = part.to_owned();
            for (source, target) in &mounts {
                told = told.replace(target, source);
            }
            if told != part {
                self.analysis
                    .command_text(&told, command.span, self.findings);
            }
        }
    }
}

/// `-v source:target[:ro]`, with paths on both sides.
fn mount(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix("--volume=").unwrap_or(text);
    let (source, target) = text.split_once(':')?;
    let target = target.split(':').next().unwrap_or(target);
    let paths = source.starts_with(['/', '~', '$']) && target.starts_with('/');
    (paths && target.len() > 1).then_some((source, target))
}
