//! Any bytes as a redirect file: what is followed is a piece of the text without a NUL byte, and
//! never a line end at its end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stockade_rules::protected::git::{ConfigContext, redirect, sequencer};
use stockade_rules::protected::{Judge, Outcome};

fuzz_target!(|data: &[u8]| {
    for path in [redirect::git_file(data), redirect::path_line(data)]
        .into_iter()
        .flatten()
    {
        assert!(!path.is_empty() && !path.contains(&0));
        let is_piece = data.windows(path.len()).any(|window| window == path);
        assert!(is_piece || path == b"." && data.contains(&0));
    }
    if redirect::git_file(data).is_some() {
        assert!(data.starts_with(b"gitdir: "));
    }
    let context = ConfigContext::new();
    let outcome = Judge::Redirect.content(b"", data, &context);
    let expected = redirect::git_file(data).map_or(Outcome::Pass, Outcome::LeadsTo);
    assert_eq!(outcome, Ok(expected));
    assert!(Judge::Never.content(data, data, &context).is_err());
    let _ = sequencer::judge_strategy(data);
    let _ = sequencer::judge_author_script(data);
});
