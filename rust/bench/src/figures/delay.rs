//! Delay of a message whose sender or receiver computes after its call.
//!
//! The time of a message between ranks that wait is subtracted.

/// Limit of the delay in nanoseconds.
pub(super) const LATE_MAX: f64 = 2e6;

/// Such a case beside messages of the same length between ranks that wait.
macro_rules! late {
    ($title:literal, $case:ident, $octets:expr) => {
        $crate::figures::Comparison {
            ranks: 2,
            parts: &[
                ($crate::figures::Role::Ours, $crate::protocol::Case::$case, $octets),
                ($crate::figures::Role::Ours, $crate::protocol::Case::Buffers, $octets),
            ],
            targets: &[$crate::figures::Target {
                title: $title,
                quantity: $crate::figures::Quantity::Beyond(0, 1),
                limit: $crate::figures::Limit::Most($crate::figures::delay::LATE_MAX),
            }],
        }
    };
}

pub(super) use late;
