//! One turn of an agent: the user's message, two tools in parallel, the answer with its cost, which
//! is added to the parent session too, and a fork that continues differently. A watch sees all of
//! it.
//!
//!     cargo run --example agent

use tine_client::tokio::Channel;
use tine_client::v1::tokio::StoreServiceClient;
use tine_client::v1::{self, part::Kind};
use tine_client::{Error, Options};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let client = StoreServiceClient::new(Channel::open(Options::new().start(true))?);
    let mut watch = client
        .watch_events(v1::WatchEventsRequest::default())
        .await?;

    let planner = create(&client, v1::SessionKind::Primary, "").await?;
    let worker = create(&client, v1::SessionKind::Subagent, &planner.id).await?;
    let question = text(v1::Role::User, "What is in this directory, and who am I?");
    append(&client, &worker.id, question, false).await?;

    // The model uses two tools: one message has both uses, then each result is appended.
    let uses = [("call-1", "ls"), ("call-2", "whoami")];
    let parts = uses.iter().map(|(id, name)| {
        part(Kind::ToolUse(v1::ToolUse {
            id: (*id).into(),
            name: (*name).into(),
            state: v1::ToolState::Pending.into(),
            ..Default::default()
        }))
    });
    append(
        &client,
        &worker.id,
        message(v1::Role::Assistant, parts.collect()),
        false,
    )
    .await?;
    let (first, second) = tokio::join!(
        run_tool(&client, &worker.id, uses[0]),
        run_tool(&client, &worker.id, uses[1])
    );
    let (first, second) = (first?, second?);
    println!("{} and {} have run", first, second);

    // The answer. Its usage is added to the worker and to the planner in the same transaction.
    let mut answer = text(v1::Role::Assistant, "Two files, and you are root.");
    answer.usage = Some(v1::Usage {
        input_tokens: 1200,
        output_tokens: 40,
        cost_nano_usd: 4_200_000,
        ..Default::default()
    });
    let receipt = append(&client, &worker.id, answer, true).await?;
    for update in &receipt.totals {
        let cost = update.totals.unwrap_or_default().cost_nano_usd;
        println!(
            "{} has cost {cost} nano-USD",
            who(&update.session_id, &planner, &worker)
        );
    }

    // A fork before the answer. Nothing is copied.
    let fork = client
        .fork_session(v1::ForkSessionRequest {
            session_id: worker.id.clone(),
            fork_point: Some(v1::fork_session_request::ForkPoint::BeforeMessageId(
                receipt.id,
            )),
            ..Default::default()
        })
        .await?
        .session
        .unwrap_or_default();
    let other = text(v1::Role::Assistant, "Let me look once more.");
    append(&client, &fork.id, other, false).await?;
    let request = v1::MessagesForSessionRequest {
        session_id: fork.id.clone(),
        ..Default::default()
    };
    let history = client.messages_for_session(request).await?;
    println!("the fork has {} messages", history.messages.len());

    // The events that the watch has seen, up to the last append.
    let mut count = 0;
    while let Some(response) = watch.next().await {
        let event = response?.event.unwrap_or_default();
        count += 1;
        if event.r#type == "message.appended" && event.session_id == fork.id {
            break;
        }
    }
    println!("{count} events");
    Ok(())
}

async fn create(
    client: &StoreServiceClient,
    kind: v1::SessionKind,
    parent_id: &str,
) -> Result<v1::Session, Error> {
    let session = v1::NewSession {
        kind: kind.into(),
        parent_id: parent_id.into(),
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
    Ok(client
        .create_session(request)
        .await?
        .session
        .unwrap_or_default())
}

async fn run_tool(
    client: &StoreServiceClient,
    session_id: &str,
    (id, name): (&str, &str),
) -> Result<String, Error> {
    let result = part(Kind::ToolResult(v1::ToolResult {
        tool_use_id: id.into(),
        tool_name: name.into(),
        content: format!("what {name} printed"),
        ..Default::default()
    }));
    append(
        client,
        session_id,
        message(v1::Role::Tool, vec![result]),
        false,
    )
    .await?;
    Ok(name.to_owned())
}

async fn append(
    client: &StoreServiceClient,
    session_id: &str,
    message: v1::NewMessage,
    propagate_usage: bool,
) -> Result<v1::Receipt, Error> {
    let request = v1::AppendMessageRequest {
        session_id: session_id.into(),
        message: Some(message),
        propagate_usage,
        ..Default::default()
    };
    Ok(client
        .append_message(request)
        .await?
        .receipt
        .unwrap_or_default())
}

fn message(role: v1::Role, parts: Vec<v1::Part>) -> v1::NewMessage {
    v1::NewMessage {
        role: role.into(),
        parts,
        ..Default::default()
    }
}

fn text(role: v1::Role, text: &str) -> v1::NewMessage {
    let text = v1::Text {
        text: text.into(),
        ..Default::default()
    };
    message(role, vec![part(Kind::Text(text))])
}

fn part(kind: Kind) -> v1::Part {
    v1::Part {
        kind: Some(kind),
        ..Default::default()
    }
}

fn who(id: &str, planner: &v1::Session, worker: &v1::Session) -> &'static str {
    match id {
        id if id == planner.id => "the planner",
        id if id == worker.id => "the worker",
        _ => "somebody else",
    }
}
