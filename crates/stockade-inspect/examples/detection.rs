//! Measures the inspectors against labelled text: `detection DIRECTORY` prints `docs/detection.md`,
//! `detection DIRECTORY TASK train|dev misses|hits` what was judged wrongly.
//!
//! The directory holds gzipped JSON lines with `text` or `code`, `label` and `category`. Each
//! row belongs to the half `train` or `dev` by a hash of its text; rules are written looking at
//! the first half only, so the second says how they generalise.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use serde::Deserialize;
use stockade_inspect::{InspectionResult, Kinds, ThreatLevel, inspect_all};

#[derive(Deserialize)]
struct Row {
    #[serde(alias = "code")]
    text: String,
    label: u8,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default)]
    source: String,
}

impl Row {
    fn half(&self) -> Half {
        if blake3::hash(self.text.as_bytes()).as_bytes()[0] & 1 == 0 {
            Half::Train
        } else {
            Half::Dev
        }
    }

    fn group(&self) -> String {
        let by = self
            .category
            .as_deref()
            .or(self.rule.as_deref())
            .unwrap_or("-");
        format!("{by} ({})", if self.label == 1 { "+" } else { "-" })
    }
}

const HEAD: &str = "\
# Detection

How often the inspectors are right on labelled text. Written by `make detection CORPORA=DIR`; the
text itself is not part of this repository.

A row counts as found if a finding of level medium or above was made in it. *Score* is that of the
whole text, so the curve says what another threshold would give. The halves are cut by a hash of
each row; of what was judged wrongly in the second half, part was read, and a few rules come from it.

| file | origin |
|---|---|
| injecagent | simulated tool outputs of InjecAgent, with and without an injected instruction |
| cyberseceval_pi | prompt injections of CyberSecEval, direct and indirect; many ask an innocent question in an odd way and hold nothing that could be told from chat |
| deepset | chat prompts in English and German, injection or not. Its questions are listed but not counted as clean: an ordinary question to a chatbot is no tool output |
| benign_tool_outputs | man pages, README files, source, logs, output of commands |
| benign_code | ordinary packages, standard library, maintainer scripts |
| secrets_detect_secrets, secrets_noseyparker | examples of the tests of these two tools. What one rule there does not want, another may: their negatives are weak. Placeholders such as `AKCxxxxxxxxxx` count as secrets there and not here; rules that find public identifiers (ARN, bucket, client id, address, user, public key) or test keys are left out, and recall is also given without the placeholders |
| secrets_hard_negatives | lock files, checksums, SVG, logs of git |
| exfil_commands | uploads and reverse shells of GTFOBins, Atomic Red Team, InternalAllTheThings and a generator; ordinary network commands of tldr-pages |
| bash_commands | ordinary commands of nl2bash and of other tools' tests |
| inj_synth_coding_agent | a grammar of orders to coding agents, put into code and documents; ordinary imperatives put in the same way |
| inj_asb, inj_bipia_train, inj_piarena, inj_skill_inject, inj_spikee, inj_mcp_mail_misc | published attacks in tool output, mails, reports, skills. Many orders in them differ from ordinary text by their context only |
| jailbreaks, jailbreaks_in_the_wild | chat jailbreaks; the second is noisy |
| benign_prompts, benign_hard_docs | shared prompts; agent instruction files, prompt templates and security documents. The layout of prompts (`injection/register.rs`) was studied on the first |
| secrets_other_scanners, secrets_generated | fixtures of six scanners (a negative means \"not by this rule\", many positives are placeholders; some formats were added after reading what was missed there); generated tokens and look-alikes |
| shell_tldr, shell_ordinary_scripts | ordinary commands and scripts |

Rows of the sources of injections that came after the first rules were read since, and the latest rules and weights
were chosen with all of them measured: no figure about these sources is one on unseen text.

## injection: a model that does not ship

A linear model was trained with each source left out in turn, its threshold set on other ordinary text (at most 0.005
of tool output, 0.05 of documents and of prompts accused). *Units*: classes of words, ordered pairs of them, place in
the unit, how often its surroundings give orders. *Rules*: which rules match in a passage, weighted anew around the
weights written by hand, with length and layout of the text. The rules by hand accused 0.003, 0.064 and 0.143 then and
were written against the first three sources.

| source left out | units | rules weighted anew | rules by hand |
|---|---:|---:|---:|
| injecagent | 0.767 | 0.956 | 0.980 |
| cyberseceval_pi | 0.359 | 0.555 | 0.563 |
| deepset | 0.483 | 0.536 | 0.620 |
| inj_asb | 0.663 | 0.536 | 0.414 |
| inj_bipia_train | 0.077 | 0.137 | 0.121 |
| inj_mcp_mail_misc | 0.505 | 0.728 | 0.680 |
| inj_piarena | 0.694 | 0.555 | 0.544 |
| inj_skill_inject | 0.059 | 0.056 | 0.072 |
| inj_spikee | 0.251 | 0.338 | 0.382 |
| inj_synth_coding_agent | 0.150 | 0.505 | 0.625 |
| jailbreaks | 0.471 | 0.534 | 0.415 |
| jailbreaks_in_the_wild | 0.456 | 0.505 | 0.668 |

These figures flatter the models: each threshold was set on the ordinary text that its false positives were counted
on, and the second model's allowance for prompts is the best of three that were tried on this table. The columns stand
at different false-positive rates, so they are no comparison at equal ones.
Trained on all sources, the second model misjudged 51 of 444 texts of this repository's own tests;
with the weights by hand the prototype misjudged 8, because it opens no encodings.
It accuses less, but on seven of twelve sources it also finds less than the rules by hand, so the rules stay.
";

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Half {
    Train,
    Dev,
}

/// One question put to the inspectors.
struct Task {
    name: &'static str,
    kinds: Kinds,
    /// Files with rows that should be found.
    positive: &'static [&'static str],
    /// Files with rows that should not.
    negative: &'static [&'static str],
    /// Categories and rules of positives that are no positives of this task.
    skip: &'static [&'static str],
    /// Files that came after the rules, whole: they say how the rules generalise.
    later: &'static [&'static str],
    /// What was asked for.
    goal: &'static str,
}

