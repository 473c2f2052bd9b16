//! `v(k) = s + a k^p`, with an `a` for each stretch of training, fitted by quasi-likelihood.

/// The mean of values at one distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) k: f64,
    pub(super) value: f64,
    pub(super) weight: f64,
}

/// Where the search begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start<'m> {
    /// From the values, with a floor or without.
    Guess { has_floor: bool },
    /// Near another, of resampled values: only their spread matters.
    From(&'m Model),
}

/// The law of all stretches.
#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The variance at k = 0; 0 where there is known to be none. At [`Model::least`] it does not show.
    pub(super) floor: f64,
    pub(super) p: f64,
    pub(super) a: Vec<f64>,
    /// Smaller parts than this are none: no value would show them.
    pub(super) least: f64,
}

const MOST_ROUNDS: u32 = 60;
const MOST_HALVINGS: u32 = 12;
/// Longest step on the scale of logarithms.
const LONGEST: f64 = 2.0;

/// The powers of the distances, for one p.
fn power(k: f64, p: f64) -> (f64, f64) {
    if k <= 0.0 {
        return (0.0, 0.0);
    }
    let log = libm::log(k);
    (libm::exp(p * log), log)
}

impl Model {
    pub(super) fn variance(&self, stretch: usize, k: f64) -> f64 {
        self.floor + self.a[stretch] * power(k, self.p).0
    }

    /// The best, by Fisher scoring with the logarithms of `floor` and `a`, and `p` within 1 to 2.
    pub(super) fn fit(cells: &[Vec<Cell>], start: Start<'_>) -> Self {
        let mut model = match start {
            Start::Guess { has_floor } => Self::guess(cells, has_floor),
            Start::From(model) => model.clone(),
        };
        let mut misfit = model.misfit(cells);
        let close = match start {
            Start::Guess { .. } => 1e-11,
            Start::From(_) => 1e-8,
        };
        for _ in 0..MOST_ROUNDS {
            let step = Step::towards_best(&model, cells);
            let mut share = (LONGEST / step.longest()).min(1.0);
            let mut better = None;
            for _ in 0..MOST_HALVINGS {
                let next = model.moved(&step, share);
                let there = next.misfit(cells);
                if there < misfit {
                    better = Some((next, there));
                    break;
                }
                share *= 0.5;
            }
            let Some((next, there)) = better else { break };
            let done = misfit - there <= close * (1.0 + misfit.abs());
            (model, misfit) = (next, there);
            if done {
                break;
            }
        }
        model
    }

    /// The best of one stretch, with a power of its own.
    pub(super) fn of_stretch(&self, stretch: usize, cells: &[Cell]) -> Self {
        let near = Self { a: vec![self.a[stretch]], ..self.clone() };
        Self::fit(&[cells.to_vec()], Start::From(&near))
    }

    /// The best `a` of a stretch, by Fisher scoring with its logarithm, with this floor and power.
    pub(super) fn level(&self, cells: &[Cell], near: f64, p: f64) -> f64 {
        let mut a = near;
        for _ in 0..MOST_ROUNDS {
            let (mut gradient, mut information) = (0.0, 0.0);
            for cell in cells {
                let moved = a * power(cell.k, p).0;
                let variance = self.floor + moved;
                if variance > 0.0 {
                    let own = moved / variance;
                    gradient += cell.weight * own * (cell.value - variance) / variance;
                    information += cell.weight * own * own;
                }
            }
            let by = (gradient / information.max(1e-12)).clamp(-LONGEST, LONGEST);
            a = (a * libm::exp(by)).max(self.least);
            if by.abs() < 1e-9 {
                break;
            }
        }
        a
    }

    fn guess(cells: &[Vec<Cell>], has_floor: bool) -> Self {
        const P: f64 = 1.4;
        let all = || cells.iter().flatten().filter(|cell| cell.value > 0.0);
        let smallest = all().map(|cell| cell.value).fold(f64::INFINITY, f64::min);
        let furthest = all().map(|cell| cell.k).fold(1.0, f64::max);
        // What the smallest value would not show, also if it is that of the largest distance.
        let least = 1e-3 * smallest / (furthest * furthest);
        let (mut sum, mut weight) = (0.0, 0.0);
        for cell in cells.iter().flatten().filter(|cell| cell.k == 0.0) {
            sum += cell.weight * cell.value;
            weight += cell.weight;
        }
        let floor = match has_floor {
            true if weight > 0.0 => (sum / weight).max(least),
            true => (0.1 * smallest).max(least),
            false => 0.0,
        };
        let a = cells
            .iter()
            .map(|stretch| {
                let (mut sum, mut weight) = (0.0, 0.0);
                for cell in stretch.iter().filter(|cell| cell.k > 0.0) {
                    let moved = (cell.value - floor).max(0.1 * cell.value);
                    sum += cell.weight * moved / power(cell.k, P).0;
                    weight += cell.weight;
                }
                if weight > 0.0 { (sum / weight).max(least) } else { least }
            })
            .collect();
        Self { floor, p: P, a, least }
    }

