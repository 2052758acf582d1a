//! The `mpjdev-bench` command: see the library.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    mpjdev_bench::run(std::env::args_os())
}
