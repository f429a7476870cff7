//! The redactor: however a text is cut, no byte of a secret's value is left, and the rest is whole.
#![expect(
    clippy::unwrap_used,
    reason = "a test may stop at what it did not expect"
)]

use proptest::prelude::*;
use stockade_inspect::Redactor;

/// Lines with a secret each, and its value.
const SECRETS: [(&str, &str); 14] = [
    (
        "token=ghp_vPqMZ0t3JkXq1sLw8bRzNd5cFy2aUe4HgTi7",
        "vPqMZ0t3JkXq1sLw8bRzNd5cFy2aUe4HgTi7",
    ),
    ("MYSQL_ROOT_PASSWORD=Tr0ub4dor&3x", "Tr0ub4dor&3x"),
    ("password: \"s3cr3tP@ss9\"", "s3cr3tP@ss9"),
    ("AKIA2E0A8F3B244C9986", "AKIA2E0A8F3B244C9986"),
    (
        "https://deploy:h7Gd02kdPq91Lm@git.internal/x.git",
        "h7Gd02kdPq91Lm",
    ),
    (
        "110201543:AAHdqTcvCH1vGWJxfSe1ofSAs0K5PALDsaw",
        "110201543:AAHdqTcvCH1vGWJxfSe1ofSAs0K5PALDsaw",
    ),
    (
        "{\"api_key\": \"9f8A7c6D5e4F3b2A1c0D\", \"n\": 1}",
        "9f8A7c6D5e4F3b2A1c0D",
    ),
    (
        "export STRIPE_SECRET=mSaWHGOKxG8pKHBJwJq13TcoKBzDPhYD",
        "mSaWHGOKxG8pKHBJwJq13TcoKBzDPhYD",
    ),
    (
        "Authorization: Bearer 8fj3kd93kd02ls83jd74",
        "8fj3kd93kd02ls83jd74",
    ),
    ("REDIS_PASS=kX9!vQ2#mm", "kX9!vQ2#mm"),
    ("Server=db;User Id=app;Password=Zq81mPw2Lx;", "Zq81mPw2Lx"),
    (
        "x dop_v1_4c6aeb9deed0fb897e585f8ecafa555dd0a9b46087b1e354bcab59b0483edfafextra",
        "4c6aeb9deed0fb897e585f8ecafa555dd0a9b46087b1e354bcab59b0483edfafextra",
    ),
    ("curl -u admin:Hn82kQpz71 https://a.test/", "Hn82kQpz71"),
    (
        "\u{1b}[32mnpm_q7Jz0TnV4dKpW2mXc8RbYh5LsGfE1a2Bc4De\u{1b}[0m",
        "q7Jz0TnV4dKpW2mXc8RbYh5LsGfE1a2Bc4De",
    ),
];

const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\n\
MIIEpAIBAAKCAQEAuZx8Qm3vK1nT0pYw7sRb5dLfGhJ2kXcV9aBqWzErTyUiOpAs\n\
DfGhJkLzXcVbNmQwErTyUiOp1234567890AsDfGhJkLzXcVbNmQwErTyUiOp1234\n\
x9Q=\n-----END RSA PRIVATE KEY-----\n";

fn redact(text: &[u8], cuts: &[usize]) -> (String, u64) {
    let mut redactor = Redactor::default();
    let mut out = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([text.len()]) {
        out.extend(redactor.feed(&text[from..cut]));
        from = cut;
    }
    out.extend(redactor.finish());
    (String::from_utf8(out).unwrap(), redactor.count())
}

#[test]
fn each_secret_is_masked_and_what_surrounds_it_is_not() {
    for (line, value) in SECRETS {
        let text = format!("before\n{line}\nafter\n");
        let (out, count) = redact(text.as_bytes(), &[]);
        assert!(!out.contains(value), "{out}");
        assert!(out.contains("[redacted secret."), "{out}");
        assert!(
            out.starts_with("before\n") && out.ends_with("\nafter\n"),
            "{out}"
        );
        assert_eq!(count, 1, "{out}");
    }
}

