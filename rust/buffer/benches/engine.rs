//! The engine by itself, without Java: sections of doubles written, read, gathered and walked in strides.

use std::hint::black_box;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::BytesCount;
use mpjdev_buffer::layout::SECTION_HEADER_LEN;
use mpjdev_buffer::{Encoding, Patch, PlainSource, ReadBuffer, WriteBuffer};

/// Octets of data per section.
const SIZES: [usize; 6] = [8, 128, 1 << 10, 1 << 16, 1 << 20, 16 << 20];
/// Elements of a row of a patch, and from one row to the next.
const ROW: usize = 16;
const PITCH: usize = 32;

fn foreign() -> Encoding {
    if Encoding::NATIVE == Encoding::Little { Encoding::Big } else { Encoding::Little }
}

fn writer(octets: usize, order: Encoding) -> WriteBuffer {
    let capacity = (SECTION_HEADER_LEN + octets) as i64;
    WriteBuffer::new(Arc::new(PlainSource), capacity, order).expect("a legal capacity")
}

fn reader(writer: &mut WriteBuffer) -> ReadBuffer {
    let message = writer.finish().expect("memory").clone();
    let mut reader =
        ReadBuffer::new(Arc::new(PlainSource), writer.capacity() as i64).expect("a legal capacity");
    reader.adopt(message);
    reader
}

fn write_in(order: Encoding, bencher: Bencher, octets: usize) {
    let source = vec![1.5f64; octets / 8];
    let mut writer = writer(octets, order);
    bencher.counter(BytesCount::new(octets)).bench_local(|| {
        writer.clear();
        writer.write(black_box(&source)).expect("it fits");
    });
}

fn read_in(order: Encoding, bencher: Bencher, octets: usize) {
    let mut dest = vec![0f64; octets / 8];
    let mut writer = writer(octets, order);
    writer.write(&vec![1.5f64; octets / 8]).expect("it fits");
    let mut reader = reader(&mut writer);
    bencher.counter(BytesCount::new(octets)).bench_local(|| {
        reader.reset();
        reader.read(black_box(&mut dest)).expect("it is there");
    });
}

#[divan::bench(args = SIZES)]
fn write_native(bencher: Bencher, octets: usize) {
    write_in(Encoding::NATIVE, bencher, octets);
}

#[divan::bench(args = SIZES)]
fn write_foreign(bencher: Bencher, octets: usize) {
    write_in(foreign(), bencher, octets);
}

#[divan::bench(args = SIZES)]
fn read_native(bencher: Bencher, octets: usize) {
    read_in(Encoding::NATIVE, bencher, octets);
}

#[divan::bench(args = SIZES)]
fn read_foreign(bencher: Bencher, octets: usize) {
    read_in(foreign(), bencher, octets);
}

#[divan::bench(args = SIZES)]
fn gather(bencher: Bencher, octets: usize) {
    let n = octets / 8;
    let source = vec![1.5f64; n];
    // An odd step walks through all elements of a power of two, and not in their order.
    let indices: Vec<i32> = (0..n).map(|k| (k * 0x9e37 % n) as i32).collect();
    let mut writer = writer(octets, Encoding::NATIVE);
    bencher.counter(BytesCount::new(octets)).bench_local(|| {
        writer.clear();
        writer.gather(black_box(&source), 0, black_box(&indices)).expect("it fits");
    });
}

/// Rows of 16 doubles.
#[divan::bench(args = SIZES.into_iter().filter(|octets| *octets >= ROW * 8))]
fn str_gather(bencher: Bencher, octets: usize) {
    let rows = octets / 8 / ROW;
    let source = vec![1.5f64; rows * PITCH];
    let (extents, strides) = ([rows as i32, ROW as i32], [PITCH as i32, 1]);
    let mut writer = writer(octets, Encoding::NATIVE);
    bencher.counter(BytesCount::new(octets)).bench_local(|| {
        writer.clear();
        let patch = Patch::check(0, black_box(&extents), &strides, source.len()).expect("inside");
        writer.str_gather(black_box(&source), &patch).expect("it fits");
    });
}

fn main() {
    divan::main();
}
