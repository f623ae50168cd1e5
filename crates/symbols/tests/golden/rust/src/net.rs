pub mod retry;
mod r#type;

pub mod wire {
    pub struct Frame<'a, const N: usize> {
        pub head: [u8; N],
        pub body: &'a [u8],
    }
    impl<'a, const N: usize> Frame<'a, N> {
        pub const EMPTY: usize = 0;
        pub fn parse(bytes: &'a [u8]) -> Option<Self> { None }
    }
}
