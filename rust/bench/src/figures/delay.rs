//! Delay of a message whose sender or receiver computes after its call.
//!
//! The delay is measured beyond the time of a message that is waited for.

/// Nanoseconds.
pub(super) const LATE_MAX: f64 = 2e6;

/// Such a case beside messages of the same length that are waited for.
macro_rules! late {
    ($title:literal, $case:ident, $octets:expr) => {
        $crate::figures::Trial {
            ranks: 2,
            parts: &[
                ($crate::figures::Who::Ours, $crate::protocol::Case::$case, $octets),
                ($crate::figures::Who::Ours, $crate::protocol::Case::Buffers, $octets),
            ],
            asked: &[$crate::figures::Asked {
                title: $title,
                of: $crate::figures::Of::Beyond(0, 1),
                limit: $crate::figures::Limit::Most($crate::figures::delay::LATE_MAX),
            }],
        }
    };
}

pub(super) use late;
