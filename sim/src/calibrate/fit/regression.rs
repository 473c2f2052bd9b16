//! Durations that are sums of parts: least squares with parts that are not negative.

use super::maximum::inverse;
use super::{FitError, Parameter, t_upper};

/// Fewer points than this say nothing of how far they lie from a line.
const LEAST_POINTS: usize = 5;
/// No interval is narrower than this part of its value: times are rounded to nanoseconds.
const ROUNDING: f64 = 1e-9;

/// `y = base + slope * x`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// What does not depend on x; at least 0.
    pub base: Parameter,
    /// What one more of x adds; at least 0.
    pub slope: Parameter,
    /// The standard deviation of y about the line, of a point of average weight.
    pub residual: f64,
    /// The share of y's variance that the line explains.
    pub r_squared: f64,
    /// Points.
    pub count: usize,
}

/// `y = first * x_1 + second * x_2`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// What one more of the first adds; at least 0.
    pub first: Parameter,
    /// What one more of the second adds; at least 0.
    pub second: Parameter,
    /// The standard deviation of y about the plane, of a point of average weight.
    pub residual: f64,
    /// The share of y's variance that the plane explains.
    pub r_squared: f64,
    /// Points.
    pub count: usize,
}

/// Fits `y = base + slope * x` by ordinary least squares with `base` and `slope` at least 0.
///
/// Intervals are 90%, by Student's t with standard errors that hold whether or not all points are
/// equally far from the line (HC3: MacKinnon and White, 1985; Long and Ervin, 2000, who advise it for
/// fewer than 250 points). They are those of the free fit, cut at 0; where a part is held at 0, the
/// interval of the other is extended to its estimate.
///
/// # Errors
/// If there are fewer than five points, columns differ in length, a number is infinite or none, or
/// all x are the same.
pub fn line(xs: &[f64], ys: &[f64]) -> Result<Line, FitError> {
    let ones = vec![1.0; xs.len()];
    let Plane { first, second, residual, r_squared, count } = plane(&ones, xs, ys, &ones)?;
    Ok(Line { base: first, slope: second, residual, r_squared, count })
}

/// Fits `y = first * x_1 + second * x_2` by weighted least squares, both at least 0, with intervals
/// as [`line()`] has them. A weight is how much a point tells: one over the variance of its y, in any
/// unit, and if it is only about right, so are the estimates, and the intervals hold none the less.
///
/// So `duration = tokens * (base + per_sequence * sequences)` has x_1 = tokens, x_2 = tokens *
/// sequences, and, where the error of a token's time is as large for all, the weight 1 / tokens.
///
/// # Errors
/// As for [`line()`], where all x_2 / x_1 are the same, or if a weight is not above 0.
pub fn plane(
    firsts: &[f64],
    seconds: &[f64],
    ys: &[f64],
    weights: &[f64],
) -> Result<Plane, FitError> {
    let points = points(firsts, seconds, ys, weights)?;
    let free = solve(&points).ok_or(FitError::Undetermined(
        "the two parts of the durations grow in step: nothing tells them apart",
    ))?;
    let at = held(&points, free.at);
    let count = points.len();
    let t = t_upper(count as f64 - 2.0);
    let interval = |part: usize| {
        let width = t * free.variances[part].max(0.0).sqrt();
        let rounding = ROUNDING * at[part];
        let low = (free.at[part] - width).min(at[part] - rounding);
        let high = (free.at[part] + width).max(at[part] + rounding);
        Parameter { value: at[part], low, high }.not_negative()
    };
    let sum = |of: &dyn Fn(&Point) -> f64| {
        points.iter().fold(0.0, |sum, point| sum + point.weight * of(point))
    };
    let mean = sum(&|point| point.y) / sum(&|_| 1.0);
    let total = sum(&|point| (point.y - mean) * (point.y - mean));
    let left = sum(&|point| {
        let error = point.error(at);
        error * error
    });
    Ok(Plane {
        first: interval(0),
        second: interval(1),
        residual: (left / (count as f64 - 2.0)).sqrt(),
        r_squared: if total > 0.0 { (1.0 - left / total).max(0.0) } else { 1.0 },
        count,
    })
}

#[derive(Clone, Copy, Debug)]
struct Point {
    x: [f64; 2],
    y: f64,
    /// Of average 1.
    weight: f64,
}

impl Point {
    fn error(&self, at: [f64; 2]) -> f64 {
        self.y - at[0] * self.x[0] - at[1] * self.x[1]
    }
}

fn points(
    firsts: &[f64],
    seconds: &[f64],
    ys: &[f64],
    weights: &[f64],
) -> Result<Vec<Point>, FitError> {
    for column in [seconds, ys, weights] {
        if column.len() != firsts.len() {
            return Err(FitError::Uneven { left: firsts.len(), right: column.len() });
        }
    }
    let found = firsts.len();
    if found < LEAST_POINTS {
        return Err(FitError::TooFew { of: "points", found, needed: LEAST_POINTS });
    }
    for column in [firsts, seconds, ys, weights] {
        if let Some(index) = column.iter().position(|value| !value.is_finite()) {
            return Err(FitError::NotASize { index, value: column[index] });
        }
    }
    if let Some(index) = weights.iter().position(|&weight| weight <= 0.0) {
        return Err(FitError::NotASize { index, value: weights[index] });
    }
    let average = weights.iter().fold(0.0, |sum, weight| sum + weight) / found as f64;
    let point = |at: usize| Point {
        x: [firsts[at], seconds[at]],
        y: ys[at],
        weight: weights[at] / average,
    };
    Ok((0..found).map(point).collect())
}

