//! Every operation on every type compared with one element at a time in wide arithmetic.

use mpjdev_reduction::{Element, Operator, Unsupported, combine};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::Config;

/// Cases, twenty-five times as many with MPJDEV_SOAK.
fn cases() -> u32 {
    if std::env::var_os("MPJDEV_SOAK").is_some() { 100_000 } else { 4_000 }
}

/// An element of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Integer(i128),
    Float(f32),
    Double(f64),
}

fn element_len(element: Element) -> usize {
    match element {
        Element::Byte | Element::Boolean => 1,
        Element::Char | Element::Short => 2,
        Element::Int | Element::Float => 4,
        Element::Long | Element::Double => 8,
    }
}

fn read(element: Element, octets: &[u8]) -> Value {
    let mut word = [0; 8];
    let low = if cfg!(target_endian = "little") { 0 } else { 8 - octets.len() };
    word[low..low + octets.len()].copy_from_slice(octets);
    let bits = u64::from_ne_bytes(word);
    match element {
        Element::Byte => Value::Integer((bits as i8).into()),
        Element::Char => Value::Integer((bits as u16).into()),
        Element::Short => Value::Integer((bits as i16).into()),
        Element::Boolean => Value::Integer(bits.into()),
        Element::Int => Value::Integer((bits as i32).into()),
        Element::Long => Value::Integer((bits as i64).into()),
        Element::Float => Value::Float(f32::from_bits(bits as u32)),
        Element::Double => Value::Double(f64::from_bits(bits)),
    }
}

fn write(element: Element, value: Value) -> Vec<u8> {
    let octets = match value {
        Value::Integer(number) => (number as u64).to_ne_bytes().to_vec(),
        Value::Float(number) => return number.to_ne_bytes().to_vec(),
        Value::Double(number) => return number.to_ne_bytes().to_vec(),
    };
    let len = element_len(element);
    if cfg!(target_endian = "little") { octets[..len].to_vec() } else { octets[8 - len..].to_vec() }
}

fn integer(operator: Operator, element: Element, a: i128, b: i128) -> i128 {
    let logical = element == Element::Boolean;
    match operator {
        Operator::Max => a.max(b),
        Operator::Min => a.min(b),
        Operator::Sum => a + b,
        Operator::Prod => a * b,
        Operator::Band if !logical => a & b,
        Operator::Bor if !logical => a | b,
        Operator::Bxor if !logical => a ^ b,
        Operator::Land | Operator::Band => i128::from(a != 0 && b != 0),
        Operator::Lor | Operator::Bor => i128::from(a != 0 || b != 0),
        Operator::Lxor | Operator::Bxor => i128::from((a != 0) != (b != 0)),
        Operator::Maxloc | Operator::Minloc => unreachable!("pairs"),
    }
}

/// In double precision, which rounds sums and products of floats as single precision does.
fn float(operator: Operator, a: f64, b: f64) -> f64 {
    let order = |sign: f64| {
        if a.is_nan() || b.is_nan() {
            return if a.is_nan() { b } else { a };
        }
        let a_wins = a * sign > b * sign || (a == b && a.is_sign_positive() == (sign > 0.0));
        if a_wins { a } else { b }
    };
    match operator {
        Operator::Max => order(1.0),
        Operator::Min => order(-1.0),
        Operator::Sum => a + b,
        Operator::Prod => a * b,
        _ => unreachable!("{operator} of floats"),
    }
}

fn single(operator: Operator, element: Element, left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Integer(a), Value::Integer(b)) => Value::Integer(integer(operator, element, a, b)),
        (Value::Float(a), Value::Float(b)) => {
            let result = float(operator, a.into(), b.into()) as f32;
            Value::Float(if result.is_nan() { f32::from_bits(0x7fc0_0000) } else { result })
        }
        (Value::Double(a), Value::Double(b)) => {
            let result = float(operator, a, b);
            Value::Double(if result.is_nan() { f64::from_bits(0x7ff8 << 48) } else { result })
        }
        _ => unreachable!("operands of two types"),
    }
}

