//! Choice of the loop for an operation and a type.

use crate::element::Element;
use crate::location::best;
use crate::number::{Arithmetic, Comparable, Integer};
use crate::operator::Operator;

/// Combines the elements of `from` with those of `into`, and stores the results in `into`. `from` has the
/// left operands if `is_lower`, otherwise the right ones.
///
/// # Panics
/// The operation does not apply to the type ([`Operator::check`]). The slices have different lengths, or not
/// whole elements or pairs.
pub fn combine(operator: Operator, element: Element, from: &[u8], into: &mut [u8], is_lower: bool) {
    let unit_len = element.len() * operator.unit();
    assert!(operator.check(element).is_ok(), "{operator} of {element}");
    assert!(from.len() == into.len() && into.len().is_multiple_of(unit_len), "lengths");
    match element {
        Element::Byte => integers::<i8>(operator, from, into, is_lower),
        Element::Char => integers::<u16>(operator, from, into, is_lower),
        Element::Short => integers::<i16>(operator, from, into, is_lower),
        Element::Boolean => booleans(operator, from, into),
        Element::Int => integers::<i32>(operator, from, into, is_lower),
        Element::Long => integers::<i64>(operator, from, into, is_lower),
        Element::Float => numbers::<f32>(operator, from, into, is_lower),
        Element::Double => numbers::<f64>(operator, from, into, is_lower),
    }
}

fn integers<T>(operator: Operator, from: &[u8], into: &mut [u8], is_lower: bool)
where
    T: Arithmetic + Integer + Comparable,
{
    match operator {
        Operator::Band => T::each(from, into, |a, b| a & b),
        Operator::Bor => T::each(from, into, |a, b| a | b),
        Operator::Bxor => T::each(from, into, |a, b| a ^ b),
        Operator::Land | Operator::Lor | Operator::Lxor => truths::<T>(operator, from, into),
        _ => numbers::<T>(operator, from, into, is_lower),
    }
}

/// Of octets that are 0 or 1, which the results are in any case.
fn booleans(operator: Operator, from: &[u8], into: &mut [u8]) {
    let logical = match operator {
        Operator::Band => Operator::Land,
        Operator::Bor => Operator::Lor,
        Operator::Bxor => Operator::Lxor,
        other => other,
    };
    truths::<u8>(logical, from, into);
}

fn truths<T: Integer>(operator: Operator, from: &[u8], into: &mut [u8]) {
    match operator {
        Operator::Land => T::each(from, into, |a, b| T::from_truth(a.is_true() & b.is_true())),
        Operator::Lor => T::each(from, into, |a, b| T::from_truth(a.is_true() | b.is_true())),
        Operator::Lxor => T::each(from, into, |a, b| T::from_truth(a.is_true() ^ b.is_true())),
        _ => unreachable!("{operator} is not logical"),
    }
}

fn numbers<T: Arithmetic + Comparable>(operator: Operator, from: &[u8], into: &mut [u8], is_lower: bool) {
    match operator {
        Operator::Max => T::each(from, into, T::maximum),
        Operator::Min => T::each(from, into, T::minimum),
        Operator::Sum => T::each(from, into, T::sum),
        Operator::Prod => T::each(from, into, T::product),
        Operator::Maxloc => locations::<T>(from, into, is_lower, |a, b| a > b),
        Operator::Minloc => locations::<T>(from, into, is_lower, |a, b| a < b),
        _ => unreachable!("{operator} is not arithmetic"),
    }
}

fn locations<T: Comparable>(from: &[u8], into: &mut [u8], is_lower: bool, is_better: impl Fn(T, T) -> bool) {
    if is_lower {
        T::each_pair(from, into, |from, into| best(from, into, &is_better));
    } else {
        T::each_pair(from, into, |from, into| best(into, from, &is_better));
    }
}