const TASKS: [Task; 3] = [
    Task {
        name: "injection",
        kinds: Kinds::INJECTION,
        positive: &["injecagent", "cyberseceval_pi", "deepset"],
        negative: &[
            "benign_tool_outputs",
            "benign_code",
            "injecagent",
            "deepset",
        ],
        skip: &[],
        later: &[
            "inj_asb",
            "inj_bipia_train",
            "inj_mcp_mail_misc",
            "inj_piarena",
            "inj_skill_inject",
            "inj_spikee",
            "inj_synth_coding_agent",
            "jailbreaks",
            "jailbreaks_in_the_wild",
            "benign_hard_docs",
            "benign_prompts",
        ],
        goal: "recall at least 0.75 at a false-positive rate of at most 0.01 on ordinary tool output",
    },
    Task {
        name: "secrets",
        kinds: Kinds::SECRETS,
        positive: &["secrets_detect_secrets", "secrets_noseyparker"],
        negative: &[
            "secrets_hard_negatives",
            "benign_tool_outputs",
            "secrets_detect_secrets",
            "secrets_noseyparker",
        ],
        // What these rules find is public: addresses, names of resources, users, client ids, keys.
        skip: &[
            "ip_public_test.py",
            "np.arn.1",
            "np.s3.1",
            "np.s3.2",
            "np.gcs.1",
            "np.gcs.2",
            "np.google.1",
            "np.shopify.1",
            "np.aws.3",
            "np.age.1",
            "np.linkedin.1",
            "np.reactapp.1",
            "np.twitter.1",
            // Keys for trying things out.
            "np.stripe.2",
        ],
        later: &[
            "secrets_other_scanners",
            "secrets_generated",
            "benign_hard_docs",
        ],
        goal: "recall and precision at least 0.90",
    },
    Task {
        name: "egress",
        kinds: Kinds::EGRESS,
        positive: &["exfil_commands"],
        negative: &["exfil_commands", "bash_commands"],
        skip: &["credential_access/collection"],
        later: &["shell_tldr", "shell_ordinary_scripts"],
        goal: "recall at least 0.90 at a false-positive rate of at most 0.01 on ordinary commands",
    },
];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(directory) = arguments.next() else {
        return Err("usage: detection DIRECTORY [TASK [train|dev [misses|hits]]]".into());
    };
    let directory = Path::new(&directory);
    let mut out = std::io::stdout().lock();
    if !directory.is_dir() {
        return Err(format!("there are no corpora at {}", directory.display()).into());
    }
    let only = arguments.next();
    if only.is_none() {
        writeln!(out, "{HEAD}")?;
    }
    let half = arguments.next();
    let list = arguments.next();
    for task in &TASKS {
        if only.as_deref().is_some_and(|name| name != task.name) {
            continue;
        }
        for each in [Half::Train, Half::Dev] {
            let name = if each == Half::Train { "train" } else { "dev" };
            if half.as_deref().is_none_or(|wanted| wanted == name) {
                measure(&mut out, task, each, directory, list.as_deref())?;
            }
        }
        if half.is_none() {
            by_source(&mut out, task, directory)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default)]
