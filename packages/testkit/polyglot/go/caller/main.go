// Command caller is a caller for the tests that knows nothing of ids: it does the steps of its command line, and prints a line of
// JSON for each.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

type step struct {
	Method, Message                 string
	Calls, MetadataBytes, Retries   int
	IsStream, Gzip                  bool
	TimeoutMs, CancelAfterMs, ForMs int64
	message                         []byte
	mu                              sync.Mutex
	answers                         []string
	ends                            map[string]int
	retried                         int
	texts                           map[string]bool
}

// raw passes messages as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func (s *step) answered(message []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, hex.EncodeToString(message))
	return len(s.answers)
}

func (s *step) ended(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[fmt.Sprint(int(status.Code(err)))]++
	if err != nil {
		s.texts[status.Convert(err).Message()] = true
	}
}

func (s *step) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.TimeoutMs)*time.Millisecond)
	if s.MetadataBytes > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "x-large", strings.Repeat("x", s.MetadataBytes))
	}
	if s.CancelAfterMs > 0 {
		time.AfterFunc(time.Duration(s.CancelAfterMs)*time.Millisecond, cancel)
	}
	return ctx, cancel
}

func (s *step) options() []grpc.CallOption {
	options := []grpc.CallOption{grpc.ForceCodec(raw{})}
	if s.Gzip {
		options = append(options, grpc.UseCompressor(gzip.Name))
	}
	return options
}

// unary makes a call, and answers whether it is over, or to be made again.
func (s *step) unary(conn *grpc.ClientConn, mayRetry bool) bool {
	ctx, cancel := s.context()
	defer cancel()
	var answer []byte
	err := conn.Invoke(ctx, "/"+s.Method, &s.message, &answer, s.options()...)
	if mayRetry && status.Code(err) == codes.Unavailable {
		s.mu.Lock()
		s.retried++
		s.mu.Unlock()
		return false
	}
	if err == nil {
		s.answered(answer)
	}
	s.ended(err)
	return true
}

func (s *step) stream(conn *grpc.ClientConn) {
	ctx, cancel := s.context()
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+s.Method, s.options()...)
	for i := 0; i < s.Calls && err == nil; i++ {
		if stream.SendMsg(&s.message) != nil {
			break // RecvMsg tells why.
		}
	}
	for err == nil {
		var answer []byte
		if err = stream.RecvMsg(&answer); err == nil && s.answered(answer) == s.Calls {
			must(0, stream.CloseSend())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	s.ended(err)
}

// fly calls again and again, for so long.
func (s *step) fly(conn *grpc.ClientConn) {
	for end := time.Now().Add(time.Duration(s.ForMs) * time.Millisecond); time.Now().Before(end); {
		for retries := s.Retries; !s.unary(conn, retries > 0); retries-- {
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *step) run(conn *grpc.ClientConn) {
	fmt.Println("begun")
	s.message, s.ends, s.texts = must(hex.DecodeString(s.Message)), map[string]int{}, map[string]bool{}
	if s.IsStream {
		s.stream(conn)
	} else {
		var calls sync.WaitGroup
		for range s.Calls {
			calls.Go(func() {
				if s.ForMs > 0 {
					s.fly(conn)
				} else {
					s.unary(conn, false)
				}
			})
		}
		calls.Wait()
		if s.Calls == 0 {
			time.Sleep(time.Duration(s.ForMs) * time.Millisecond)
		}
	}
	texts := []string{}
	for text := range s.texts {
		texts = append(texts, text)
	}
	fmt.Printf("seen %s\n", must(json.Marshal(map[string]any{"answers": s.answers, "ends": s.ends, "texts": texts, "retried": s.retried})))
}

func main() {
	var config struct {
		Address, Ca string
		KeepaliveMs int64
		Steps       []*step
	}
	must(0, json.Unmarshal([]byte(os.Args[1]), &config))
	creds := insecure.NewCredentials()
	if config.Ca != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(must(os.ReadFile(config.Ca)))
		creds = credentials.NewTLS(&tls.Config{RootCAs: roots})
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(creds)}
	if config.KeepaliveMs > 0 {
		every := time.Duration(config.KeepaliveMs) * time.Millisecond
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: every, PermitWithoutStream: true}))
	}
	conn := must(grpc.NewClient(config.Address, options...))
	defer conn.Close()
	for _, each := range config.Steps {
		each.run(conn)
	}
}
