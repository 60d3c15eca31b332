use tine_client::testing::Daemon;
use tine_client::{Error, v1};

#[test]
fn a_new_store_has_no_sessions() -> Result<(), Error> {
    let daemon = Daemon::start()?;
    let request = v1::ListSessionsRequest::default();
    assert!(daemon.client().list_sessions(request)?.sessions.is_empty());
    Ok(())
}
