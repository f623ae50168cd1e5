use retry_kit::net::retry::RetryPolicy;

#[test]
fn it_retries() {}
