package ids

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "example.com/orders/gen/idmint/v1"
)

// Segments issues the ids of one tag of kind segment from memory, and gets the next block when a tenth of one is used.
// All of it happens under mu:
//  1. The cursor passes an id before the id leaves, and never goes back.
//  2. One load is under way at most. What a load that failed may have taken is never used.
//  3. No id leaves under an epoch below the highest that was seen, or when its block is older than max_age.
//  4. A block has no id that came before. With PER_CLIENT it lies above all that came before.
type Segments struct {
	client   pb.IdServiceClient
	tag      string
	count    int32
	mu       sync.Mutex
	held     []block
	left     int64 // ids in held
	epoch    int64
	highest  int64
	received [][2]int64    // first and last id of the last 1,000 segments
	loading  chan struct{} // closed when the load under way is over; nil when there is none
	err      error         // why the last load failed
	retryAt  time.Time
}

type block struct {
	next, increment, left int64
	sent                  time.Time
	maxAge                time.Duration
}

// NewSegments makes a source of ids that takes count of them at a time.
func NewSegments(client pb.IdServiceClient, tag string, count int32) *Segments {
	return &Segments{client: client, tag: tag, count: count}
}

// Next answers an id from memory, or waits for the load under way.
func (s *Segments) Next(ctx context.Context) (int64, error) {
	for {
		s.mu.Lock()
		id, ok := s.take(time.Now())
		if s.loading == nil && s.left*10 <= int64(s.count)*9 && !time.Now().Before(s.retryAt) {
			s.loading = make(chan struct{})
			go s.load(s.highest)
		}
		loading, err := s.loading, s.err
		s.mu.Unlock()
		if ok {
			return id, nil
		}
		if loading == nil {
			return 0, err
		}
		select {
		case <-loading:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (s *Segments) take(now time.Time) (int64, bool) {
	for ; len(s.held) > 0; s.held = s.held[1:] {
		b := &s.held[0]
		// The wall clock too, since the monotonic one may stand still while the machine is suspended.
		age := max(now.Sub(b.sent), now.Round(0).Sub(b.sent.Round(0)))
		if b.left > 0 && age < b.maxAge {
			id := b.next
			b.next += b.increment
			b.left--
			s.left--
			return id, true
		}
		s.left -= b.left
	}
	return 0, false
}

func (s *Segments) load(after int64) {
	sent := time.Now()
	request := &pb.AllocateSegmentRequest{Tag: s.tag, Count: s.count, After: after}
	answer, err := s.client.AllocateSegment(context.Background(), request)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		err = s.accept(answer, sent)
	}
	if code := status.Code(err); code == codes.FailedPrecondition || code == codes.NotFound {
		s.held, s.left = nil, 0 // paused, deleted, stopped, or the store went back
	}
	s.err, s.retryAt = err, time.Now()
	if err != nil {
		s.retryAt = s.retryAt.Add(RetryAfter(err))
	}
	close(s.loading)
	s.loading = nil
}

func (s *Segments) accept(answer *pb.AllocateSegmentResponse, sent time.Time) error {
	if answer.Epoch < s.epoch {
		return status.Error(codes.Unavailable, "this server has not heard of the tag's newer epoch yet")
	}
	if answer.Epoch > s.epoch {
		s.held, s.left, s.epoch = nil, 0, answer.Epoch
	}
	if len(answer.Segments) == 0 {
		return status.Error(codes.FailedPrecondition, "the server answered no ids")
	}
	above := int64(-1)
	if answer.Order != pb.Order_ORDER_UNORDERED {
		above = s.highest
	}
	for _, g := range answer.Segments {
		last := g.Base + int64(g.Count-1)*int64(g.Increment)
		isBad := g.Count < 1 || g.Increment < 1 || g.Base <= above || last < g.Base
		for _, r := range s.received {
			isBad = isBad || g.Base <= r[1] && r[0] <= last
		}
		if isBad {
			return status.Error(codes.FailedPrecondition, "the server answered ids that came before, or a malformed segment")
		}
		above, s.highest = last, max(s.highest, last)
		s.received = append(s.received[max(0, len(s.received)-999):], [2]int64{g.Base, last})
	}
	for _, g := range answer.Segments {
		s.held = append(s.held, block{g.Base, int64(g.Increment), int64(g.Count), sent, answer.MaxAge.AsDuration()})
		s.left += int64(g.Count)
	}
	return nil
}
