//! Calls that are told by what they are given, whatever object they belong to.

use super::judge::Judge;
use super::options::leaves;
use super::places::is_own;
use super::value::{Args, Value};
use crate::result::Span;
use crate::rule::Rule;

impl Judge<'_> {
    /// What the texts among arguments ask for.
    pub(super) fn told(&mut self, name: &str, args: &Args, span: Span) {
        if !self.brief {
            return;
        }
        if matches!(name, "SetValueEx" | "SetValue") && args.all().any(is_own) {
            let reason = "keeps where it lies in the registry, to be started from there";
            self.findings.add(Rule::PersistenceStartup, span, reason);
        }
        for (option, value) in leaves(args) {
            let text = value.as_text().unwrap_or_default();
            if profile(option, text).is_some_and(is_browser) {
                let reason = format!("`{name}` works with what the user's own browser keeps");
                self.findings.add(Rule::CredentialRead, span, reason);
            }
            if option == "path" && text.starts_with(".github/workflows/") {
                let reason = format!("`{name}` puts a job into a repository's pipeline");
                self.findings.add(Rule::PersistenceGitHook, span, reason);
            }
        }
    }
}

/// Questions to a browser about all cookies there are.
pub(super) fn asks_cookies(args: &Args) -> bool {
    matches!(
        args.first().and_then(Value::exact),
        Some("Network.getAllCookies" | "Storage.getCookies")
    )
}

/// The directory that a browser is told to work in.
fn profile<'t>(option: &str, text: &'t str) -> Option<&'t str> {
    let named = matches!(option, "userDataDir" | "user_data_dir");
    let given = text.trim_start_matches('-').strip_prefix("user-data-dir=");
    given.or_else(|| named.then_some(text))
}

/// Where browsers keep what their users do.
fn is_browser(path: &str) -> bool {
    let homes = [
        "google-chrome",
        "chromium",
        "Google/Chrome",
        "Google\\Chrome",
        "BraveSoftware",
        "Microsoft/Edge",
        "Microsoft\\Edge",
        ".mozilla",
    ];
    homes.iter().any(|home| path.contains(home))
}
