//! Measures GetSession through this client and through tonic, in turns. Prints one line of JSON.
//!
//!     tine-bench-rust [--tokio] --tine ipc://SOCKET --grpc unix:/SOCKET --session ID [--calls N]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use serde_json::json;
use tine_client::v1;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

const TURN_CALLS: usize = 40;
const WARM_UP_CALLS: usize = 500;
const IN_FLIGHT: usize = 64;
const ROUNDS: usize = 5;

struct Arguments {
    is_tokio: bool,
    tine: String,
    grpc: String,
    session_id: String,
    calls: usize,
}

fn main() {
    let arguments = Arguments::read();
    let (tine_p50, grpc_p50) = latencies(&arguments);
    let (tine_rate, grpc_rate) = throughputs(&arguments);
    let language = if arguments.is_tokio {
        "rust-tokio"
    } else {
        "rust"
    };
    let line = json!({
        "language": language,
        "tine_p50_us": micros(tine_p50),
        "grpc_p50_us": micros(grpc_p50),
        "tine_rps_64": tine_rate,
        "grpc_rps_64": grpc_rate,
    });
    println!("{line}");
}

impl Arguments {
    fn read() -> Self {
        let usage = "usage: bench [--tokio] --tine URL --grpc unix:/PATH --session ID [--calls N]";
        let mut said = HashMap::new();
        let mut is_tokio = false;
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            if name == "--tokio" {
                is_tokio = true;
            } else {
                said.insert(name, arguments.next().expect(usage));
            }
        }
        let mut take = |name| said.remove(name);
        Self {
            is_tokio,
            tine: take("--tine").expect(usage),
            grpc: take("--grpc").expect(usage),
            session_id: take("--session").expect(usage),
            calls: take("--calls").map_or(4000, |calls| calls.parse().expect(usage)),
        }
    }

    fn request(&self) -> v1::GetSessionRequest {
        v1::GetSessionRequest {
            session_id: self.session_id.clone(),
        }
    }

    fn blocking(&self) -> v1::StoreServiceClient {
        let channel = tine_client::Channel::connect(&self.tine).expect("a URL");
        v1::StoreServiceClient::new(channel)
    }

    fn tokio(&self) -> v1::tokio::StoreServiceClient {
        let channel = tine_client::tokio::Channel::connect(&self.tine).expect("a URL");
        v1::tokio::StoreServiceClient::new(channel)
    }

    async fn grpc(&self) -> Grpc {
        let path = self.grpc.strip_prefix("unix:").expect("unix:/PATH");
        let endpoint = Endpoint::from_shared(format!("unix://{path}")).expect("a URI");
        let channel = endpoint.connect().await.expect("a gRPC server");
        Grpc(tonic::client::Grpc::new(channel))
    }
}

/// Calls like tonic's generated stub.
#[derive(Clone)]
struct Grpc(tonic::client::Grpc<tonic::transport::Channel>);

impl Grpc {
    async fn get_session(&mut self, request: v1::GetSessionRequest) -> v1::GetSessionResponse {
        self.0.ready().await.expect("a connection");
        let path = PathAndQuery::from_static("/tine.v1.StoreService/GetSession");
        let codec = ProstCodec::<v1::GetSessionRequest, v1::GetSessionResponse>::default();
        let reply = self
            .0
            .unary(tonic::Request::new(request), path, codec)
            .await;
        reply.expect("a reply").into_inner()
    }
}

/// Returns the medians of calls that are made one after the other.
fn latencies(arguments: &Arguments) -> (Duration, Duration) {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (blocking, tokio) = (arguments.blocking(), arguments.tokio());
    let mut grpc = runtime.block_on(arguments.grpc());
    let tine_turn = |count: usize, times: &mut Vec<Duration>| {
        if arguments.is_tokio {
            runtime.block_on(async {
                for _ in 0..count {
                    let begun = Instant::now();
                    tokio
                        .get_session(arguments.request())
                        .await
                        .expect("a reply");
                    times.push(begun.elapsed());
                }
            });
        } else {
            for _ in 0..count {
                let begun = Instant::now();
                blocking.get_session(arguments.request()).expect("a reply");
                times.push(begun.elapsed());
            }
        }
    };
    let mut grpc_turn = |count: usize, times: &mut Vec<Duration>| {
        runtime.block_on(async {
            for _ in 0..count {
                let begun = Instant::now();
                grpc.get_session(arguments.request()).await;
                times.push(begun.elapsed());
            }
        });
    };
    tine_turn(WARM_UP_CALLS, &mut Vec::new());
    grpc_turn(WARM_UP_CALLS, &mut Vec::new());
    let (mut tine, mut other) = (Vec::new(), Vec::new());
    while tine.len() < arguments.calls {
        tine_turn(TURN_CALLS, &mut tine);
        grpc_turn(TURN_CALLS, &mut other);
    }
    (median(tine), median(other))
}

/// Returns the calls per second with 64 in flight: the best of several rounds.
fn throughputs(arguments: &Arguments) -> (u64, u64) {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let (blocking, tokio) = (arguments.blocking(), arguments.tokio());
    let grpc = runtime.block_on(arguments.grpc());
    let (mut tine_best, mut grpc_best) = (0, 0);
    for _ in 0..ROUNDS {
        let tine = if arguments.is_tokio {
            let tokio = tokio.clone();
            rate_of_tasks(&runtime, arguments, move |request| {
                let client = tokio.clone();
                async move { drop(client.get_session(request).await.expect("a reply")) }
            })
        } else {
            rate_of_threads(arguments, &blocking)
        };
        let grpc = grpc.clone();
        let other = rate_of_tasks(&runtime, arguments, move |request| {
            let mut client = grpc.clone();
            async move { drop(client.get_session(request).await) }
        });
        tine_best = tine_best.max(tine);
        grpc_best = grpc_best.max(other);
    }
    (tine_best, grpc_best)
}

fn rate_of_threads(arguments: &Arguments, client: &v1::StoreServiceClient) -> u64 {
    let left = AtomicUsize::new(arguments.calls);
    let barrier = Barrier::new(IN_FLIGHT + 1);
    let begun = std::thread::scope(|scope| {
        for _ in 0..IN_FLIGHT {
            scope.spawn(|| {
                barrier.wait();
                while take_one(&left) {
                    client.get_session(arguments.request()).expect("a reply");
                }
            });
        }
        barrier.wait();
        Instant::now()
    });
    rate(arguments.calls, begun.elapsed())
}

fn rate_of_tasks<F: Future<Output = ()> + Send + 'static>(
    runtime: &Runtime,
    arguments: &Arguments,
    call: impl Fn(v1::GetSessionRequest) -> F + Clone + Send + Sync + 'static,
) -> u64 {
    let left = Arc::new(AtomicUsize::new(arguments.calls));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (left, call, request) = (Arc::clone(&left), call.clone(), arguments.request());
            runtime.spawn(async move {
                while take_one(&left) {
                    call(request.clone()).await;
                }
            })
        })
        .collect();
    for task in tasks {
        runtime.block_on(task).expect("a task that ends");
    }
    rate(arguments.calls, begun.elapsed())
}

fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
        count.checked_sub(1)
    })
    .is_ok()
}

fn rate(calls: usize, took: Duration) -> u64 {
    (calls as f64 / took.as_secs_f64()) as u64
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e7).round() / 10.0
}
