//! The floor of another platform: what a bare tonic server costs, on one thread, that answers GenerateId from a counter.
use std::convert::Infallible;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{http, BoxFuture, Service};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct GenerateIdRequest {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(string, tag = "2")]
    name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct GenerateIdResponse {
    #[prost(int64, tag = "1")]
    id: i64,
    #[prost(int64, tag = "2")]
    epoch: i64,
}

struct GenerateId(Arc<AtomicI64>);

impl UnaryService<GenerateIdRequest> for GenerateId {
    type Response = GenerateIdResponse;
    type Future = BoxFuture<Response<Self::Response>, Status>;

    fn call(&mut self, _request: Request<GenerateIdRequest>) -> Self::Future {
        let id = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(Response::new(GenerateIdResponse { id, epoch: 1 })) })
    }
}

#[derive(Clone)]
struct IdService(Arc<AtomicI64>);

impl NamedService for IdService {
    const NAME: &'static str = "idmint.v1.IdService";
}

impl Service<http::Request<Body>> for IdService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = GenerateId(self.0.clone());
        Box::pin(async move {
            let codec: ProstCodec<GenerateIdResponse, GenerateIdRequest> = ProstCodec::default();
            Ok(Grpc::new(codec).unary(method, request).await)
        })
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on {}.", listener.local_addr()?);
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    let mut told = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tonic::transport::Server::builder()
        .add_service(IdService(Arc::new(AtomicI64::new(1))))
        .serve_with_incoming_shutdown(incoming, async move {
            told.recv().await;
        })
        .await?;
    Ok(())
}
