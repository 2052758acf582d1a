//! The predefined operations of reductions on octets in native byte order.
//!
//! Pure: [`combine`] applies an [`Operator`] to two slices of elements, of any alignment. One loop for each
//! operator and element type, which the compiler vectorises.
//!
//! | operators | elements | result |
//! |---|---|---|
//! | MAX, MIN | all but boolean | char has no sign; floats below |
//! | SUM, PROD | all but boolean | integers wrap |
//! | LAND, LOR, LXOR | all but float and double | 0 is false, all else true; the result is 0 or 1 |
//! | BAND, BOR, BXOR | all but float and double | of boolean as LAND, LOR, LXOR |
//! | MAXLOC, MINLOC | pairs of all but boolean | the pair with the extreme value, see below |
//!
//! A pair is a value and an index of one type. Of equal values the smaller index wins.
//!
//! Every operator but MAXLOC and MINLOC gives the same bits when its operands are exchanged, so that results
//! do not depend on the algorithm's choice of the left operand. For floats that takes three rules:
//!
//! - A NaN never wins against a number: MAX and MIN return the number. Two NaNs, and sums and products that
//!   are NaN, give the NaN of Java (`Float.NaN`, `Double.NaN`), without a payload.
//! - -0.0 is less than 0.0 for MAX and MIN, as for `Math.max`.
//! - MAXLOC and MINLOC copy the winning pair as it is. Values compare as in Java and C, so 0.0 and -0.0 are
//!   equal; of two NaNs the smaller index wins; of pairs that are equal in all, the left one.
#![forbid(unsafe_code)]

mod element;
mod kernel;
mod location;
mod number;
mod operator;

pub use element::Element;
pub use kernel::combine;
pub use operator::{Operator, Unsupported};
