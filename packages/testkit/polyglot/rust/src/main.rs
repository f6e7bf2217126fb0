//! A caller for the tests that knows nothing of ids: it does the steps of its command line, and prints a line of JSON for each.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, Bytes};
use serde_json::{json, Value};
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

/// Passes messages as they are.
#[derive(Default)]
struct Raw;

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;
    fn encoder(&mut self) -> Raw {
        Raw
    }
    fn decoder(&mut self) -> Raw {
        Raw
    }
}

#[derive(Default)]
struct Seen {
    answers: Vec<String>,
    ends: BTreeMap<String, u64>,
    texts: BTreeSet<String>,
}

struct Step {
    its: Value,
    message: Bytes,
    channel: Channel,
    seen: Mutex<Seen>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Bytes {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(byte).collect()
}

impl Step {
    fn number(&self, name: &str) -> u64 {
        self.its[name].as_u64().expect(name)
    }

    fn text(&self, name: &str) -> &str {
        self.its[name].as_str().expect(name)
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(Duration::from_millis(self.number("timeoutMs")));
        let large = "x".repeat(self.number("metadataBytes") as usize);
        if !large.is_empty() {
            let value = MetadataValue::try_from(large).expect("metadata");
            request.metadata_mut().insert("x-large", value);
        }
        request
    }

    fn answered(&self, answer: &[u8]) -> u64 {
        let mut seen = self.seen.lock().expect("seen");
        seen.answers.push(hex(answer));
        seen.answers.len() as u64
    }

    fn ended(&self, end: Result<(), Status>) {
        let mut seen = self.seen.lock().expect("seen");
        let code = end.as_ref().err().map_or(Code::Ok, Status::code);
        *seen.ends.entry((code as i32).to_string()).or_default() += 1;
        if let Err(status) = end {
            seen.texts.insert(status.message().to_owned());
        }
    }

    /// What is not over in time is dropped, and so cancelled: by the time that its step has, or that of gRPC.
    async fn bounded<T>(&self, work: impl std::future::Future<Output = Result<T, Status>>) -> Result<T, Status> {
        let (timeout, cancel) = (self.number("timeoutMs"), self.number("cancelAfterMs"));
        let (after, status) = if cancel > 0 && cancel < timeout {
            (cancel, Status::cancelled("enough"))
        } else {
            (timeout, Status::deadline_exceeded("too late"))
        };
        tokio::time::timeout(Duration::from_millis(after), work).await.unwrap_or(Err(status))
    }

    fn client(&self) -> (Grpc<Channel>, http::uri::PathAndQuery) {
        let client = Grpc::new(self.channel.clone());
        let path = format!("/{}", self.text("method")).parse().expect("a path");
        let is_zipped = self.its["gzip"] == json!(true);
        (if is_zipped { client.send_compressed(CompressionEncoding::Gzip) } else { client }, path)
    }

    async fn unary(&self) {
        let (mut client, path) = self.client();
        let end = self.bounded(async {
            client.ready().await.map_err(|why| Status::unavailable(why.to_string()))?;
            client.unary(self.request(self.message.clone()), path, Raw).await
        });
        self.ended(end.await.map(|answer| {
            self.answered(&answer.into_inner());
        }));
    }

    async fn stream(&self) {
        let (mut client, path) = self.client();
        let count = self.number("calls");
        let (over, is_over) = tokio::sync::oneshot::channel::<()>();
        let messages = tokio_stream::iter(vec![self.message.clone(); count as usize]);
        let (last, rest) = tokio::sync::mpsc::channel::<Bytes>(1);
        let messages = messages.chain(tokio_stream::wrappers::ReceiverStream::new(rest));
        tokio::spawn(async move {
            let _ = is_over.await;
            drop(last);
        });
        let mut over = Some(over);
        let end = self.bounded(async {
            client.ready().await.map_err(|why| Status::unavailable(why.to_string()))?;
            let answer = client.streaming(self.request(messages), path, Raw).await?;
            let mut answers = answer.into_inner();
            while let Some(message) = answers.message().await? {
                if self.answered(&message) == count {
                    over.take();
                }
            }
            Ok(())
        });
        let end = end.await;
        self.ended(end);
    }

    /// Calls again and again, for so long.
    async fn fly(&self) {
        let end = Instant::now() + Duration::from_millis(self.number("forMs"));
        while Instant::now() < end {
            self.unary().await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn run(step: Arc<Step>) {
    println!("begun");
    let for_ms = step.number("forMs");
    if step.its["isStream"] == json!(true) {
        step.stream().await;
    } else {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..step.number("calls") {
            let step = step.clone();
            calls.spawn(async move {
                if for_ms > 0 {
                    step.fly().await;
                } else {
                    step.unary().await;
                }
            });
        }
        if calls.is_empty() {
            tokio::time::sleep(Duration::from_millis(for_ms)).await;
        }
        calls.join_all().await;
    }
    let seen = step.seen.lock().expect("seen");
    let line = json!({ "answers": seen.answers, "ends": seen.ends, "texts": seen.texts });
    println!("seen {line}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config: Value = serde_json::from_str(&std::env::args().nth(1).expect("a configuration"))?;
    let (address, ca) = (config["address"].as_str().expect("address"), config["ca"].as_str().expect("ca"));
    let scheme = if ca.is_empty() { "http" } else { "https" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))?;
    if !ca.is_empty() {
        let authority = Certificate::from_pem(std::fs::read(ca)?);
        endpoint = endpoint.tls_config(ClientTlsConfig::new().ca_certificate(authority))?;
    }
    let keepalive = config["keepaliveMs"].as_u64().expect("keepaliveMs");
    if keepalive > 0 {
        let every = Duration::from_millis(keepalive);
        endpoint = endpoint.http2_keep_alive_interval(every).keep_alive_while_idle(true);
    }
    let channel = endpoint.connect_lazy();
    for its in config["steps"].as_array().expect("steps") {
        let step = Step {
            message: unhex(its["message"].as_str().expect("message")),
            its: its.clone(),
            channel: channel.clone(),
            seen: Mutex::default(),
        };
        run(Arc::new(step)).await;
    }
    Ok(())
}
