//! How two texts, and two configurations, differ: to be read.

use std::fmt::Write;

use headway_shared::config::edit::Change;

/// Lines around a change that are shown with it.
const AROUND: usize = 2;

/// The keys that change, one a line: from what to what, and when a running system takes it.
pub(super) fn keys(changes: &[Change]) -> String {
    let row = |change: &Change| {
        let values = format!("{} -> {}", change.old_text(), change.new_text());
        [change.key.path(), values, change.key.effect.to_string()]
    };
    rows(&changes.iter().map(row).collect::<Vec<_>>())
}

/// What stands above the keys that change.
pub(super) fn head(name: &str, count: usize) -> String {
    match count {
        0 => format!("{name}: no scheduling key changes, [guard] does\n"),
        1 => format!("{name}: 1 key changes\n"),
        count => format!("{name}: {count} keys change\n"),
    }
}

/// Columns below each other.
pub(super) fn rows(rows: &[[String; 3]]) -> String {
    let wide =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let (key, value) = (wide(0), wide(1));
    rows.iter()
        .map(|[path, values, effect]| format!("  {path:key$}  {values:value$}  {effect}\n"))
        .collect()
}

/// A unified difference of two texts; empty where they are the same.
pub(super) fn lines(name: &str, before: &str, after: &str) -> String {
    if before == after {
        return String::new();
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let steps = steps(&old, &new);
    let mut text = format!("--- {name}\n+++ {name}, promoted\n");
    // Writing to a `String` cannot fail.
    for range in hunks(&steps) {
        let count = |of: &[Step<'_>]| {
            let old = of.iter().filter(|step| step.is_old()).count();
            (old, of.iter().filter(|step| step.is_new()).count())
        };
        let (old_before, new_before) = count(&steps[..range.start]);
        let (old, new) = count(&steps[range.clone()]);
        let (old_first, new_first) = (old_before + 1, new_before + 1);
        let _ = writeln!(text, "@@ -{old_first},{old} +{new_first},{new} @@");
        for step in &steps[range.clone()] {
            let (sign, line) = match step {
                Step::Both(line) => (' ', line),
                Step::Old(line) => ('-', line),
                Step::New(line) => ('+', line),
            };
            let _ = writeln!(text, "{sign}{}", line.trim_end_matches(['\n', '\r']));
        }
    }
    text
}

#[derive(Clone, Copy, Debug)]
enum Step<'t> {
    Both(&'t str),
    Old(&'t str),
    New(&'t str),
}

impl Step<'_> {
    const fn is_old(&self) -> bool {
        !matches!(self, Self::New(_))
    }

    const fn is_new(&self) -> bool {
        !matches!(self, Self::Old(_))
    }
}

/// The shortest way from one list of lines to the other; takes time and room as their product.
fn steps<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Step<'t>> {
    // The longest common list of the lines from `i` and from `j` on.
    let mut common = vec![vec![0_u32; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i][j] = if old[i] == new[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut steps) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            steps.push(Step::Both(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[i + 1][j] >= common[i][j + 1]) {
            steps.push(Step::Old(old[i]));
            i += 1;
        } else {
            steps.push(Step::New(new[j]));
            j += 1;
        }
    }
    steps
}

/// Where something changes, with what is around it.
fn hunks(steps: &[Step<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut hunks: Vec<std::ops::Range<usize>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        if matches!(step, Step::Both(_)) {
            continue;
        }
        let (start, end) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(steps.len()));
        match hunks.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ => hunks.push(start..end),
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn a_difference_is_shown_with_two_lines_around_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let after = "a\nb\nc\nD\ne\nf\ng\nh\ni\nj\n";
        assert_eq!(
            lines("c.toml", before, after),
            "--- c.toml\n+++ c.toml, promoted\n@@ -2,5 +2,5 @@\n b\n c\n-d\n+D\n e\n f\n\
             @@ -8,2 +8,3 @@\n h\n i\n+j\n"
        );
        assert_eq!(lines("c.toml", before, before), "");
        assert_eq!(lines("c", "", "x\r\n"), "--- c\n+++ c, promoted\n@@ -1,0 +1,1 @@\n+x\n");
    }
}
