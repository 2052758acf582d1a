//! A clock that costs a few nanoseconds to read: the time stamp counter, where the system uses it as well.

#[cfg(not(target_arch = "aarch64"))]
use std::sync::OnceLock;
use std::time::Instant;

/// Ticks since some moment, the same moment for all threads of the process. The counter has no order with
/// other instructions of the thread: a difference is exact to some tens of nanoseconds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn now() -> u64 {
    if is_counter_steady() {
        // SAFETY: every x86-64 processor has the instruction, and it has no operands.
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    nanoseconds()
}

/// Ticks since some moment, the same moment for all threads of the process.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
pub fn now() -> u64 {
    let ticks: u64;
    // SAFETY: Linux lets programs read this counter. The instruction changes one register.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// Ticks since some moment, the same moment for all threads of the process.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
pub fn now() -> u64 {
    nanoseconds()
}

/// Whether the counter has one rate on all processors and in all their states (invariant TSC).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn is_counter_steady() -> bool {
    static STEADY: OnceLock<bool> = OnceLock::new();
    *STEADY.get_or_init(|| {
        const POWER: u32 = 0x8000_0007;
        const INVARIANT: u32 = 1 << 8;
        std::arch::x86_64::__cpuid(0x8000_0000).eax >= POWER
            && std::arch::x86_64::__cpuid(POWER).edx & INVARIANT != 0
    })
}

/// Nanoseconds since the first call, for processors without a steady counter.
#[cfg(not(target_arch = "aarch64"))]
#[cold]
fn nanoseconds() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A moment by both clocks. Two of them give the rate of the ticks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    ticks: u64,
    at: Instant,
}

impl Moment {
    /// This moment. Of several readings of both clocks it is the one that was interrupted least.
    #[must_use]
    pub fn now() -> Moment {
        const READINGS: usize = 8;
        let read = |_| {
            let (before, ticks, at) = (Instant::now(), now(), Instant::now());
            (at.duration_since(before), Moment { ticks, at })
        };
        let readings: [_; READINGS] = std::array::from_fn(read);
        let best = readings.iter().min_by_key(|(interruption, _)| *interruption);
        best.map_or(readings[0].1, |(_, moment)| *moment)
    }

    /// Its ticks.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Nanoseconds of a tick, from the time between an earlier moment and this one. 1 if no time has passed.
    #[must_use]
    pub fn tick_since(&self, earlier: &Moment) -> f64 {
        let ticks = self.ticks.saturating_sub(earlier.ticks);
        let time = self.at.saturating_duration_since(earlier.at);
        if ticks == 0 { 1.0 } else { time.as_nanos() as f64 / ticks as f64 }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ticks_follow_the_monotonic_clock() {
        let first = Moment::now();
        while first.at.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let second = Moment::now();
        while second.at.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let third = Moment::now();
        let tick = second.tick_since(&first);
        let measured = (third.ticks() - second.ticks()) as f64 * tick;
        let expected = third.at.duration_since(second.at).as_nanos() as f64;
        assert!((measured / expected - 1.0).abs() < 0.5, "{measured} ns in {expected} ns");
    }

    #[test]
    fn moment_without_a_later_one_has_a_tick_of_one_nanosecond() {
        let moment = Moment::now();
        assert!((moment.tick_since(&moment) - 1.0).abs() < f64::EPSILON);
    }
}