/// Estimates that may be negative, and their variances.
struct Free {
    at: [f64; 2],
    variances: [f64; 2],
}

/// Least squares with HC3's variances; `None` where the columns are proportional.
fn solve(points: &[Point]) -> Option<Free> {
    let mut moments = [[0.0; 2]; 2];
    let mut sums = [0.0; 2];
    for Point { x, y, weight } in points {
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum += weight * x[row] * y;
            for (column, x_column) in x.iter().enumerate() {
                moments[row][column] += weight * x[row] * x_column;
            }
        }
    }
    let inverse = inverse(moments)?;
    // Rounding alone makes proportional columns seem a little different.
    if inverse[0][0] * moments[0][0] > 1e12 {
        return None;
    }
    let along = |x: [f64; 2]| inverse.map(|row| row[0] * x[0] + row[1] * x[1]);
    let at = along(sums);
    let mut variances = [0.0; 2];
    for point in points {
        let moved = along(point.x);
        let leverage = point.weight * (point.x[0] * moved[0] + point.x[1] * moved[1]);
        let error = point.weight * point.error(at) / (1.0 - leverage).max(1e-6);
        for (variance, moved) in variances.iter_mut().zip(moved) {
            *variance += moved * error * moved * error;
        }
    }
    Some(Free { at, variances })
}

/// The best that is not negative: where the free fit has a negative part, it is none, and the other
/// is fitted alone.
fn held(points: &[Point], free: [f64; 2]) -> [f64; 2] {
    let alone = |part: usize| {
        let (above, below) = points.iter().fold((0.0, 0.0), |(above, below), point| {
            let along = point.weight * point.x[part];
            (above + along * point.y, below + along * point.x[part])
        });
        (above / below).max(0.0)
    };
    match free {
        [first, second] if first >= 0.0 && second >= 0.0 => free,
        [first, _] if first < 0.0 => [0.0, alone(1)],
        _ => [alone(0), 0.0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_textbook_numbers() {
        // Anscombe's first set: y = 3.0001 + 0.5001 x, residual 1.2366, R^2 0.6665.
        let xs = [10.0, 8.0, 13.0, 9.0, 11.0, 14.0, 6.0, 4.0, 12.0, 7.0, 5.0];
        let ys = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68];
        let found = line(&xs, &ys).unwrap();
        assert!((found.base.value - 3.000_091).abs() < 1e-6, "{found:?}");
        assert!((found.slope.value - 0.500_090_9).abs() < 1e-6);
        assert!((found.residual - 1.236_603).abs() < 1e-6);
        assert!((found.r_squared - 0.666_542).abs() < 1e-6);
        assert!(found.slope.low > 0.2 && found.slope.high < 0.8);
    }

    #[test]
    fn points_on_a_line_give_it_exactly() {
        let xs = [100.0, 250.0, 300.0, 700.0, 1_000.0, 1_100.0];
        let ys = xs.map(|x| 2.5 + 0.004 * x);
        let found = line(&xs, &ys).unwrap();
        assert!(found.base.holds(2.5) && found.slope.holds(0.004), "{found:?}");
        assert!(found.slope.high - found.slope.low < 1e-8);
        assert!(found.r_squared > 1.0 - 1e-12);
    }

    #[test]
    fn a_part_that_would_be_negative_is_none() {
        let xs = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let falling = line(&xs, &xs.map(|x| 10.0 - x)).unwrap();
        assert_eq!((falling.slope.value, falling.slope.low), (0.0, 0.0));
        assert!((falling.base.value - 6.5).abs() < 1e-12);
        let steep = line(&xs, &xs.map(|x| 2.0 * x - 1.0)).unwrap();
        assert_eq!((steep.base.value, steep.base.low), (0.0, 0.0));
        assert!(steep.slope.value > 1.7 && steep.slope.holds(2.0));
    }

    #[test]
    fn weights_count_points_as_often() {
        let (xs, ys) = ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.5, 2.0, 4.5, 4.0]);
        let twice = [1.0, 2.0, 3.0, 4.0, 5.0, 5.0, 5.0];
        let doubled = line(&twice, &[1.0, 2.5, 2.0, 4.5, 4.0, 4.0, 4.0]).unwrap();
        let weighted = plane(&[1.0; 5], &xs, &ys, &[1.0, 1.0, 1.0, 1.0, 3.0]).unwrap();
        assert!((weighted.first.value - doubled.base.value).abs() < 1e-12);
        assert!((weighted.second.value - doubled.slope.value).abs() < 1e-12);
    }

    #[test]
    fn what_cannot_be_told_apart_is_an_error() {
        let same = line(&[3.0; 8], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!(matches!(same, Err(FitError::Undetermined(_))));
        assert!(matches!(line(&[1.0], &[1.0]), Err(FitError::TooFew { found: 1, .. })));
        assert!(matches!(line(&[1.0, 2.0], &[1.0]), Err(FitError::Uneven { .. })));
        let none = line(&[1.0, 2.0, 3.0, 4.0, f64::NAN], &[1.0; 5]);
        assert!(matches!(none, Err(FitError::NotASize { index: 4, .. })));
    }
}
