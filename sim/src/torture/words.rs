//! Small choices out of random words.

use headway_shared::digest::mix;

/// Takes small choices from a list of random words.
#[derive(Debug)]
pub struct Words {
    words: Vec<u32>,
    next: usize,
}

impl Words {
    /// These words, over and over.
    #[must_use]
    pub fn new(words: Vec<u32>) -> Self {
        Self { words, next: 0 }
    }

    /// The words of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        // Any number of words would do: more than a case takes.
        Self::new((0..256).map(|word| mix(mix(seed) ^ word) as u32).collect())
    }

    /// A number from 0 to `below` - 1.
    pub fn below(&mut self, below: u32) -> u32 {
        self.next += 1;
        let word = self.words.get((self.next - 1) % self.words.len().max(1));
        word.map_or(0, |word| word % below.max(1))
    }

    /// A number from `least` to `most`.
    pub fn range(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: u32) -> bool {
        self.below(times) == 0
    }

    /// One of them; there is at least one.
    pub fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices.get(self.below(choices.len() as u32) as usize).copied().unwrap_or("")
    }

    /// A time, of any kind.
    pub fn seconds(&mut self, mean: u32) -> String {
        match self.below(4) {
            0 => format!("{{ kind = \"constant\", sec = {mean} }}"),
            1 => format!("{{ kind = \"uniform\", min_sec = 0, max_sec = {} }}", 2 * mean),
            2 => format!("{{ kind = \"exponential\", mean_sec = {mean} }}"),
            _ => {
                format!(
                    "{{ kind = \"lognormal\", median_sec = {mean}, p99_sec = {} }}",
                    mean * 6 + 1
                )
            }
        }
    }
}