    fn moved(&self, step: &Step, share: f64) -> Self {
        let along = |value: f64, by: f64| (value * libm::exp(share * by)).max(self.least);
        Self {
            floor: if self.floor > 0.0 { along(self.floor, step.floor) } else { 0.0 },
            p: (self.p + share * step.p).clamp(1.0, 2.0),
            a: self.a.iter().zip(&step.a).map(|(&a, &by)| along(a, by)).collect(),
            least: self.least,
        }
    }

    /// Half the gamma deviance, but for a constant: `sum(weight (y / v + log v)) / sum(weight)`.
    fn misfit(&self, cells: &[Vec<Cell>]) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (stretch, &a) in cells.iter().zip(&self.a) {
            for cell in stretch {
                let variance = self.floor + a * power(cell.k, self.p).0;
                sum += cell.weight * (cell.value / variance + libm::log(variance));
                weights += cell.weight;
            }
        }
        sum / weights
    }
}

/// A step of Fisher scoring.
struct Step {
    floor: f64,
    p: f64,
    a: Vec<f64>,
}

/// Gradient and information of what all stretches share (floor, p) and of one stretch's `a`.
#[derive(Clone, Copy, Default)]
struct Part {
    gradient: f64,
    information: f64,
    /// With floor and p.
    with: [f64; 2],
}

impl Step {
    /// Solves the normal equations: the stretches have only floor and p in common.
    fn towards_best(model: &Model, cells: &[Vec<Cell>]) -> Self {
        let mut gradient = [0.0; 2];
        let mut information = [[0.0; 2]; 2];
        let mut parts = Vec::with_capacity(cells.len());
        for (stretch, &a) in cells.iter().zip(&model.a) {
            let mut part = Part::default();
            for cell in stretch {
                let (power, log) = power(cell.k, model.p);
                let variance = model.floor + a * power;
                let off = cell.weight * (cell.value - variance) / variance;
                // Relative changes of the variance by floor, p and a.
                let shared = [model.floor / variance, a * power * log / variance];
                let own = a * power / variance;
                part.gradient += off * own;
                part.information += cell.weight * own * own;
                for (row, &by) in shared.iter().enumerate() {
                    gradient[row] += off * by;
                    part.with[row] += cell.weight * by * own;
                    for (column, &other) in shared.iter().enumerate() {
                        information[row][column] += cell.weight * by * other;
                    }
                }
            }
            parts.push(part);
        }
        Self::solved(model, gradient, information, &parts)
    }

    fn solved(
        model: &Model,
        mut gradient: [f64; 2],
        mut information: [[f64; 2]; 2],
        parts: &[Part],
    ) -> Self {
        // What shows nowhere does not move.
        let over = |part: &Part, value: f64| value / part.information.max(1e-12);
        for part in parts {
            for row in 0..2 {
                gradient[row] -= over(part, part.with[row] * part.gradient);
                for (value, with) in information[row].iter_mut().zip(part.with) {
                    *value -= over(part, part.with[row] * with);
                }
            }
        }
        let mut shared = solve(information, gradient);
        let outward = (model.p <= 1.0 && shared[1] < 0.0) || (model.p >= 2.0 && shared[1] > 0.0);
        if outward {
            shared = [gradient[0] / information[0][0].max(1e-12), 0.0];
        }
        let a = parts
            .iter()
            .map(|part| {
                let others = part.with[0] * shared[0] + part.with[1] * shared[1];
                over(part, part.gradient - others)
            })
            .collect();
        Self { floor: shared[0], p: shared[1], a }
    }

    fn longest(&self) -> f64 {
        let of_a = self.a.iter().fold(0.0, |longest: f64, by| longest.max(by.abs()));
        of_a.max(self.floor.abs()).max(self.p.abs()).max(1e-300)
    }
}

/// Two equations, a little towards the gradient where they say the same.
fn solve(matrix: [[f64; 2]; 2], right: [f64; 2]) -> [f64; 2] {
    let ridge = 1e-9 * (matrix[0][0] + matrix[1][1]) + 1e-12;
    let [[a, b], [_, d]] = matrix;
    let (a, d) = (a + ridge, d + ridge);
    let determinant = a * d - b * b;
    [(d * right[0] - b * right[1]) / determinant, (a * right[1] - b * right[0]) / determinant]
}
