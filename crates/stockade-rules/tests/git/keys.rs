//! Every key that git documents is classified: it can do harm, or it is on the list of those that
//! can't.

use std::collections::BTreeSet;

use stockade_rules::protected::git::{ConfigContext, config, entries_for};

use super::Git;

const HARMLESS: &str = include_str!("harmless-keys.txt");

fn harmless() -> BTreeSet<&'static str> {
    let lines = HARMLESS.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// `filter.<driver>.clean` as a key that could be in a file.
fn example(documented: &str) -> String {
    let parts = documented.split('.').map(|part| {
        if part.starts_with('<') || part == "*" {
            "example"
        } else {
            part
        }
    });
    parts.collect::<Vec<_>>().join(".")
}

fn is_listed(key: &str, harmless: &BTreeSet<&str>) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    harmless.contains(key) || harmless.contains(format!("{section}.**").as_str())
}

#[test]
fn every_documented_key_is_classified() {
    let Some(git) = Git::find("every_documented_key_is_classified") else {
        return;
    };
    let output = git.command(&["help", "--config"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let harmless = harmless();
    let is_key = |line: &&str| line.contains('.') && !line.contains('\'');
    let unknown: Vec<&str> = text
        .lines()
        .filter(is_key)
        .filter(|key| entries_for(example(key).as_bytes()).next().is_none())
        .filter(|key| !is_listed(key, &harmless))
        .collect();
    assert!(unknown.is_empty(), "in no list: {unknown:#?}");
    assert!(text.lines().filter(is_key).count() > 500);
}

#[test]
fn no_harmless_key_is_in_the_table() {
    for key in harmless().into_iter().filter(|key| !key.ends_with("**")) {
        let entry = entries_for(example(key).as_bytes()).next();
        assert_eq!(entry, None, "{key}");
    }
}

/// Settings that people make in their repositories every day.
const COMMON: &[(&str, &str)] = &[
    ("add.ignoreErrors", "true"),
    ("advice.detachedHead", "false"),
    ("advice.statusHints", "false"),
    ("alias.co", "checkout"),
    ("alias.lg", "log --oneline --graph --decorate"),
    ("alias.st", "status -sb"),
    ("am.threeWay", "true"),
    ("apply.whitespace", "fix"),
    ("blame.ignoreRevsFile", ".git-blame-ignore-revs"),
    ("branch.autoSetupMerge", "always"),
    ("branch.autoSetupRebase", "always"),
    ("branch.main.description", "text"),
    ("branch.main.merge", "refs/heads/main"),
    ("branch.main.mergeOptions", "--no-ff"),
    ("branch.main.pushRemote", "fork"),
    ("branch.main.rebase", "true"),
    ("branch.main.remote", "origin"),
    ("branch.sort", "-committerdate"),
    ("checkout.defaultRemote", "origin"),
    ("checkout.workers", "0"),
    ("clean.requireForce", "false"),
    ("color.ui", "auto"),
    ("column.ui", "auto"),
    ("commit.cleanup", "scissors"),
    ("commit.gpgSign", "true"),
    ("commit.template", ".gitmessage"),
    ("commit.verbose", "true"),
    ("core.abbrev", "12"),
    ("core.attributesFile", ".attributes"),
    ("core.autocrlf", "input"),
    ("core.bigFileThreshold", "64m"),
    ("core.checkStat", "minimal"),
    ("core.commentChar", ";"),
    ("core.compression", "9"),
    ("core.eol", "lf"),
    ("core.excludesFile", ".ignore"),
    ("core.fileMode", "false"),
    ("core.fsmonitor", "true"),
    ("core.ignoreCase", "true"),
    ("core.logAllRefUpdates", "true"),
    ("core.longpaths", "true"),
    ("core.precomposeUnicode", "true"),
    ("core.preloadIndex", "true"),
    ("core.quotePath", "false"),
    ("core.safecrlf", "warn"),
    ("core.sharedRepository", "group"),
    ("core.sparseCheckout", "true"),
    ("core.symlinks", "false"),
    ("core.untrackedCache", "true"),
    ("core.whitespace", "trailing-space"),
    ("credential.helper", "cache"),
    ("credential.useHttpPath", "true"),
    ("diff.algorithm", "histogram"),
    ("diff.colorMoved", "default"),
    ("diff.mnemonicPrefix", "true"),
    ("diff.renames", "copies"),
    ("diff.submodule", "log"),
    ("diff.tool", "vimdiff"),
    ("extensions.objectFormat", "sha1"),
    ("extensions.worktreeConfig", "true"),
    ("feature.manyFiles", "true"),
    ("fetch.fsckObjects", "true"),
    ("fetch.parallel", "8"),
    ("fetch.prune", "true"),
    ("fetch.recurseSubmodules", "on-demand"),
    ("fetch.writeCommitGraph", "true"),
    ("filter.lfs.clean", "git-lfs clean -- %f"),
    ("filter.lfs.process", "git-lfs filter-process"),
    ("filter.lfs.required", "true"),
    ("filter.lfs.smudge", "git-lfs smudge -- %f"),
    ("format.pretty", "oneline"),
    ("format.signOff", "true"),
    ("gc.auto", "0"),
    ("gc.pruneExpire", "now"),
    ("gpg.format", "ssh"),
    ("grep.lineNumber", "true"),
    ("gui.encoding", "utf-8"),
    ("help.autoCorrect", "10"),
    ("http.lowSpeedLimit", "1000"),
    ("http.postBuffer", "524288000"),
    ("http.version", "HTTP/1.1"),
    ("i18n.commitEncoding", "utf-8"),
    ("index.version", "4"),
    ("init.defaultBranch", "main"),
    ("lfs.repositoryformatversion", "0"),
    ("lfs.https://h.test/r.git/info/lfs.access", "basic"),
    ("log.date", "iso"),
    ("log.decorate", "short"),
    ("maintenance.auto", "false"),
    ("maintenance.strategy", "incremental"),
    ("merge.conflictStyle", "zdiff3"),
    ("merge.ff", "false"),
    ("merge.renameLimit", "5000"),
    ("merge.tool", "meld"),
    ("mergetool.keepBackup", "false"),
    ("notes.rewriteRef", "refs/notes/commits"),
    ("pack.threads", "4"),
    ("pager.branch", "false"),
    ("protocol.version", "2"),
    ("pull.ff", "only"),
    ("pull.rebase", "true"),
    ("push.autoSetupRemote", "true"),
    ("push.default", "current"),
    ("push.followTags", "true"),
    ("rebase.autoSquash", "true"),
    ("rebase.autoStash", "true"),
    ("rebase.instructionFormat", "%s [%an]"),
    ("rebase.updateRefs", "true"),
    ("receive.denyCurrentBranch", "updateInstead"),
    ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
    ("remote.origin.mirror", "true"),
    ("remote.origin.partialclonefilter", "blob:none"),
    ("remote.origin.promisor", "true"),
    ("remote.origin.prune", "true"),
    ("remote.origin.pushurl", "git@h.test:r.git"),
    ("remote.origin.tagOpt", "--no-tags"),
    ("remote.origin.url", "https://h.test/r.git"),
    ("remote.pushDefault", "fork"),
    ("rerere.enabled", "true"),
    ("stash.showPatch", "true"),
    ("status.showUntrackedFiles", "all"),
    ("submodule.recurse", "true"),
    ("submodule.sub.active", "true"),
    ("submodule.sub.update", "rebase"),
    ("submodule.sub.url", "../sub.git"),
    ("tag.gpgSign", "true"),
    ("tag.sort", "version:refname"),
    ("transfer.fsckObjects", "true"),
    ("user.email", "n@h.test"),
    ("user.name", "n"),
    ("user.signingKey", "~/.ssh/id.pub"),
    ("worktree.guessRemote", "true"),
];

/// Through git itself, which knows how to quote.
#[test]
fn common_settings_pass() {
    let Some(git) = Git::find("common_settings_pass") else {
        return;
    };
    for (key, value) in COMMON {
        let file = git.path("file");
        let _ = std::fs::remove_file(&file);
        let output = git.command(&["config", "-f", "file", key, value]).output();
        assert!(output.unwrap().status.success(), "{key}");
        let text = std::fs::read(&file).unwrap();
        let judged = config::judge(b"", &text, &ConfigContext::new());
        assert_eq!(judged, Ok(()), "{key} = {value}");
    }
    assert!(COMMON.len() >= 97);
}