/// Position in an order in which NaN is less than all numbers, or in one in which it is more.
fn compare(a: Value, b: Value, nan: std::cmp::Ordering) -> std::cmp::Ordering {
    let floats = |a: f64, b: f64| match (a.is_nan(), b.is_nan()) {
        (false, false) => a.partial_cmp(&b).expect("two numbers"),
        (true, true) => std::cmp::Ordering::Equal,
        (true, false) => nan,
        (false, true) => nan.reverse(),
    };
    match (a, b) {
        (Value::Integer(a), Value::Integer(b)) => a.cmp(&b),
        (Value::Float(a), Value::Float(b)) => floats(a.into(), b.into()),
        (Value::Double(a), Value::Double(b)) => floats(a, b),
        _ => unreachable!("operands of two types"),
    }
}

fn pair(operator: Operator, left: [Value; 2], right: [Value; 2]) -> [Value; 2] {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let of_values = match operator {
        Operator::Maxloc => compare(left[0], right[0], Less),
        _ => compare(left[0], right[0], Greater).reverse(),
    };
    match of_values.then(compare(left[1], right[1], Greater).reverse()) {
        Greater | Equal => left,
        Less => right,
    }
}

fn expected(operator: Operator, element: Element, left: &[u8], right: &[u8]) -> Vec<u8> {
    let len = element_len(element);
    let values = |octets: &[u8]| octets.chunks(len).map(|octets| read(element, octets)).collect::<Vec<_>>();
    let (left, right) = (values(left), values(right));
    let results: Vec<Value> = if operator.unit() == 2 {
        let pairs = left.as_chunks().0.iter().zip(right.as_chunks().0);
        pairs.flat_map(|(left, right)| pair(operator, *left, *right)).collect()
    } else {
        left.iter().zip(&right).map(|(left, right)| single(operator, element, *left, *right)).collect()
    };
    results.into_iter().flat_map(|value| write(element, value)).collect()
}

/// Octets of elements, with values that are equal, extreme or special among them.
fn operand(element: Element, len: usize) -> impl Strategy<Value = Vec<u8>> {
    let special: Vec<u64> = match element {
        Element::Float => [0.0, -0.0, 1.0, f32::INFINITY, -f32::INFINITY, f32::MAX]
            .map(|x| x.to_bits().into())
            .into_iter()
            .chain([0x7fc0_0000, 0x7fc0_0001, 0xffc0_0000, 0x7f80_0001])
            .collect(),
        Element::Double => [0.0, -0.0, 1.0, f64::INFINITY, -f64::INFINITY, f64::MAX]
            .map(f64::to_bits)
            .into_iter()
            .chain([0x7ff8, 0x7ff9, 0xfff8].map(|high| high << 48))
            .collect(),
        Element::Boolean => vec![0, 1],
        _ => vec![0, 1, 2, u64::MAX, 1 << 63, 1 << 31, 1 << 15, 1 << 7, (1 << 31) - 1, 0x7f, 0x7fff],
    };
    let octets = prop_oneof![any::<u64>(), select(special)].prop_map(move |bits| {
        let value = match element {
            Element::Float => Value::Float(f32::from_bits(bits as u32)),
            Element::Double => Value::Double(f64::from_bits(bits)),
            _ => Value::Integer(bits.into()),
        };
        write(element, value)
    });
    prop::collection::vec(octets, len).prop_map(|elements| elements.concat())
}

/// Operands of operations whose units have at most `unit_max` elements.
fn case(unit_max: usize) -> impl Strategy<Value = (Operator, Element, Vec<u8>, Vec<u8>)> {
    let applies = move |operator: &Operator, element: &Element| {
        operator.unit() <= unit_max && operator.check(*element).is_ok()
    };
    let all = Operator::ALL.into_iter().flat_map(|operator| Element::ALL.map(|element| (operator, element)));
    let all: Vec<_> = all.filter(|(operator, element)| applies(operator, element)).collect();
    (select(all), 0usize..70).prop_flat_map(|((operator, element), units)| {
        let len = units * operator.unit();
        (Just(operator), Just(element), operand(element, len), operand(element, len))
    })
}

