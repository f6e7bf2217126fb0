// Command load is a process of callers for the tests: it mints from every kind of tag, and writes down each id before it
// takes the next.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "example.com/orders/gen/idmint/v1"
	"example.com/orders/ids"
)

var (
	config struct {
		Address, Folder, Name, Token, Ca string
		Count                            int
		Block                            int32
	}
	stopped, stop = signal.NotifyContext(context.Background(), syscall.SIGTERM)
	refusals      = map[string]int{}
	guard         sync.Mutex
	running       sync.WaitGroup
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func refused(err error) {
	reason := ids.Reason(err)
	switch {
	case errors.Is(err, ids.ErrClockMovedBackwards):
		reason = "CLOCK_MOVED_BACKWARDS"
	case errors.Is(err, ids.ErrNotReady):
		reason = "SEGMENT_NOT_READY"
	case reason == "":
		reason = status.Code(err).String()
	}
	guard.Lock()
	defer guard.Unlock()
	if refusals[reason]++; refusals[reason] == 1 {
		fmt.Println("refused", reason)
	}
}

// run starts streams of one tag. The ids of each are written in the order in which it got them.
func run(tag string, threads, count int, source func(context.Context) ([]int64, error)) {
	name := filepath.Join(config.Folder, config.Name+"."+tag+".ids")
	file := must(os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o644))
	for stream := range threads {
		running.Go(func() {
			record := make([]byte, 32) // as packages/testkit/src/fleet/record.ts reads it
			binary.LittleEndian.PutUint32(record[16:], 1)
			binary.LittleEndian.PutUint32(record[20:], 1)
			binary.LittleEndian.PutUint32(record[24:], uint32(stream))
			for minted := 0; stopped.Err() == nil || minted < count; {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				got, err := source(ctx)
				cancel()
				for _, id := range got {
					binary.LittleEndian.PutUint64(record, uint64(id))
					binary.LittleEndian.PutUint64(record[8:], math.Float64bits(float64(time.Now().UnixMicro())/1_000))
					must(file.Write(record))
				}
				minted += len(got)
				if err != nil {
					refused(err)
					time.Sleep(min(ids.RetryAfter(err), time.Second))
				} else if minted >= count {
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
}

func one(next func(context.Context) (int64, error)) func(context.Context) ([]int64, error) {
	return func(ctx context.Context) ([]int64, error) {
		id, err := next(ctx)
		if err != nil {
			return nil, err
		}
		return []int64{id}, nil
	}
}

func main() {
	defer stop()
	must(0, json.Unmarshal([]byte(os.Args[1]), &config))
	creds := insecure.NewCredentials()
	if config.Ca != "" {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(must(os.ReadFile(config.Ca)))
		creds = credentials.NewTLS(&tls.Config{RootCAs: roots})
	}
	conn := must(ids.Connect(config.Address, creds, config.Token))
	client := pb.NewIdServiceClient(conn)
	orders := ids.NewSegments(client, "accounts", config.Block)
	ledger := ids.NewSegments(client, "ledger", config.Block)
	traces := ids.NewSnowflakes(context.Background(), pb.NewWorkerServiceClient(conn), "clicks", config.Name)
	_, err := client.GenerateId(context.Background(), &pb.GenerateIdRequest{Tag: "unknown"})
	refused(err)

	part := config.Count / 10
	run("accounts", 2, part*2, one(orders.Next))
	run("ledger", 2, part, one(ledger.Next))
	run("clicks", 2, part, one(traces.Next))
	run("invoices", 1, part*2, func(ctx context.Context) ([]int64, error) {
		one, err := client.GenerateId(ctx, &pb.GenerateIdRequest{Tag: "invoices"})
		if err != nil {
			return nil, err
		}
		more, err := ids.Batch(ctx, client, "invoices", int32(part/20))
		return append([]int64{one.Id}, more...), err
	})
	run("streamed", 1, part/10, func(ctx context.Context) ([]int64, error) {
		return ids.Stream(ctx, client, "streamed", part/100)
	})
	fmt.Println("started")
	running.Wait()
	fmt.Printf("report %s\n", must(json.Marshal(map[string]any{"refusals": refusals})))
}
