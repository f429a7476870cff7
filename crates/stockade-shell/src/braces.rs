//! Brace expansion: `{a,b}` and `{1..5}`, before anything else is expanded (bash(1)).

use crate::ast::Part;

/// More words than this from one word are not made; the braces then stay as they are.
const MAX_WORDS: usize = 256;

/// A part of a word, or text that a brace expansion made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    Part(&'a Part),
    /// An element of `{x..y}`.
    Number(i64),
    Letter(char),
}

/// The words that a word with braces stands for.
pub(crate) fn expand(parts: &[Part]) -> Vec<Vec<Piece<'_>>> {
    let pieces: Vec<_> = parts.iter().map(Piece::Part).collect();
    if !parts.iter().any(|part| matches!(part, Part::Brace('{'))) {
        return vec![pieces];
    }
    alternatives(&pieces, 0).unwrap_or_else(|| vec![pieces])
}

fn is(piece: Piece<'_>, brace: char) -> bool {
    matches!(piece, Piece::Part(Part::Brace(c)) if *c == brace)
}

/// All expansions of `pieces`; `None` when there are too many or they nest too deep.
fn alternatives<'a>(pieces: &[Piece<'a>], depth: usize) -> Option<Vec<Vec<Piece<'a>>>> {
    if depth > 16 {
        return None;
    }
    for open in 0..pieces.len() {
        if !is(pieces[open], '{') {
            continue;
        }
        let Some((close, commas)) = matching(pieces, open) else {
            continue;
        };
        let inside = &pieces[open + 1..close];
        let items: Vec<Vec<Piece<'a>>> = if commas.is_empty() {
            let Some(items) = sequence(inside) else {
                continue;
            };
            items.into_iter().map(|item| vec![item]).collect()
        } else {
            let mut bounds = vec![open];
            bounds.extend(commas);
            bounds.push(close);
            bounds
                .windows(2)
                .map(|pair| pieces[pair[0] + 1..pair[1]].to_vec())
                .collect()
        };
        let mut out = Vec::new();
        for item in items {
            let mut whole = pieces[..open].to_vec();
            let middle = alternatives(&item, depth + 1)?;
            let rests = alternatives(&pieces[close + 1..], depth + 1)?;
            for middle in &middle {
                for rest in &rests {
                    whole.truncate(open);
                    whole.extend_from_slice(middle);
                    whole.extend_from_slice(rest);
                    out.push(whole.clone());
                    if out.len() > MAX_WORDS {
                        return None;
                    }
                }
            }
        }
        return Some(out);
    }
    Some(vec![pieces.to_vec()])
}

/// The closing brace for the one at `open`, and the commas at its level.
fn matching(pieces: &[Piece<'_>], open: usize) -> Option<(usize, Vec<usize>)> {
    let mut depth = 0usize;
    let mut commas = Vec::new();
    for (at, piece) in pieces.iter().enumerate().skip(open) {
        if is(*piece, '{') {
            depth += 1;
        } else if is(*piece, '}') {
            depth -= 1;
            if depth == 0 {
                return Some((at, commas));
            }
        } else if depth == 1 && is(*piece, ',') {
            commas.push(at);
        }
    }
    None
}

/// `1..5`, `a..e`, `1..9..2`.
fn sequence<'a>(inside: &[Piece<'a>]) -> Option<Vec<Piece<'a>>> {
    let [Piece::Part(Part::Text(text))] = inside else {
        return None;
    };
    let mut ends = text.split("..");
    let (first, last, step) = (ends.next()?, ends.next()?, ends.next());
    let step: i64 = step.map_or(Some(1), |step| step.parse().ok())?;
    let step = usize::try_from(step.unsigned_abs()).ok()?.max(1);
    if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let many = first.abs_diff(last) / u64::try_from(step).ok()?;
        if many > u64::try_from(MAX_WORDS).ok()? {
            return None;
        }
        let numbers: Vec<i64> = if first <= last {
            (first..=last).step_by(step).collect()
        } else {
            (last..=first).rev().step_by(step).collect()
        };
        return Some(numbers.into_iter().map(Piece::Number).collect());
    }
    let letter = |text: &str| {
        text.bytes()
            .next()
            .filter(|b| text.len() == 1 && b.is_ascii_alphabetic())
    };
    let (first, last) = (letter(first)?, letter(last)?);
    let letters: Vec<u8> = if first <= last {
        (first..=last).step_by(step).collect()
    } else {
        (last..=first).rev().step_by(step).collect()
    };
    Some(
        letters
            .into_iter()
            .map(|b| Piece::Letter(char::from(b)))
            .collect(),
    )
}
