//! Least squares with instruments, of up to four numbers.

use super::{Overlap, Row};

/// Sums over turns: instruments by regressors, and instruments by durations.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    products: [[f64; 4]; 4],
    durations: [f64; 4],
}

impl Sums {
    /// Sums over the turns, but for those of one block of time.
    pub(super) fn of(rows: &[Row], but: Option<usize>) -> Self {
        let mut sums = Self::default();
        for row in rows.iter().filter(|row| Some(row.block) != but) {
            sums.add(row);
        }
        sums
    }

    fn add(&mut self, row: &Row) {
        let Row { tokens, duration, overlap: Overlap { batch, step, load, .. }, .. } = *row;
        let regressors = [tokens, tokens * batch, step, load];
        // Weighted by 1/n.
        let instruments = [1.0, batch, step / duration, load / duration];
        for (instrument, sums) in instruments.iter().zip(&mut self.products) {
            for (regressor, sum) in regressors.iter().zip(sums) {
                *sum += instrument * regressor;
            }
        }
        for (instrument, sum) in instruments.iter().zip(&mut self.durations) {
            *sum += instrument * duration;
        }
    }
}

/// The numbers that are used, the others 0. Where the turns do not tell them apart, first the second
/// is none (all batches are alike), then the last two; `None`: nothing is left.
pub(super) fn solve(sums: &Sums, used: [bool; 4]) -> Option<[f64; 4]> {
    let [base, per, step, load] = used;
    let tries =
        [used, [base, false, step, load], [base, per, false, false], [true, false, false, false]];
    tries.into_iter().find_map(|used| {
        let places: Vec<usize> = (0..4).filter(|&at| used[at]).collect();
        let found = eliminated(sums, &places)?;
        let mut law = [0.0; 4];
        places.iter().zip(found).for_each(|(&place, value)| law[place] = value);
        Some(law)
    })
}

/// Gauss with the largest pivot of each column.
fn eliminated(sums: &Sums, places: &[usize]) -> Option<Vec<f64>> {
    let size = places.len();
    let mut rows: Vec<Vec<f64>> = places
        .iter()
        .map(|&row| {
            let products = places.iter().map(|&column| sums.products[row][column]);
            products.chain([sums.durations[row]]).collect()
        })
        .collect();
    for column in 0..size {
        let size_of =
            |row: &Vec<f64>| row[..size].iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        let pivot = (column..size).max_by(|&a, &b| {
            (rows[a][column].abs() / size_of(&rows[a]).max(1e-300))
                .total_cmp(&(rows[b][column].abs() / size_of(&rows[b]).max(1e-300)))
        })?;
        let largest = sums.products[places[column]][places[column]].abs().max(1e-300);
        if rows[pivot][column].abs() <= 1e-9 * largest {
            return None;
        }
        rows.swap(column, pivot);
        let top = rows[column].clone();
        for row in rows.iter_mut().skip(column + 1) {
            let factor = row[column] / top[column];
            for (value, above) in row.iter_mut().zip(&top) {
                *value -= factor * above;
            }
        }
    }
    let mut found = vec![0.0; size];
    for row in (0..size).rev() {
        let known =
            (row + 1..size).fold(0.0, |sum, column| sum + rows[row][column] * found[column]);
        found[row] = (rows[row][size] - known) / rows[row][row];
    }
    found.iter().all(|value| value.is_finite()).then_some(found)
}
