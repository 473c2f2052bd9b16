//! Times of traces, in units of 100 ns, which is what the finest of them count in.

/// Ticks of a second.
pub(super) const TICKS_PER_SEC: u64 = 10_000_000;
/// Digits of a fraction of a second.
const DIGITS: usize = 7;

/// The ticks from the beginning of year 0 to `2023-11-16 18:15:46.6805900`; the fraction may have
/// fewer digits, or be missing.
pub(super) fn ticks(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(' ')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let valid = (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60
        && (1..=DIGITS).contains(&fraction.len());
    if !valid {
        return None;
    }
    let scale = (fraction.len()..DIGITS).fold(1, |scale, _| scale * 10);
    let ticks = number(fraction)? * scale;
    let days = days_before(year) + (1..month).map(|month| days_of(year, month)).sum::<u64>() + day;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(seconds * TICKS_PER_SEC + ticks)
}

/// Three numbers of these many digits.
fn numbers(text: &str, between: char, digits: [usize; 3]) -> Option<[u64; 3]> {
    let mut parts = text.split(between);
    let mut next = |digits| number(parts.next().filter(|part| part.len() == digits)?);
    let values = [next(digits[0])?, next(digits[1])?, next(digits[2])?];
    parts.next().is_none().then_some(values)
}

/// A number that is written in digits alone.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

const fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days of a month, which is from 1 to 12.
const fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days of the years before this one, in the Gregorian calendar.
const fn days_before(year: u64) -> u64 {
    let last = year.saturating_sub(1);
    year * 365 + last / 4 - last / 100 + last / 400
}

/// Ticks as seconds, in as few digits as say it exactly.
pub(super) fn seconds(ticks: u64) -> String {
    let (whole, fraction) = (ticks / TICKS_PER_SEC, ticks % TICKS_PER_SEC);
    if fraction == 0 {
        return whole.to_string();
    }
    let text = format!("{whole}.{fraction:07}");
    text.trim_end_matches('0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_across_days_months_and_leap_years() {
        let between = |from: &str, to: &str| ticks(to).unwrap() - ticks(from).unwrap();
        let day = 86_400 * TICKS_PER_SEC;
        assert_eq!(between("2023-12-31 23:59:59.9999999", "2024-01-01 00:00:00.0000000"), 1);
        assert_eq!(between("2024-02-28 00:00:00", "2024-03-01 00:00:00"), 2 * day);
        assert_eq!(between("2023-02-28 00:00:00", "2023-03-01 00:00:00"), day);
        assert_eq!(between("1900-02-28 00:00:00", "1900-03-01 00:00:00"), day);
        assert_eq!(between("2000-01-01 00:00:00", "2001-01-01 00:00:00"), 366 * day);
        assert_eq!(between("1970-01-01 00:00:00", "2023-11-16 00:00:00"), 19_677 * day);
        assert_eq!(between("2023-11-16 18:15:46", "2023-11-16 18:15:46.68"), 6_800_000);
    }

    #[test]
    fn what_is_no_time_is_not_taken_for_one() {
        for text in [
            "",
            "2023-11-16",
            "2023-11-16T18:15:46",
            "2023-11-16 18:15",
            "2023-11-16 18:15:46.",
            "2023-11-16 18:15:46.12345678",
            "2023-11-16 18:15:46.-1",
            "2023-02-29 18:15:46",
            "2023-13-01 18:15:46",
            "2023-11-00 18:15:46",
            "2023-11-16 24:00:00",
            "2023-11-16 18:60:00",
            "23-11-16 18:15:46",
            "2023-11-16 18:15:46 PM",
            "2023-11-+6 18:15:46",
        ] {
            assert_eq!(ticks(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_are_exact() {
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(43_145_490), "4.314549");
        assert_eq!(seconds(1), "0.0000001");
        assert_eq!(seconds(20_000_000), "2");
    }
}
