//! The engine by itself, without Java: sections of doubles written, read, gathered and walked in strides.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
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

fn write_and_read(c: &mut Criterion) {
    for (name, order) in [("native", Encoding::NATIVE), ("foreign", foreign())] {
        let mut group = c.benchmark_group(format!("{name} order"));
        for octets in SIZES {
            let source = vec![1.5f64; octets / 8];
            let mut dest = vec![0f64; octets / 8];
            let mut writer = writer(octets, order);
            group.throughput(Throughput::Bytes(octets as u64));
            group.bench_with_input(BenchmarkId::new("write", octets), &source, |b, source| {
                b.iter(|| {
                    writer.clear();
                    writer.write(black_box(source)).expect("it fits");
                });
            });
            writer.clear();
            writer.write(&source).expect("it fits");
            let mut reader = reader(&mut writer);
            group.bench_function(BenchmarkId::new("read", octets), |b| {
                b.iter(|| {
                    reader.reset();
                    reader.read(black_box(&mut dest)).expect("it is there");
                });
            });
        }
    }
}

fn gather(c: &mut Criterion) {
    let mut group = c.benchmark_group("gather");
    for octets in SIZES {
        let n = octets / 8;
        let source = vec![1.5f64; n];
        // An odd step walks through all elements of a power of two, and not in their order.
        let indices: Vec<i32> = (0..n).map(|k| (k * 0x9e37 % n) as i32).collect();
        let mut writer = writer(octets, Encoding::NATIVE);
        group.throughput(Throughput::Bytes(octets as u64));
        group.bench_function(BenchmarkId::new("doubles", octets), |b| {
            b.iter(|| {
                writer.clear();
                writer.gather(black_box(&source), 0, black_box(&indices)).expect("it fits");
            });
        });
    }
}

fn str_gather(c: &mut Criterion) {
    let mut group = c.benchmark_group("str_gather");
    for octets in SIZES.into_iter().filter(|octets| *octets >= ROW * 8) {
        let rows = octets / 8 / ROW;
        let source = vec![1.5f64; rows * PITCH];
        let (extents, strides) = ([rows as i32, ROW as i32], [PITCH as i32, 1]);
        let mut writer = writer(octets, Encoding::NATIVE);
        group.throughput(Throughput::Bytes(octets as u64));
        group.bench_function(BenchmarkId::new("rows of 16 doubles", octets), |b| {
            b.iter(|| {
                writer.clear();
                let patch = Patch::check(0, black_box(&extents), &strides, source.len()).expect("inside");
                writer.str_gather(black_box(&source), &patch).expect("it fits");
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(30);
    targets = write_and_read, gather, str_gather
}
criterion_main!(benches);
