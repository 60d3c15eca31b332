//! Runs the steps of tests/wire/scenario.json through the Rust client. Prints a transcript with one
//! line per step.
//!
//!     tine-scenario [--tokio] --url ipc://SOCKET --peer ipc://SOCKET scenario.json > transcript

mod calls;

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use serde_json::{Value, json};
use tine_client::v1::{self, StoreServiceClient};
use tine_client::{CancelToken, Code, Error, Request};

const WATCH_MAX: Duration = Duration::from_secs(20);

/// The two clients of one URL.
struct Clients {
    blocking: StoreServiceClient,
    tokio: v1::tokio::StoreServiceClient,
}

/// The options of a step's call.
pub struct Step {
    operation_id: Option<String>,
    traceparent: Option<String>,
    token: Option<String>,
    timeout: Option<Duration>,
    cancel_after: Option<Duration>,
    cancel: CancelToken,
}

struct Runner {
    runtime: Option<tokio::runtime::Runtime>,
    daemon: Clients,
    peer: Clients,
    service: prost_reflect::ServiceDescriptor,
    saved: HashMap<String, String>,
}

fn main() {
    let mut options = HashMap::new();
    let mut file = None;
    let mut is_tokio = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--tokio" => is_tokio = true,
            "--url" | "--peer" => {
                options.insert(argument, arguments.next().expect("a URL"));
            }
            _ => file = Some(argument),
        }
    }
    let usage = "usage: scenario [--tokio] --url URL --peer URL SCENARIO.json";
    let (url, peer) = (
        options.get("--url").expect(usage),
        options.get("--peer").expect(usage),
    );
    let text = std::fs::read_to_string(file.expect(usage)).expect("the scenario");
    let steps: Vec<Value> = serde_json::from_str(&text).expect("a JSON array");

    let runtime = is_tokio.then(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    });
    let pool = DescriptorPool::decode(v1::DESCRIPTOR_SET).expect("a descriptor set");
    let mut runner = Runner {
        runtime,
        daemon: Clients::of(url),
        peer: Clients::of(peer),
        service: pool
            .get_service_by_name("tine.v1.StoreService")
            .expect("the service"),
        saved: HashMap::new(),
    };
    for step in &steps {
        match step.pointer("/repeat/count").and_then(Value::as_u64) {
            None => runner.run(step, text_of(&step["id"])),
            Some(count) => {
                for index in 0..count {
                    let name = text_of(&step["repeat"]["name"]);
                    runner.saved.insert(name, index.to_string());
                    runner.run(step, format!("{}/{index}", text_of(&step["id"])));
                }
            }
        }
    }
}

impl Clients {
    fn of(url: &str) -> Self {
        let blocking = tine_client::Channel::connect(url).expect("a URL");
        let tokio = tine_client::tokio::Channel::connect(url).expect("a URL");
        Self {
            blocking: StoreServiceClient::new(blocking),
            tokio: v1::tokio::StoreServiceClient::new(tokio),
        }
    }
}

impl Step {
    fn of(step: &Value) -> Self {
        let text = |name| step.get(name).map(text_of);
        let ms = |name| {
            step.get(name)
                .and_then(Value::as_u64)
                .map(Duration::from_millis)
        };
        Self {
            operation_id: text("operation_id"),
            traceparent: text("traceparent"),
            token: text("token"),
            timeout: ms("timeout_ms"),
            cancel_after: ms("cancel_ms"),
            cancel: CancelToken::new(),
        }
    }

    /// Returns a request with the options of the step.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message).cancel(&self.cancel);
        if let Some(id) = &self.operation_id {
            request = request.operation_id(id);
        }
        if let Some(traceparent) = &self.traceparent {
            request = request.traceparent(traceparent);
        }
        if let Some(token) = &self.token {
            request = request.token(token);
        }
        match self.timeout {
            Some(timeout) => request.timeout(timeout),
            None => request,
        }
    }
}