#[test]
fn cutting_a_text_anywhere_changes_nothing() {
    for (line, _) in SECRETS {
        let text = format!("one\n{line}\ntwo {line}\n");
        let whole = redact(text.as_bytes(), &[]);
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            assert_eq!(redact(text.as_bytes(), &[cut]), whole, "cut at {cut}");
        }
        let every: Vec<usize> = (1..text.len()).collect();
        assert_eq!(redact(text.as_bytes(), &every), whole, "byte by byte");
    }
}

#[test]
fn a_private_key_is_masked_over_all_its_lines() {
    let text = format!("key:\n{KEY}done here\n");
    let every: Vec<usize> = (1..text.len()).collect();
    for cuts in [&[][..], &every[..], &[40, 90, 150][..]] {
        let (out, count) = redact(text.as_bytes(), cuts);
        for line in KEY.lines().skip(1).take(3) {
            assert!(!out.contains(line), "{out}");
        }
        assert!(out.ends_with("done here\n"), "{out}");
        assert_eq!(count, 1, "{out}");
    }
}

#[test]
fn text_without_secrets_passes_byte_for_byte() {
    let mut redactor = Redactor::default();
    let bytes: Vec<u8> = (0..300_000_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
        .collect();
    let mut out = Vec::new();
    for chunk in bytes.chunks(777) {
        out.extend(redactor.feed(chunk));
    }
    out.extend(redactor.finish());
    assert!(out == bytes, "{} bytes of {}", out.len(), bytes.len());
    assert_eq!(redactor.count(), 0);
}

#[test]
fn a_prompt_and_a_drawn_screen_are_not_held_back() {
    for text in [
        "Password: ",
        "name?",
        "$ ",
        ">>> ",
        "\u{1b}[2J\u{1b}[1;1Hmenu\u{1b}[?25h",
        "50%\r",
    ] {
        let mut redactor = Redactor::default();
        assert_eq!(redactor.feed(text.as_bytes()), text.as_bytes());
    }
    let mut redactor = Redactor::default();
    assert!(redactor.feed(b"token=ghp_vPqM").is_empty());
}

#[test]
fn a_line_without_end_is_held_back_to_a_bound() {
    let mut redactor = Redactor::default();
    let mut out = Vec::new();
    for _ in 0..400 {
        out.extend(redactor.feed(&[b'a'; 1000]));
        out.extend(redactor.feed(b" ghp_vPqMZ0t3JkXq1sLw8bRzNd5cFy2aUe4HgTi7 "));
    }
    assert!(out.len() > 300_000, "{}", out.len());
    out.extend(redactor.finish());
    let out = String::from_utf8(out).unwrap();
    assert!(!out.contains("vPqMZ0"));
    assert_eq!(out.matches("[redacted secret.github-token]").count(), 400);
}

proptest! {
    #[test]
    fn no_byte_of_a_value_is_left_however_the_output_is_cut(
        picks in prop::collection::vec((0..SECRETS.len(), "[ a-z]{0,30}"), 1..6),
        cuts in prop::collection::vec(0..2000_usize, 0..12),
    ) {
        let mut text = String::new();
        for (pick, words) in &picks {
            text.push_str(words);
            text.push('\n');
            text.push_str(SECRETS[*pick].0);
            text.push('\n');
        }
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % text.len()).collect();
        cuts.sort_unstable();
        let (out, _) = redact(text.as_bytes(), &cuts);
        prop_assert_eq!(&out, &redact(text.as_bytes(), &[]).0);
        for (pick, _) in picks {
            let value = SECRETS[pick].1;
            for part in value.as_bytes().windows(4) {
                prop_assert!(!out.contains(std::str::from_utf8(part).unwrap()), "{}", out);
            }
        }
    }
}
