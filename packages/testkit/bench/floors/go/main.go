// The floor of another platform: what a bare grpc-go server costs that answers GenerateId from a counter.
//
// GenerateIdRequest has its tag as string field 1 and GenerateIdResponse its id as int64 field 1, as StringValue and
// Int64Value have theirs, so the well-known wrappers speak the same bytes and no code has to be generated.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type counter struct{ next atomic.Int64 }

func (c *counter) generateID(context.Context, *wrapperspb.StringValue) (*wrapperspb.Int64Value, error) {
	return wrapperspb.Int64(c.next.Add(1)), nil
}

// As protoc-gen-go-grpc writes it for a unary method.
func generateIDHandler(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	request := new(wrapperspb.StringValue)
	if err := decode(request); err != nil {
		return nil, err
	}
	if interceptor == nil {
		return srv.(*counter).generateID(ctx, request)
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/idmint.v1.IdService/GenerateId"}
	handler := func(ctx context.Context, request any) (any, error) {
		return srv.(*counter).generateID(ctx, request.(*wrapperspb.StringValue))
	}
	return interceptor(ctx, request, info, handler)
}

var idService = grpc.ServiceDesc{
	ServiceName: "idmint.v1.IdService",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "GenerateId", Handler: generateIDHandler}},
	Metadata:    "idmint/v1/id_service.proto",
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	server.RegisterService(&idService, &counter{})
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		<-told
		server.Stop()
	}()
	fmt.Printf("listening on %s.\n", listener.Addr())
	if err := server.Serve(listener); err != nil {
		log.Fatal(err)
	}
}