struct Counts {
    rows: usize,
    found: usize,
}

fn measure(
    out: &mut impl std::io::Write,
    task: &Task,
    half: Half,
    directory: &Path,
    list: Option<&str>,
) -> Result<(), Box<dyn Error>> {
    let mut groups: BTreeMap<(String, String), Counts> = BTreeMap::new();
    let mut scores: Vec<(f32, bool, bool)> = Vec::new();
    let mut placeholders = Counts::default();
    let mut files: Vec<&str> = task.positive.iter().chain(task.negative).copied().collect();
    files.sort_unstable();
    files.dedup();
    for file in files {
        let path = directory.join(format!("{file}.jsonl.gz"));
        if !path.is_file() {
            writeln!(out, "skipped: {} is not there", path.display())?;
            continue;
        }
        for row in rows(&path)? {
            let wanted = if row.label == 1 {
                task.positive
            } else {
                task.negative
            };
            if row.half() != half
                || !wanted.contains(&file)
                || [&row.category, &row.rule]
                    .into_iter()
                    .flatten()
                    .any(|name| task.skip.contains(&name.as_str()))
            {
                continue;
            }
            let result = inspect_all(task.kinds, [""; 0], &row.text);
            let found = !result.safe;
            // Chat questions and other tools' opinions are listed but are no ordinary output.
            let counts_as_clean =
                row.label == 1 || task.name != "injection" || file.starts_with("benign");
            if counts_as_clean {
                scores.push((result.score, row.label == 1, found));
            }
            if task.name == "secrets" && row.label == 1 && is_placeholder(&row.text) {
                placeholders.rows += 1;
                placeholders.found += usize::from(found);
            }
            let group = groups.entry((file.to_owned(), row.group())).or_default();
            group.rows += 1;
            group.found += usize::from(found);
            let shown = match list {
                Some("misses") => row.label == 1 && !found,
                Some("hits") => row.label == 0 && found,
                _ => false,
            };
            if shown {
                show(out, file, &row, &result)?;
            }
        }
    }
    let half = match half {
        Half::Train => "the half that the rules were written against",
        Half::Dev => "the half that they were not",
    };
    writeln!(out, "## {}: {half}\n\nGoal: {}.\n", task.name, task.goal)?;
    writeln!(out, "| file | group | rows | found |\n|---|---|---:|---:|")?;
    for ((file, group), counts) in &groups {
        if list.is_none() && (counts.rows >= 8 || counts.found > 0 && group.ends_with("(-)")) {
            writeln!(
                out,
                "| {file} | {group} | {} | {} |",
                counts.rows, counts.found
            )?;
        }
    }
    summary(out, &scores, &placeholders)?;
    Ok(())
}

