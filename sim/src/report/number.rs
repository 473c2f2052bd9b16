//! The one place where a result's number becomes text.
//!
//! CSV, JSON, tables and axis labels all come through here, so that one value never reads in two
//! ways. Only decimal formatting of the standard library is used, which rounds exactly and alike
//! on every platform.

use serde_json::{Number, Value};

/// Significant digits of a value in CSV and JSON.
pub const DIGITS: usize = 6;

/// Whole numbers up to here are written whole: 2^53, where `f64` stops counting by one.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// A value for CSV: whole numbers as they are, others rounded to [`DIGITS`] significant digits;
/// an empty text where there is no finite number.
#[must_use]
pub fn text(value: f64) -> String {
    if !value.is_finite() {
        return String::new();
    }
    if value.trunc() == value && value.abs() < WHOLE {
        // Adding zero turns -0 into 0.
        return format!("{:.0}", value + 0.0);
    }
    layout(value, DIGITS)
}

/// [`text`] of a value that may be missing.
#[must_use]
pub fn cell(value: Option<f64>) -> String {
    value.map_or_else(String::new, text)
}

/// The value of a CSV cell: `None` for an empty one or for what is no finite number.
#[must_use]
pub fn parse(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|value: &f64| value.is_finite())
}

/// The same value for JSON: `null` where there is no finite number.
#[must_use]
pub fn json(value: Option<f64>) -> Value {
    let text = cell(value);
    if let Ok(whole) = text.parse::<i64>() {
        return Value::from(whole);
    }
    parse(&text).and_then(Number::from_f64).map_or(Value::Null, Value::Number)
}

/// A value for people: three significant digits, thousands in groups; `-` where there is none.
#[must_use]
pub fn short(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return "-".into() };
    if value.abs() < 999.5 {
        return layout(value, 3);
    }
    if value.abs() >= WHOLE {
        return layout(value, 3);
    }
    grouped(&format!("{value:.0}"))
}

/// A ratio for people: four significant digits, since what matters is how far it is from 1.
#[must_use]
pub fn ratio(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(|| "-".into(), |value| layout(value, 4))
}

/// A mean with the half-width of its interval, for people, both to the same place: two significant
/// digits of the half-width, and no more than three of the mean. Without an interval as [`short`]
/// has it.
#[must_use]
pub fn interval(mean: Option<f64>, half_width: Option<f64>) -> String {
    let known = |value: Option<f64>| value.filter(|value| value.is_finite());
    let (Some(value), Some(half)) = (known(mean), known(half_width)) else { return short(mean) };
    if half == 0.0 {
        return format!("{} ±0", short(mean));
    }
    let exponent = |value: f64| -> i32 {
        let text = format!("{value:.1e}");
        text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
    };
    let mean_places = if value == 0.0 { i32::MAX } else { 2 - exponent(value) };
    let decimals = usize::try_from((1 - exponent(half)).min(mean_places)).unwrap_or(0);
    let write = |value: f64| {
        let text = format!("{:.decimals$}", value + 0.0);
        let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
        let point = if rest.is_empty() { "" } else { "." };
        format!("{}{point}{rest}", grouped(whole))
    };
    format!("{} ±{}", write(value), write(half))
}

/// A share from 0 to 1 as a percentage for people.
#[must_use]
pub fn percent(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(share) => format!("{:.1}%", share * 100.0 + 0.0),
        None => "-".into(),
    }
}

/// Groups the digits of a whole number by thousands.
fn grouped(whole: &str) -> String {
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Rounds to `digits` significant digits and writes the shortest decimal of the result; beyond
/// 10^-5 and 10^16 with an exponent, where JSON writes one too.
fn layout(value: f64, digits: usize) -> String {
    let scientific = format!("{:.*e}", digits.saturating_sub(1), value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return "0".into();
    }
    let places = digits.len() as i32;
    match exponent {
        -5..0 => format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize)),
        0..16 if exponent + 1 >= places => {
            format!("{sign}{digits}{}", "0".repeat((exponent + 1 - places) as usize))
        }
        0..16 => {
            let (whole, rest) = digits.split_at((exponent + 1) as usize);
            format!("{sign}{whole}.{rest}")
        }
        _ if places == 1 => format!("{sign}{digits}e{exponent}"),
        _ => format!("{sign}{}.{}e{exponent}", &digits[..1], &digits[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_six_digits_and_written_short() {
        assert_eq!(text(0.1 + 0.2), "0.3");
        assert_eq!(text(1.0 / 3.0), "0.333333");
        assert_eq!(text(2.0e5 / 3.0), "66666.7");
        assert_eq!(text(-1234.5678), "-1234.57");
        assert_eq!(text(0.000_012_345_678), "0.0000123457");
        assert_eq!(text(1.5e-9), "1.5e-9");
        assert_eq!(text(1e21), "1e21");
        assert_eq!(text(-0.0), "0");
    }

    #[test]
    fn whole_numbers_keep_every_digit() {
        assert_eq!(text(123_456_789.0), "123456789");
        assert_eq!(short(Some(1_234_567.0)), "1,234,567");
        assert_eq!(short(Some(-1234.4)), "-1,234");
    }

    #[test]
    fn what_is_no_number_is_an_empty_cell_and_null() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(text(value), "");
            assert_eq!(json(Some(value)), Value::Null);
            assert_eq!(short(Some(value)), "-");
        }
        assert_eq!(parse(""), None);
        assert_eq!(parse("NaN"), None);
    }

    #[test]
    fn people_read_three_digits() {
        assert_eq!(short(Some(999.4)), "999");
        assert_eq!(short(Some(999.6)), "1,000");
        assert_eq!(short(Some(0.012_345)), "0.0123");
        assert_eq!(percent(Some(0.1234)), "12.3%");
        assert_eq!(percent(None), "-");
        assert_eq!(interval(Some(1234.567), Some(12.34)), "1,235 ±12");
        assert_eq!(interval(Some(0.873_4), Some(0.015_6)), "0.873 ±0.016");
        assert_eq!(interval(Some(218.2), Some(3.4)), "218 ±3");
        assert_eq!(interval(Some(0.001), Some(0.8)), "0.00 ±0.80");
        assert_eq!(interval(Some(2.0), Some(0.0)), "2 ±0");
        assert_eq!(interval(Some(2.0), None), "2");
    }

    proptest::proptest! {
        #[test]
        fn json_and_csv_read_alike(value in proptest::num::f64::NORMAL) {
            let parsed = parse(&text(value));
            proptest::prop_assert_eq!(json(Some(value)).as_f64(), parsed);
            // Writing what was read changes nothing.
            proptest::prop_assert_eq!(cell(parsed), text(value));
        }
    }
}
