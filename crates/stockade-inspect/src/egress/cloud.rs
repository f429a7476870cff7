//! Clients of clouds and of stores of backups.

use stockade_shell::{CommandId, Script, Word};

use super::outflow::{Manner, Outflow};
use super::sensitive::{Data, of_path, of_stdin, of_word};
use super::services::{after_word, has};
use crate::hosts::host_of;

/// What is no option.
fn operands<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let words = words.iter().copied();
    words.filter(|text| !text.starts_with('-')).collect()
}

/// `aws s3 cp`, `gsutil cp`, `gcloud storage cp`, `az storage blob upload`, rclone, restic.
pub(super) fn cloud(script: &Script, id: CommandId, words: &[Word], name: &str) -> Option<Outflow> {
    let own = without_globals(words);
    let texts: Vec<&str> = own.iter().map(|word| word.text.as_str()).collect();
    let endpoint: Vec<String> = endpoint(words).into_iter().collect();
    let (sources, remote): (Vec<&str>, bool) = match (name, texts.as_slice()) {
        ("aws", ["s3", "cp" | "mv" | "sync", source, target, ..]) => {
            (vec![source], is_remote(target) && !is_remote(source))
        }
        ("gcloud", ["storage", "cp" | "mv" | "rsync", rest @ ..]) => {
            match operands(rest).as_slice() {
                [source, .., target] => (vec![*source], is_remote(target) && !is_remote(source)),
                _ => (Vec::new(), false),
            }
        }
        ("mc", ["cp" | "mv" | "mirror" | "put", source, .., target]) => (
            vec![source],
            target.contains('/') && !target.starts_with(['/', '.', '~']),
        ),
        ("rclone", rest) if rest.first() == Some(&"rcat") => (vec!["-"], true),
        ("gcloud", ["compute", "scp", source, .., target]) => {
            (vec![source], target.contains(':') && !source.contains(':'))
        }
        ("gsutil" | "s3cmd" | "ossutil", rest) => match operands(rest).as_slice() {
            ["cp" | "mv" | "rsync" | "sync" | "put", source, .., target] => {
                (vec![*source], is_remote(target) && !is_remote(source))
            }
            _ => (Vec::new(), false),
        },
        ("aws", ["s3api", "put-object", rest @ ..]) => {
            (after(rest, "--body").into_iter().collect(), true)
        }
        (
            "az",
            [
                "storage",
                "blob" | "file",
                "upload" | "upload-batch",
                rest @ ..,
            ],
        ) => (
            after(rest, "--file")
                .or_else(|| after(rest, "-f"))
                .into_iter()
                .collect(),
            true,
        ),
        ("rclone", [.., source, target])
            if ["copy", "sync", "move", "copyto", "moveto"]
                .iter()
                .any(|verb| has(words, verb)) =>
        {
            (vec![source], target.contains(':') && !source.contains(':'))
        }
        ("restic" | "borg", rest) if rest.contains(&"backup") || rest.contains(&"create") => {
            return backup(rest);
        }
        ("aws" | "gcloud" | "az", rest) => return message(script, words, rest),
        _ => return None,
    };
    if !remote {
        return None;
    }
    let data = sources
        .iter()
        .map(|path| {
            if *path == "-" {
                of_stdin(script, id)
            } else {
                of_path(path)
            }
        })
        .max()
        .unwrap_or(Data::Local);
    // For everyone to read.
    let public = words.iter().any(|word| word.text.contains("public-read"));
    // Where a bucket belongs can't be told from its name, so what is sent decides.
    let data = if data == Data::Local && !public {
        Data::Literal
    } else {
        data
    };
    Some(Outflow {
        rule: "egress.cloud",
        act: "a cloud client",
        data,
        manner: if public || !endpoint.is_empty() {
            Manner::Send
        } else {
            Manner::Publish
        },
        hosts: endpoint,
        wary: public,
    })
}

/// A server of one's own choosing in place of the cloud's.
fn endpoint(words: &[Word]) -> Option<String> {
    after_word(words, "--endpoint-url")
        .or_else(|| after_word(words, "--endpoint"))
        .and_then(|word| host_of(&word.text))
}

fn is_remote(text: &str) -> bool {
    ["s3://", "gs://", "az://", "b2://", "oss://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
}

/// The words from the verb on: `--profile x` and its kind stand before it.
fn without_globals(words: &[Word]) -> &[Word] {
    let mut rest = words;
    while let [first, later @ ..] = rest {
        if !first.text.starts_with('-') {
            break;
        }
        let takes = !first.text.contains('=')
            && later.get(1).is_some_and(|next| !next.text.starts_with('-'))
            && first.text.starts_with("--")
            && !first.text.starts_with("--no-");
        rest = if takes {
            later.get(1..).unwrap_or_default()
        } else {
            later
        };
    }
    rest
}

/// Data in a message, a queue, a call: `aws sns publish --message "$(env)"`.
fn message(script: &Script, words: &[Word], texts: &[&str]) -> Option<Outflow> {
    // Places made for keeping secrets.
    let keeps = matches!(
        texts.first(),
        Some(
            &("secretsmanager"
                | "ssm"
                | "kms"
                | "sts"
                | "iam"
                | "configure"
                | "keyvault"
                | "secrets"
                | "auth"
                | "login"
                | "ad")
        )
    );
    let verb = *texts.get(1)?;
    let sends = [
        "put", "send", "publish", "invoke", "create", "start", "upload", "add",
    ]
    .iter()
    .any(|start| verb.starts_with(start))
        || texts
            .iter()
            .any(|text| matches!(*text, "publish" | "create" | "send"));
    let data = words
        .iter()
        .map(|word| {
            let file = word.text.contains("file://") && of_path(&word.text) == Data::Sensitive;
            if file {
                Data::Sensitive
            } else {
                of_word(script, word)
            }
        })
        .max()?;
    (sends && !keeps && data >= Data::Environment).then(|| Outflow {
        rule: "egress.cloud",
        act: "a cloud client",
        hosts: Vec::new(),
        data,
        manner: Manner::Publish,
        wary: false,
    })
}

/// A backup into a repository on another host.
fn backup(words: &[&str]) -> Option<Outflow> {
    let repository = words.iter().find(|text| {
        text.contains("://")
            || text.starts_with("rest:")
            || text.starts_with("sftp:")
            || (text.contains('@') && text.contains(':'))
    })?;
    let repository = repository
        .trim_start_matches("rest:")
        .trim_start_matches("sftp:");
    let host = super::sockets::remote_host(repository)
        .filter(|_| !repository.contains("://"))
        .or_else(|| host_of(repository))?;
    let data = words
        .iter()
        .rev()
        .find(|text| !text.starts_with('-'))
        .map_or(Data::Local, |path| of_path(path));
    Some(Outflow {
        rule: "egress.backup",
        act: "a backup",
        hosts: vec![host],
        data,
        manner: Manner::Send,
        wary: false,
    })
}

fn after<'a>(texts: &[&'a str], flag: &str) -> Option<&'a str> {
    texts
        .iter()
        .position(|text| *text == flag)
        .and_then(|at| texts.get(at + 1))
        .copied()
}
