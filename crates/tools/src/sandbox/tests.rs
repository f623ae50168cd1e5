use super::*;

#[test]
fn a_policy_survives_the_way_to_the_launcher() {
    let sandbox = Sandbox {
        launcher: SandboxLauncher { program: "/bin/launcher".into(), arguments: vec!["__sandbox".into()] },
        writable: vec!["/cache".into()],
        hidden: vec!["/keys".into()],
        network: NetworkAccess::Off,
    };
    let policy = sandbox.policy(Path::new("/work"), Path::new("/temp"));
    assert_eq!(policy.writable, [Path::new("/work"), Path::new("/temp"), Path::new("/cache")]);
    let command = sandbox.launcher.command(&policy, Path::new("/bin/bash")).unwrap();
    let arguments: Vec<&str> = command.get_args().filter_map(|argument| argument.to_str()).collect();
    let ["__sandbox", json, "/bin/bash"] = arguments[..] else { panic!("{arguments:?}") };
    assert_eq!(serde_json::from_str::<SandboxPolicy>(json).unwrap(), policy);
    assert!(serde_json::from_str::<SandboxPolicy>("{\"writable\": []}").is_err());
}
