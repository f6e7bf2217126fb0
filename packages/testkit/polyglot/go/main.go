package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "example.com/orders/gen/idmint/v1"
	"example.com/orders/ids"
)

func main() {
	ctx := context.Background()
	creds, token := insecure.NewCredentials(), os.Getenv("IDMINT_TOKEN")
	if token != "" {
		creds = credentials.NewTLS(nil) // the machine's authorities, and those of SSL_CERT_FILE
	}
	conn, err := ids.Connect(os.Getenv("IDMINT_ADDRESS"), creds, token)
	check(err)
	defer conn.Close()
	client := pb.NewIdServiceClient(conn)

	one, err := client.GenerateId(ctx, &pb.GenerateIdRequest{Tag: "orders"})
	check(err)
	ten, err := ids.Batch(ctx, client, "orders", 10)
	check(err)
	more, err := ids.Stream(ctx, client, "orders", 1_000)
	check(err)
	fmt.Println("by calls:", one.Id, len(ten), len(more))

	orders := ids.NewSegments(client, "orders", 10_000)
	traces := ids.NewSnowflakes(ctx, pb.NewWorkerServiceClient(conn), "traces", "orders-0")
	for range 3 {
		order, err := orders.Next(ctx)
		check(err)
		trace, err := traces.Next(ctx)
		check(err)
		fmt.Println("in this process:", order, trace)
	}

	_, err = client.GenerateId(ctx, &pb.GenerateIdRequest{Tag: "unknown"})
	fmt.Println("refused:", ids.Reason(err))
}

func check(err error) {
	if err != nil {
		log.Fatal(ids.Reason(err), " ", err)
	}
}
