//! The schema in `docs/` is the one that the types generate.

#[test]
fn the_schema_in_the_docs_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/snapshot.schema.json");
    let committed: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        committed,
        hardpan_context::snapshot_schema(),
        "run `hardpan snapshot --schema > docs/snapshot.schema.json`"
    );
}
