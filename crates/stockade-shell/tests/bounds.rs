//! What a script may cost, counted in steps: statements and words, each as often as it is read.

use stockade_shell::{Limits, ProblemKind, Script, parse};

fn nested(open: &str, inside: &str, close: &str, depth: usize) -> String {
    format!("{}{inside}{}", open.repeat(depth), close.repeat(depth))
}

fn is_complete(script: &Script) -> bool {
    let too_large = |kind: &ProblemKind| *kind == ProblemKind::TooLarge;
    !script
        .problems
        .iter()
        .any(|problem| too_large(&problem.kind))
}

/// Each level costs the same, however deep it is.
#[test]
fn nested_expressions_cost_a_step_for_each_level() {
    for (open, close) in [
        ("$((", "))"),
        ("$(( $(", ")))"),
        ("$(( $x + ", "))"),
        ("${x[$((", "))]}"),
        ("${x:-", "}"),
        ("$(echo ", ")"),
    ] {
        let (shallow, deep) = (6, 12);
        let cost = |depth| parse(&format!("echo {}", nested(open, "x", close, depth))).steps;
        assert!(cost(deep) <= 3 * cost(shallow), "{open}: {}", cost(deep));
    }
}

/// Bodies of loops, and commands in words that braces multiply.
#[test]
fn what_is_read_over_and_over_is_bounded() {
    let limits = Limits::default();
    for text in [
        format!("{} | sh", nested("for i in a b; do ", "", "; done", 40)),
        format!("echo {}", nested("{1..9}$(echo ", "x", ")", 20)),
    ] {
        let script = parse(&text);
        assert!(!is_complete(&script), "{text}");
        // Past the bound, each statement that is left takes the step that tells it so.
        let bound = limits.repeated_steps + 2 * text.len() + 1_000;
        assert!(script.steps <= bound, "{text}: {}", script.steps);
    }
}

/// `a=$a$a` doubles the unknown parts of a value.
#[test]
fn unknown_parts_do_not_grow_without_end() {
    let script = parse(&format!("{} echo $a", "a=$a$a;".repeat(40)));
    let echo = script.commands.last().expect("a command");
    assert!(
        echo.words[1].holes.len() <= 256,
        "{}",
        echo.words[1].holes.len()
    );
}

#[test]
fn one_pass_over_a_long_script_is_not_bounded() {
    let script = parse(&"a;".repeat(200_000));
    assert!(is_complete(&script) && script.commands.len() == 200_000);
    assert!(script.steps <= 400_000, "{}", script.steps);
}
