//! The data and files that requests send, by their options.

use stockade_shell::Word;

use super::requests::TAKES_VALUE;
use crate::words::Words;

/// Options whose value is a file to send.
const FILE_OPTIONS: &[&str] = &["-T", "--upload-file", "--post-file", "--body-file", "-post"];
/// Options whose value is data, or `@` and a file.
static DATA_OPTIONS: Words = Words::new("shell/sent data-options");

/// Something in an upload.
pub(super) struct Sent<'w> {
    /// The word that names a file, and the file.
    pub(super) file: Option<(&'w Word, String)>,
    /// It is the body of the request, not a part or an upload.
    pub(super) body: bool,
}

/// The data and files that a command's options send.
pub(super) fn sent_data<'w>(name: &str, args: &'w [Word]) -> Vec<Sent<'w>> {
    let mut out = Vec::new();
    for (at, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        let next = args.get(at + 1);
        let long = text.split_once('=').filter(|_| text.starts_with("--"));
        // `-d@file`, `-T/path`
        let short = (text.len() > 2 && !text.starts_with("--")).then(|| text.split_at_checked(2));
        let short = short
            .flatten()
            .filter(|(flag, _)| FILE_OPTIONS.contains(flag) || DATA_OPTIONS.contains(flag));
        let (flag, value, holder) = match long.or(short) {
            Some((flag, value)) => (flag, value, word),
            None => match next {
                Some(next) => (text, next.text.as_str(), next),
                None => (text, "", word),
            },
        };
        // `-sF value`: the last of a cluster.
        let cluster = flag.len() > 2
            && flag.bytes().skip(1).all(|b| b.is_ascii_alphabetic())
            && flag.starts_with('-')
            // `-XPOST` is one option with its value.
            && !flag[1..flag.len() - 1].contains(|c| TAKES_VALUE.contains(c));
        let last = match flag.bytes().last().filter(|_| cluster) {
            Some(b'F') => "-F",
            Some(b'T') => "-T",
            Some(b'd') => "-d",
            _ => flag,
        };
        let flag = last;
        // For `wget` that is how long to wait.
        let waits = flag == "-T" && name.starts_with("wget");
        if FILE_OPTIONS.contains(&flag) && !waits {
            let file = Some((holder, value.to_owned()));
            out.push(Sent { file, body: false });
        } else if DATA_OPTIONS.contains(&flag) {
            // `@file`, `name=@file`, `name=<file`, `name@file`; also more than one of a form.
            let file = value.split_once('@').map(|(_, file)| file);
            let file = file.or_else(|| value.split_once("=<").map(|(_, file)| file));
            let file = file.map(|file| file.split(';').next().unwrap_or(file).to_owned());
            let file = file.map(|file| (holder, file));
            let body = !matches!(flag, "-F" | "--form");
            out.push(Sent { file, body });
        }
    }
    out
}
