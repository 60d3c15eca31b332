//! Arguments that are refused.

use std::os::unix::net::UnixListener;
use std::time::Duration;

use tine_client::{Channel, Code, Reason, v1};

use crate::support::*;

const SHORT: Duration = Duration::from_millis(60);

#[test]
fn a_socket_path_has_107_bytes_at_most() {
    let directory = Directory::new();
    let padding = 107 - directory.path("").as_os_str().len();
    let path = directory.path(&"s".repeat(padding));
    let _listener = UnixListener::bind(&path).unwrap();
    let url = format!("ipc://{}", path.display());
    // It connects, but there is no hello.
    let error = Channel::connect(&url).unwrap().ready(SHORT).unwrap_err();
    assert!(error.message.contains("did not answer in time"), "{error}");

    let longer = format!("{url}s");
    let words = "the path of a socket has at most 107 bytes, this one has 108";
    let blocking = Channel::connect(&longer).unwrap_err();
    let tokio = tine_client::tokio::Channel::connect(&longer).unwrap_err();
    for error in [blocking, tokio] {
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.message.contains(words), "{error}");
    }
}

#[test]
fn a_malformed_id_and_a_limit_over_the_maximum_are_invalid_arguments() {
    let daemon = Daemon::ephemeral();
    let client = daemon.client();
    let error = client.get_session(get_session("not-an-id")).unwrap_err();
    assert!(error.is(Reason::InvalidArgument), "{error}");
    let list = |limit| {
        client.list_sessions(v1::ListSessionsRequest {
            limit,
            ..Default::default()
        })
    };
    list(1000).unwrap();
    let error = list(1001).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.contains("1000"), "{error}");
}
