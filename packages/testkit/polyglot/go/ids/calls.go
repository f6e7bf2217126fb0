// Package ids mints ids with idmint.
package ids

import (
	"context"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	pb "example.com/orders/gen/idmint/v1"
)

const (
	timeout  = 5 * time.Second // of a call with all its tries, unless the caller's deadline is earlier
	inFlight = 100             // requests on a stream without an answer; a server takes 1,024
)

type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return true }

// Connect opens a connection: with credentials.NewTLS and a token, or with insecure.NewCredentials and "".
func Connect(address string, creds credentials.TransportCredentials, token string) (*grpc.ClientConn, error) {
	reconnect := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: timeout}),
		grpc.WithUnaryInterceptor(retryUnavailable),
	}
	if token != "" {
		options = append(options, grpc.WithPerRPCCredentials(bearer(token)))
	}
	return grpc.NewClient(address, options...)
}

// Only UNAVAILABLE may be retried, after the time in RetryInfo. The new answer has other ids.
func retryUnavailable(ctx context.Context, method string, request, answer any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := invoke(ctx, method, request, answer, conn, options...)
		if status.Code(err) != codes.Unavailable || !pause(ctx, RetryAfter(err)) {
			return err
		}
	}
}

// pause answers false when the time of ctx is over first.
func pause(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// Reason answers what the server says is wrong, such as TAG_NOT_FOUND, or "" when the error is not of a server.
func Reason(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "idmint" {
			return info.Reason
		}
	}
	return ""
}

// RetryAfter answers how long to wait before the next try.
func RetryAfter(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			return max(retry.RetryDelay.AsDuration(), time.Millisecond)
		}
	}
	return 100 * time.Millisecond
}

// Batch mints count ids in one call. They travel as ranges.
func Batch(ctx context.Context, client pb.IdServiceClient, tag string, count int32) ([]int64, error) {
	answer, err := client.GenerateIds(ctx, &pb.GenerateIdsRequest{Tag: tag, Count: count})
	if err != nil {
		return nil, err
	}
	ids := make([]int64, 0, count)
	for _, s := range answer.Segments {
		for i := range int64(s.Count) {
			ids = append(ids, s.Base+i*int64(s.Increment))
		}
	}
	return ids, nil
}

// Stream mints count ids by one small request each, on one stream. When it breaks, the ids that came before are
// answered together with the error; ask again for the rest.
func Stream(ctx context.Context, client pb.IdServiceClient, tag string, count int) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stream, err := client.StreamIds(ctx)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for sent := 0; len(ids) < count; {
		for ; sent < count && sent-len(ids) < inFlight; sent++ {
			if stream.Send(&pb.StreamIdsRequest{Call: uint32(sent), Tag: tag}) != nil {
				break // Recv tells why.
			}
		}
		answer, err := stream.Recv()
		if err != nil {
			return ids, err
		}
		if refusal := answer.GetError(); refusal != nil {
			return ids, status.ErrorProto(refusal)
		}
		ids = append(ids, answer.GetOne().GetId())
	}
	return ids, nil
}
