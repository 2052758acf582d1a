//! Times and octets as tables show them.

/// A time with three digits at least.
#[must_use]
pub fn time(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", seconds * 1e6),
        10_000_000..10_000_000_000 => format!("{:.1} ms", seconds * 1e3),
        _ => format!("{seconds:.1} s"),
    }
}

/// Octets in the largest unit that leaves a number of one or more.
#[must_use]
pub fn octets(octets: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if octets < 1024 {
        return format!("{octets} B");
    }
    let mut value = octets as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A part of a whole in percent; 0 of nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_octets_have_the_unit_of_their_size() {
        let times = [0, 9_999, 10_000, 9_999_999, 10_000_000, 123_400_000_000].map(time);
        assert_eq!(times, ["0 ns", "9999 ns", "10.0 us", "10000.0 us", "10.0 ms", "123.4 s"]);
        let sizes = [0, 1023, 1024, 1536 << 10, u64::MAX].map(octets);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "16384.0 PiB"]);
        assert!((percent(1, 4) - 25.0).abs() < 1e-9 && percent(1, 0).abs() < 1e-9);
    }
}
