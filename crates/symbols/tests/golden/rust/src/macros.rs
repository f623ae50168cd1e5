#[macro_export]
macro_rules! retry_all {
    ($($call:expr),*) => { $($call;)* };
}
