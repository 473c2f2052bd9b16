//! How fast a replica decodes.

/// Tokens per second of each sequence, as a function of the number of sequences that decode
/// together.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodeLaw(Law);

#[derive(Clone, Debug, PartialEq)]
enum Law {
    Linear { base_sec: f64, per_sequence_sec: f64 },
    Table { points: Box<[(u32, f64)]> },
}

/// Why a decode law is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeLawError {
    /// A time of the linear law is negative or undefined, or a step would take no time.
    #[error("a decode step must take some time: neither time below 0, not both 0")]
    NoTime,
    /// The table has no row.
    #[error("the table has no row")]
    Empty,
    /// The batches of the table do not grow from row to row, starting at 1 or more.
    #[error("the batches must grow from row to row, from 1")]
    Order,
    /// A throughput is not a number above 0.
    #[error("every throughput must be above 0 tokens/s")]
    NoThroughput,
}

impl DecodeLaw {
    /// A decode step of `b` sequences gives each a token and takes
    /// `base_sec + per_sequence_sec * b` seconds: the weights are read once, the KV cache once
    /// per sequence.
    ///
    /// # Errors
    /// [`DecodeLawError::NoTime`].
    pub fn linear(base_sec: f64, per_sequence_sec: f64) -> Result<Self, DecodeLawError> {
        let each = base_sec >= 0.0 && per_sequence_sec >= 0.0;
        let sum = base_sec + per_sequence_sec;
        if each && sum > 0.0 && sum.is_finite() {
            Ok(Self(Law::Linear { base_sec, per_sequence_sec }))
        } else {
            Err(DecodeLawError::NoTime)
        }
    }

    /// Measured points (batch, tokens/s of the whole batch), joined by straight lines. Below the
    /// first point a sequence is as fast as there; beyond the last the throughput stays as it is.
    ///
    /// # Errors
    /// If there is no point, the batches do not grow, or a throughput is not above 0.
    pub fn table(points: Vec<(u32, f64)>) -> Result<Self, DecodeLawError> {
        if points.is_empty() {
            return Err(DecodeLawError::Empty);
        }
        if points[0].0 == 0 || points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err(DecodeLawError::Order);
        }
        if !points.iter().all(|&(_, tokens)| tokens > 0.0 && tokens.is_finite()) {
            return Err(DecodeLawError::NoThroughput);
        }
        Ok(Self(Law::Table { points: points.into() }))
    }

    /// Tokens per second of each of `batch` sequences; 0 for an empty batch.
    #[must_use]
    pub fn rate(&self, batch: u32) -> f64 {
        if batch == 0 {
            return 0.0;
        }
        match &self.0 {
            Law::Linear { base_sec, per_sequence_sec } => {
                1.0 / (base_sec + per_sequence_sec * f64::from(batch))
            }
            Law::Table { points } => table_rate(points, batch),
        }
    }
}

fn table_rate(points: &[(u32, f64)], batch: u32) -> f64 {
    let above = points.partition_point(|&(size, _)| size < batch);
    let total = match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
        (None, Some(&(size, tokens))) => return tokens / f64::from(size),
        (Some((from, low)), Some(&(to, high))) => {
            low + (high - low) * f64::from(batch - from) / f64::from(to - from)
        }
        (Some((_, last)), None) => last,
        (None, None) => return 0.0,
    };
    total / f64::from(batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_law_slows_every_sequence_by_the_batch() {
        let law = DecodeLaw::linear(0.01, 0.0025).unwrap();
        assert_eq!(law.rate(0), 0.0);
        assert_eq!(law.rate(1), 80.0);
        assert_eq!(law.rate(4), 50.0);
    }

    #[test]
    fn a_table_is_joined_by_straight_lines_and_level_beyond_its_ends() {
        let law = DecodeLaw::table(vec![(2, 100.0), (4, 160.0)]).unwrap();
        let total = |batch: u32| law.rate(batch) * f64::from(batch);
        assert_eq!(law.rate(1), 50.0);
        assert_eq!([total(2), total(3), total(4), total(8)], [100.0, 130.0, 160.0, 160.0]);
    }

    #[test]
    fn laws_that_cannot_be_are_refused() {
        assert_eq!(DecodeLaw::linear(0.0, 0.0), Err(DecodeLawError::NoTime));
        assert_eq!(DecodeLaw::linear(f64::NAN, 1.0), Err(DecodeLawError::NoTime));
        assert_eq!(DecodeLaw::table(vec![]), Err(DecodeLawError::Empty));
        assert_eq!(DecodeLaw::table(vec![(4, 1.0), (4, 2.0)]), Err(DecodeLawError::Order));
        assert_eq!(DecodeLaw::table(vec![(1, 0.0)]), Err(DecodeLawError::NoThroughput));
    }
}