impl Runner {
    fn run(&mut self, step: &Value, id: String) {
        let name = text_of(&step["call"]);
        let method = self.service.methods().find(|method| method.name() == name);
        let method = method.unwrap_or_else(|| panic!("{id}: no call {name}"));
        let mut request = self.expanded(&step["request"]);
        if let Some(generate) = step.get("generate") {
            put_generated(&mut request, generate);
        }
        let request = DynamicMessage::deserialize(method.input(), request)
            .unwrap_or_else(|error| panic!("{id}: {error}"))
            .encode_to_vec();
        let via_peer = step.get("via").is_some_and(|via| via == "peer");
        let result = match step.pointer("/watch/events").and_then(Value::as_u64) {
            None => self
                .call(&name, &request, &Step::of(step), via_peer)
                .map(|reply| self.json(method.output(), &reply)),
            Some(count) => self
                .watch(&request, count, &Step::of(step), via_peer)
                .map(|events| {
                    let event = |event: v1::Event| {
                        self.json(self.descriptor("tine.v1.Event"), &event.encode_to_vec())
                    };
                    json!({ "events": events.into_iter().map(event).collect::<Vec<_>>() })
                }),
        };
        let (code, reason, message, reply) = match result {
            Ok(reply) => (0, String::new(), String::new(), reply),
            Err(error) => (error.code as i32, error.reason, error.message, Value::Null),
        };
        for (name, path) in step
            .get("save")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            let pointer = format!("/{}", text_of(path).replace('.', "/"));
            let value = reply.pointer(&pointer).map(text_of).unwrap_or_default();
            self.saved.insert(name.clone(), value);
        }
        let line = json!({
            "step": id, "call": name, "code": code, "reason": reason, "message": message,
            "reply": reply,
        });
        println!("{line}");
    }

    fn call(
        &self,
        name: &str,
        request: &[u8],
        step: &Step,
        via_peer: bool,
    ) -> Result<Vec<u8>, Error> {
        let clients = if via_peer { &self.peer } else { &self.daemon };
        if let Some(runtime) = &self.runtime {
            let call = calls::call_tokio(&clients.tokio, name, request, step);
            return runtime.block_on(dropped_after(step.cancel_after, call));
        }
        std::thread::scope(|scope| {
            if let Some(wait) = step.cancel_after {
                scope.spawn(move || {
                    std::thread::sleep(wait);
                    step.cancel.cancel();
                });
            }
            calls::call(&clients.blocking, name, request, step)
        })
    }

    fn watch(
        &self,
        request: &[u8],
        count: u64,
        step: &Step,
        via_peer: bool,
    ) -> Result<Vec<v1::Event>, Error> {
        let clients = if via_peer { &self.peer } else { &self.daemon };
        let request = v1::WatchEventsRequest::decode(request).expect("it was just encoded");
        let request = step
            .request(request)
            .timeout(step.timeout.unwrap_or(WATCH_MAX));
        let mut events = Vec::new();
        if let Some(runtime) = &self.runtime {
            return runtime.block_on(async {
                let mut watch = clients.tokio.watch_events(request).await?;
                while (events.len() as u64) < count {
                    let Some(response) = watch.next().await else {
                        break;
                    };
                    events.extend(response?.event);
                }
                Ok(events)
            });
        }
        for response in clients.blocking.watch_events(request)?.take(count as usize) {
            events.extend(response?.event);
        }
        Ok(events)
    }

    fn descriptor(&self, name: &str) -> MessageDescriptor {
        self.service
            .parent_pool()
            .get_message_by_name(name)
            .expect("a message of the contract")
    }

    fn json(&self, descriptor: MessageDescriptor, bytes: &[u8]) -> Value {
        let message = DynamicMessage::decode(descriptor, bytes).expect("it was just encoded");
        serde_json::to_value(message).expect("a message is JSON")
    }

    /// Replaces the names of saved values by the values.
    fn expanded(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expanded_text(text)),
            Value::Array(items) => items.iter().map(|item| self.expanded(item)).collect(),
            Value::Object(fields) => {
                let pair = |(name, value): (&String, &Value)| (name.clone(), self.expanded(value));
                fields.iter().map(pair).collect()
            }
            other => other.clone(),
        }
    }

    fn expanded_text(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("${") {
            let (name, after) = behind.split_once('}').expect("a name ends with }");
            let value = self
                .saved
                .get(name)
                .unwrap_or_else(|| panic!("nothing saved as {name}"));
            out.push_str(before);
            out.push_str(value);
            rest = after;
        }
        out + rest
    }
}

/// Cancels a call by dropping its future, and then makes the error itself.
async fn dropped_after<T>(
    wait: Option<Duration>,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let Some(wait) = wait else { return call.await };
    let dropped = || {
        Error::new(
            Code::Cancelled,
            "CANCELLED",
            "the call's future was dropped",
        )
    };
    tokio::time::timeout(wait, call)
        .await
        .unwrap_or_else(|_| Err(dropped()))
}

fn put_generated(request: &mut Value, generate: &Value) {
    let pointer = format!("/{}", text_of(&generate["field"]).replace('.', "/"));
    let count = generate["count"].as_u64().expect("a count") as usize;
    let place = request
        .pointer_mut(&pointer)
        .expect("a field of the request");
    *place = Value::String(text_of(&generate["byte"]).repeat(count));
}

fn text_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}
