//! The kernels on vectors that fit the first cache and on those that fit none, for every operation and type.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use mpjdev_reduction::{Element, Operator, combine};

/// Octets of one operand.
const LENS: [usize; 2] = [8 << 10, 8 << 20];

fn run(bencher: Bencher, operator: Operator, element: Element, len: usize) {
    // Bits of small numbers in every type, and no denormal ones.
    let from = [0x3f, 0x41].repeat(len / 2);
    let mut into = [0x40, 0x3e].repeat(len / 2);
    bencher.counter(BytesCount::new(len)).bench_local(|| {
        combine(operator, element, black_box(&from), black_box(&mut into), true);
    });
}

/// Benchmarks of one type by the operations that apply to it.
macro_rules! benchmarks {
    ($($name:ident: $element:ident, $operators:expr;)*) => { $(
        #[divan::bench(args = $operators.into_iter().flat_map(|operator| LENS.map(|len| (operator, len))))]
        fn $name(bencher: Bencher, (operator, len): (Operator, usize)) {
            run(bencher, operator, Element::$element, len);
        }
    )* };
}

const INTEGER: [Operator; 7] = [
    Operator::Max,
    Operator::Sum,
    Operator::Prod,
    Operator::Land,
    Operator::Lxor,
    Operator::Band,
    Operator::Maxloc,
];
const FLOAT: [Operator; 4] = [Operator::Max, Operator::Sum, Operator::Prod, Operator::Maxloc];

benchmarks! {
    byte: Byte, INTEGER;
    char: Char, INTEGER;
    short: Short, INTEGER;
    boolean: Boolean, [Operator::Land, Operator::Lor, Operator::Bxor];
    int: Int, INTEGER;
    long: Long, INTEGER;
    float: Float, FLOAT;
    double: Double, FLOAT;
}

fn main() {
    divan::main();
}
