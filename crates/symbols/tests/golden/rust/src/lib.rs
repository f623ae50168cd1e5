//! Everything hard in one crate.
pub mod clock;
mod macros;
pub mod net;

pub use clock::{Clock, SystemClock as DefaultClock};
pub use net::retry::*;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("gone")]
    Gone,
    Late { after: u32 },
    Other(String),
}

pub const LIMIT: usize = 10;
pub static mut COUNTER: u32 = 0;

pub union Bits {
    pub whole: u64,
    pub halves: [u32; 2],
}

extern "C" {
    fn outside(value: i32, ...) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    fn helper_of_tests() {}
    #[test]
    fn it_works() {
        helper_of_tests();
    }
}
