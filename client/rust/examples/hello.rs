//! Creates a session, appends a message and reads the history.

use tine_client::v1::{self, StoreServiceClient};
use tine_client::{Channel, Error, Options};

fn main() -> Result<(), Error> {
    // Connects to $TINE_URL, $TINE_SOCKET or the default socket. Starts a tined if none listens.
    let channel = Channel::open(Options::new().start(true))?;
    let client = StoreServiceClient::new(channel);

    let session = v1::NewSession {
        project_dir: "/src/demo".into(),
        model: Some(v1::ModelRef {
            provider: "anthropic".into(),
            name: "claude-sonnet-4".into(),
        }),
        ..Default::default()
    };
    let request = v1::CreateSessionRequest {
        session: Some(session),
        ..Default::default()
    };
    let session = client.create_session(request)?.session.unwrap_or_default();

    let text = v1::Text {
        text: "Where do we begin?".into(),
        ..Default::default()
    };
    let message = v1::NewMessage {
        role: v1::Role::User.into(),
        parts: vec![v1::Part {
            kind: Some(v1::part::Kind::Text(text)),
            ..Default::default()
        }],
        ..Default::default()
    };
    client.append_message(v1::AppendMessageRequest {
        session_id: session.id.clone(),
        message: Some(message),
        ..Default::default()
    })?;

    let history = client.messages_for_session(v1::MessagesForSessionRequest {
        session_id: session.id,
        ..Default::default()
    })?;
    println!("{} message", history.messages.len());
    Ok(())
}