/// Files that came after the rules, one line each.
#[expect(clippy::cast_precision_loss, reason = "a few thousand rows")]
fn by_source(
    out: &mut impl std::io::Write,
    task: &Task,
    directory: &Path,
) -> Result<(), Box<dyn Error>> {
    writeln!(
        out,
        "## {}: sources that came after the rules\n\n\
         | file | to be found | found | to be quiet | found |\n|---|---:|---:|---:|---:|",
        task.name
    )?;
    for file in task.later {
        let path = directory.join(format!("{file}.jsonl.gz"));
        if !path.is_file() {
            writeln!(out, "skipped: {} is not there", path.display())?;
            continue;
        }
        let mut counts = [Counts::default(), Counts::default()];
        for row in rows(&path)? {
            let count = &mut counts[usize::from(row.label == 1)];
            count.rows += 1;
            count.found += usize::from(!inspect_all(task.kinds, [""; 0], &row.text).safe);
        }
        let rate = |count: &Counts| match count.rows {
            0 => "-".to_owned(),
            rows => format!("{:.3}", count.found as f64 / rows as f64),
        };
        let [quiet, wanted] = &counts;
        writeln!(
            out,
            "| {file} | {} | {} | {} | {} |",
            wanted.rows,
            rate(wanted),
            quiet.rows,
            rate(quiet)
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// True if the secret in a row is filler that stands for one: `AKCxxxxxxxxxx`, `AKIAZZZZZZZZ`.
fn is_placeholder(text: &str) -> bool {
    let bytes = text.as_bytes();
    let filler = bytes
        .windows(10)
        .any(|run| run[0].is_ascii_alphanumeric() && run.iter().all(|byte| *byte == run[0]));
    filler || text.contains("EXAMPLEKEY") || text.to_ascii_lowercase().contains("yourpass")
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand rows")]
fn summary(
    out: &mut impl std::io::Write,
    scores: &[(f32, bool, bool)],
    placeholders: &Counts,
) -> Result<(), Box<dyn Error>> {
    let count = |wanted: fn(&(f32, bool, bool)) -> bool| {
        scores.iter().filter(|row| wanted(row)).count() as f64
    };
    let positives = count(|row| row.1);
    let negatives = count(|row| !row.1);
    let hits = count(|row| row.1 && row.2);
    let false_hits = count(|row| !row.1 && row.2);
    writeln!(
        out,
        "\nRecall {:.3} ({hits} of {positives}), false-positive rate {:.4} ({false_hits} of {negatives}), precision {:.3}.\n",
        hits / positives.max(1.0),
        false_hits / negatives.max(1.0),
        hits / (hits + false_hits).max(1.0),
    )?;
    if placeholders.rows > 0 {
        let rows = positives - placeholders.rows as f64;
        let found = hits - placeholders.found as f64;
        writeln!(
            out,
            "Without the {} rows whose secret is a placeholder: recall {:.3} ({found} of {rows}).\n",
            placeholders.rows,
            found / rows.max(1.0)
        )?;
    }
    writeln!(
        out,
        "| score at least | recall | false-positive rate |\n|---:|---:|---:|"
    )?;
    for threshold in [0.05_f32, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
        let above = |positive: bool| {
            scores
                .iter()
                .filter(|row| row.1 == positive && row.0 >= threshold)
                .count() as f64
        };
        writeln!(
            out,
            "| {threshold:.2} | {:.3} | {:.4} |",
            above(true) / positives.max(1.0),
            above(false) / negatives.max(1.0)
        )?;
    }
    writeln!(out)?;
    Ok(())
}

fn show(
    out: &mut impl std::io::Write,
    file: &str,
    row: &Row,
    result: &InspectionResult,
) -> Result<(), Box<dyn Error>> {
    if row.label == 1 {
        let text: String = row.text.chars().take(420).collect();
        writeln!(
            out,
            "MISS {file} {} {:.2}: {}",
            row.group(),
            result.score,
            text.replace('\n', " ⏎ ")
        )?;
    }
    for finding in result
        .findings
        .iter()
        .filter(|finding| finding.level > ThreatLevel::Low || row.label == 1)
    {
        let at = usize::try_from(finding.span.start)?;
        let end = usize::try_from(finding.span.end)?;
        let context = row
            .text
            .as_bytes()
            .get(at.saturating_sub(60)..(end + 60).min(row.text.len()))
            .unwrap_or_default();
        writeln!(
            out,
            "HIT {file} {} {} {} {:.2} [{}] {:?}",
            row.group(),
            row.source,
            finding.rule,
            finding.confidence,
            finding.level,
            String::from_utf8_lossy(context)
                .chars()
                .take(300)
                .collect::<String>()
        )?;
    }
    Ok(())
}

fn rows(path: &Path) -> Result<Vec<Row>, Box<dyn Error>> {
    let output = Command::new("gzip").arg("-dc").arg(path).output()?;
    if !output.status.success() {
        return Err(format!("gzip could not read {}", path.display()).into());
    }
    String::from_utf8(output.stdout)?
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}