proptest! {
    #![proptest_config(Config::with_cases(cases()))]

    /// Also from octets that are not aligned, which leaves those before them as they were.
    #[test]
    fn kernels_give_the_results_of_wide_arithmetic((operator, element, left, right) in case(2)) {
        let result = expected(operator, element, &left, &right);
        let mut into = right.clone();
        combine(operator, element, &left, &mut into, true);
        prop_assert_eq!(&into, &result);
        let mut into = [&[7][..], &left].concat();
        combine(operator, element, &right, &mut into[1..], false);
        prop_assert_eq!(into[0], 7);
        prop_assert_eq!(&into[1..], &result);
    }

    #[test]
    fn exchanged_operands_give_the_same_bits((operator, element, left, right) in case(1)) {
        let (mut a, mut b) = (right.clone(), right.clone());
        combine(operator, element, &left, &mut a, true);
        combine(operator, element, &left, &mut b, false);
        prop_assert_eq!(a, b);
    }
}

/// Results of pairs of doubles.
fn doubles(operator: Operator, left: &[f64], right: &[f64]) -> Vec<f64> {
    let octets =
        |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<u8>>();
    let mut into = octets(right);
    combine(operator, Element::Double, &octets(left), &mut into, true);
    into.as_chunks().0.iter().map(|octets| f64::from_ne_bytes(*octets)).collect()
}

#[test]
fn nan_never_wins_against_a_number() {
    let (nan, low) = (f64::NAN, f64::NEG_INFINITY);
    assert_eq!(doubles(Operator::Max, &[nan, low], &[low, nan]), [low, low]);
    assert_eq!(doubles(Operator::Min, &[nan, -low], &[-low, nan]), [-low, -low]);
    assert_eq!(doubles(Operator::Maxloc, &[nan, 0.0, low, 3.0], &[low, 2.0, nan, 0.0]), [low, 2.0, low, 3.0]);
    assert!(doubles(Operator::Max, &[nan], &[-nan])[0].is_nan());
}

#[test]
fn smaller_index_wins_among_equal_values() {
    for operator in [Operator::Maxloc, Operator::Minloc] {
        assert_eq!(doubles(operator, &[5.0, 1.0, 5.0, 4.0], &[5.0, 3.0, 5.0, 2.0]), [5.0, 1.0, 5.0, 2.0]);
    }
    assert_eq!(doubles(Operator::Maxloc, &[5.0, 1.0], &[6.0, 3.0]), [6.0, 3.0]);
    assert_eq!(doubles(Operator::Minloc, &[5.0, 9.0], &[6.0, 3.0]), [5.0, 9.0]);
}

#[test]
fn negative_zero_is_less_than_zero() {
    let signs = |numbers: Vec<f64>| numbers.into_iter().map(f64::is_sign_negative).collect::<Vec<_>>();
    assert_eq!(signs(doubles(Operator::Max, &[0.0, -0.0], &[-0.0, -0.0])), [false, true]);
    assert_eq!(signs(doubles(Operator::Min, &[0.0, 0.0], &[-0.0, 0.0])), [true, false]);
}

#[test]
fn codes_and_units_are_those_of_the_boundary() {
    for (code, operator) in (0..).zip(Operator::ALL) {
        assert_eq!((operator as i32, Operator::from_code(code)), (code, Some(operator)));
        assert_eq!(operator.unit(), if code < 10 { 1 } else { 2 });
    }
    assert_eq!([-1, 12].map(Operator::from_code), [None, None]);
    for (code, element) in (0..).zip(Element::ALL) {
        assert_eq!((element as u8, Element::from_code(code)), (code, Some(element)));
    }
    assert_eq!(Element::from_code(8), None);
}

#[test]
fn operations_refuse_types_without_a_meaning() {
    let refused = |operator: Operator| Element::ALL.into_iter().filter(move |e| operator.check(*e).is_err());
    for operator in Operator::ALL {
        let is_logical = (4..10).contains(&(operator as u8));
        let expected =
            if is_logical { vec![Element::Float, Element::Double] } else { vec![Element::Boolean] };
        assert_eq!(refused(operator).collect::<Vec<_>>(), expected, "{operator}");
    }
    let error: Unsupported = Operator::Sum.check(Element::Boolean).expect_err("no sum of booleans");
    assert_eq!(error.to_string(), "the operation SUM does not apply to elements of type boolean");
}
