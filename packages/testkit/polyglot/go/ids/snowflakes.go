package ids

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "example.com/orders/gen/idmint/v1"
)

const (
	reserveMs = 3_000 // how far ahead of the ids time is reserved
	borrowMs  = 50    // how far ids may run ahead of the clock, when all sequences of a tick are used up
	backMs    = 5     // how far the clock may be behind what it showed before
)

var now = time.Now

// Refusals of Next: while the clock is behind its own last time, and until time is reserved.
var (
	ErrClockMovedBackwards = errors.New("the clock was set back")
	ErrNotReady            = status.Error(codes.Unavailable, "no more time is reserved for ids yet")
)

// Snowflakes makes the ids of one tag of kind snowflake under a leased worker id.
//
//  1. Tick and sequence only rise under a lease, and they pass an id before it leaves. A tick whose sequences are used up
//     is left before the clock is looked at.
//  2. An id is made only of a tick that the answers reserved as a whole, whatever was asked for and whatever the clock says.
//  3. A lease begins at its not_before_ms, above all that was ever reserved for its worker id.
//  4. A token is sent again only while it is unknown whether it was used. A refused lease makes no more ids.
type Snowflakes struct {
	client              pb.WorkerServiceClient
	tag, instance       string
	mu                  sync.Mutex // guards all below
	lease               *pb.LeaseWorkerResponse
	err                 error // why there is no lease
	tick, sequence      int64 // of the next id
	firstTick, lastTick int64 // of the reservation
	clockMs             int64 // the highest time of the clock that was believed
}

// NewSnowflakes leases a worker id and keeps it until ctx is done. Two programs that run may not have one instance.
func NewSnowflakes(ctx context.Context, client pb.WorkerServiceClient, tag, instance string) *Snowflakes {
	s := &Snowflakes{client: client, tag: tag, instance: instance, err: ErrNotReady}
	go func() {
		for s.renew(ctx); pause(ctx, time.Second); s.renew(ctx) {
		}
	}()
	return s
}

// Next answers the next id. It waits until ctx is done where that may help, and refuses while the clock is set back.
func (s *Snowflakes) Next(ctx context.Context) (int64, error) {
	for {
		id, err := s.try()
		code := status.Code(err) // DeadlineExceeded of the first call for a lease, which is tried again.
		if code != codes.Unavailable && code != codes.DeadlineExceeded || !pause(ctx, time.Millisecond) {
			return id, err
		}
	}
}
func (s *Snowflakes) try() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return 0, s.err
	}
	nowMs := now().UnixMilli()
	if nowMs < s.clockMs-backMs {
		return 0, fmt.Errorf("%w by %d ms; no id is made until it has caught up", ErrClockMovedBackwards, s.clockMs-nowMs)
	}
	layout, clockTick := s.lease.Snowflake.Layout, tickAt(s.lease.Snowflake.Layout, nowMs)
	if clockTick > s.lastTick {
		return 0, ErrNotReady // the registry has confirmed no clock as late as this one
	}
	s.clockMs = max(s.clockMs, nowMs)
	if clockTick > s.tick {
		s.tick, s.sequence = clockTick, 0
	}
	if s.tick > s.lastTick || s.tick > max(clockTick, s.firstTick)+borrowMs/unitMs(layout) {
		return 0, ErrNotReady
	}
	id := s.tick<<layout.ExtensionBits | int64(s.lease.Extension)
	id = id<<layout.DataCenterBits | int64(s.lease.DataCenter)
	id = id<<layout.WorkerBits | int64(s.lease.WorkerId)
	id = id<<layout.SequenceBits | s.sequence
	if s.sequence++; s.sequence == 1<<layout.SequenceBits {
		s.tick, s.sequence = s.tick+1, 0
	}
	return id, nil
}

// renew reserves more time, or leases a worker id where there is none. Nothing else changes s.lease.
func (s *Snowflakes) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if s.lease != nil && s.extend(ctx) {
		return
	}
	lease, err := s.client.LeaseWorker(ctx, &pb.LeaseWorkerRequest{Tag: s.tag, Instance: s.instance})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err == nil {
		layout := lease.Snowflake.Layout
		s.lease, s.clockMs = lease, 0
		s.firstTick = tickAt(layout, lease.NotBeforeMs+unitMs(layout)-1)
		s.tick, s.sequence, s.lastTick = s.firstTick, 0, lastTick(layout, lease.ReservedUntilMs)
	}
}

// extend answers whether the lease is kept.
func (s *Snowflakes) extend(ctx context.Context) bool {
	s.mu.Lock()
	lease, layout := s.lease, s.lease.Snowflake.Layout
	nextMs := layout.TimeOrigin.AsTime().UnixMilli() + s.tick*unitMs(layout)
	s.mu.Unlock()
	answer, err := s.client.RenewWorkerLease(ctx, &pb.RenewWorkerLeaseRequest{
		Tag: s.tag, DataCenter: lease.DataCenter, WorkerId: lease.WorkerId, Extension: lease.Extension,
		Token: lease.Token, ReserveUntilMs: max(now().UnixMilli(), nextMs) + reserveMs,
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch code := status.Code(err); {
	case code == codes.OK && answer.Epoch == lease.Epoch && answer.Extension == lease.Extension:
		lease.Token, s.lastTick = answer.Token, lastTick(layout, answer.ReservedUntilMs)
		return true
	case code == codes.Unavailable, code == codes.DeadlineExceeded, code == codes.Canceled,
		code == codes.ResourceExhausted, code == codes.Internal:
		return true // Nothing was said about the lease: the same token again.
	}
	s.lease, s.err = nil, ErrNotReady
	return false
}

func unitMs(layout *pb.SnowflakeLayout) int64 { return layout.TimeUnit.AsDuration().Milliseconds() }

func tickAt(layout *pb.SnowflakeLayout, ms int64) int64 {
	return (ms - layout.TimeOrigin.AsTime().UnixMilli()) / unitMs(layout)
}

// The last tick that ends by this time, as far as the layout has bits for it.
func lastTick(layout *pb.SnowflakeLayout, untilMs int64) int64 {
	return min(tickAt(layout, untilMs+1)-1, 1<<layout.TimeBits-1)
}
