use std::sync::mpsc as blocking;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_test_support::TestAgent;

use super::*;

/// An agent, and a queue of its events with the sender of items.
async fn queue() -> (TestAgent, mpsc::UnboundedSender<&'static str>, OrderedQueue<&'static str>) {
    let test_agent = TestAgent::in_process().start().await;
    let (sender, items) = mpsc::unbounded_channel();
    let queue = OrderedQueue::new(test_agent.agent.events().stream(), items);
    (test_agent, sender, queue)
}

/// Emits this many events.
async fn emit(agent: &Agent, count: usize) {
    for _ in 0..count {
        agent.clear_queue().await;
    }
}

async fn next_name(queue: &mut OrderedQueue<&'static str>) -> Option<String> {
    Some(match queue.next().await? {
        QueueItem::Event(event) => event.name().to_owned(),
        QueueItem::Own(item) => item.to_owned(),
    })
}

/// The next items of the queue, by name.
async fn take(queue: &mut OrderedQueue<&'static str>, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(next_name(queue).await.expect("one more"));
    }
    names
}

#[tokio::test]
async fn an_item_comes_after_the_events_before_it_and_no_later() {
    let (test_agent, items, mut queue) = queue().await;
    emit(&test_agent.agent, 3).await;
    items.send("first").unwrap();
    items.send("second").unwrap();
    assert_eq!(take(&mut queue, 1).await, ["queue_update"]);
    // These come after the item, however many there are.
    emit(&test_agent.agent, 2).await;
    assert_eq!(take(&mut queue, 3).await, ["queue_update", "queue_update", "first"]);
    assert_eq!(take(&mut queue, 3).await, ["queue_update", "queue_update", "second"]);
    items.send("third").unwrap();
    assert_eq!(take(&mut queue, 1).await, ["third"]);
}

#[tokio::test]
async fn whoever_waits_is_woken_by_an_item_and_by_an_event() {
    let (test_agent, items, mut queue) = queue().await;
    let reading = tokio::spawn(async move { take(&mut queue, 2).await });
    tokio::task::yield_now().await;
    items.send("item").unwrap();
    tokio::task::yield_now().await;
    emit(&test_agent.agent, 1).await;
    assert_eq!(reading.await.unwrap(), ["item", "queue_update"]);
}

#[tokio::test]
async fn a_queue_ends_once_neither_events_nor_items_can_come() {
    let (test_agent, items, mut queue) = queue().await;
    emit(&test_agent.agent, 1).await;
    items.send("last").unwrap();
    drop(test_agent);
    assert_eq!(take(&mut queue, 2).await, ["queue_update", "last"]);
    items.send("later than last").unwrap();
    drop(items);
    assert_eq!(take(&mut queue, 1).await, ["later than last"]);
    assert_eq!(next_name(&mut queue).await, None);
}

#[tokio::test]
async fn a_reader_that_caught_up_has_handled_every_event_so_far() {
    let test_agent = TestAgent::in_process().start().await;
    let handled: Arc<Mutex<Vec<&str>>> = Arc::default();
    let seen = handled.clone();
    let reader = EventReader::start(&test_agent.agent, move |event| {
        std::thread::sleep(Duration::from_millis(2));
        seen.lock().unwrap().push(event.name());
    });
    emit(&test_agent.agent, 20).await;
    reader.catch_up().await;
    assert_eq!(handled.lock().unwrap().len(), 20);
    emit(&test_agent.agent, 5).await;
    test_agent.agent.shutdown().await.unwrap();
    reader.finish().await;
    assert_eq!(
        handled.lock().unwrap()[20..],
        ["queue_update"; 5].into_iter().chain(["session_shutdown"]).collect::<Vec<_>>()
    );
    emit(&test_agent.agent, 1).await;
    assert_eq!(handled.lock().unwrap().len(), 26, "nothing is read after the end");
}

/// On a runtime with a single thread, which a handler on that thread would block.
#[tokio::test(flavor = "current_thread")]
async fn a_handler_that_blocks_does_not_block_the_agent() {
    let test_agent = TestAgent::in_process().start().await;
    let (release, released) = blocking::channel();
    let reader = EventReader::start(&test_agent.agent, move |_| released.recv().unwrap());
    emit(&test_agent.agent, 3).await;
    (0..3).for_each(|_| release.send(()).unwrap());
    reader.finish().await;
    assert!(release.send(()).is_err(), "the handler is gone with its reader");
}

#[tokio::test]
async fn nobody_waits_for_a_handler_that_panicked() {
    let test_agent = TestAgent::in_process().start().await;
    let reader = EventReader::start(&test_agent.agent, |event| panic!("no {}", event.name()));
    emit(&test_agent.agent, 1).await;
    reader.catch_up().await;
    reader.catch_up().await;
    reader.finish().await;
    emit(&test_agent.agent, 1).await;
}
