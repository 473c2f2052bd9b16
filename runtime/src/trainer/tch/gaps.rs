/// Versions that a rollback has skipped: both numbers of a pair name the same parameters, and those
/// in between are lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Gaps(pub(super) Vec<(u32, u32)>);

impl Gaps {
    /// How many steps lie between two versions.
    pub(super) fn between(&self, one: u32, other: u32) -> u32 {
        let (old, new) = (one.min(other), one.max(other));
        let inside = self.0.iter().filter(|&&(from, to)| old <= from && to <= new);
        new - old - inside.map(|(from, to)| to - from).sum::<u32>()
    }

    /// Versions before `oldest` are not asked for any more.
    pub(super) fn forget_before(&mut self, oldest: u32) {
        self.0.retain(|&(from, _)| from >= oldest);
    }

    /// As a text of a checkpoint's header, such as `3-7 9-12`.
    pub(super) fn text(&self) -> String {
        let pairs: Vec<String> = self.0.iter().map(|(from, to)| format!("{from}-{to}")).collect();
        pairs.join(" ")
    }

    /// From such a text; what is no pair is left out.
    pub(super) fn read(text: &str) -> Self {
        let pair = |word: &str| {
            let (from, to) = word.split_once('-')?;
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from < to).then_some((from, to))
        };
        Self(text.split_whitespace().filter_map(pair).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_versions_are_no_steps() {
        let gaps = Gaps(vec![(3, 7), (9, 12)]);
        assert_eq!(Gaps::read(&gaps.text()), gaps);
        // 1 2 3=7 8 9=12 13
        assert_eq!(gaps.between(1, 13), 5);
        assert_eq!(gaps.between(8, 2), 2);
        assert_eq!(gaps.between(3, 7), 0);
        assert_eq!(gaps.between(13, 13), 0);
        assert_eq!(Gaps::read("7-3 x 4-"), Gaps::default());
    }
}
