// Bench compares this client with grpc-go on GetSession: the median latency of lone calls, in turns
// of 20 to 50 on each, and the calls per second with 64 in flight. It prints one line of JSON.
//
//	client/go/bench --tine ipc:///…/tine.sock --grpc unix:/…/grpc.sock --session ID [--calls N]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"log"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	tine "github.com/tine-store/tine/client/go"
	"github.com/tine-store/tine/client/go/tinev1"
)

const (
	turnMin, turnMax = 20, 50
	inFlight         = 64
	throughputTurns  = 6
)

type result struct {
	Language string  `json:"language"`
	TineP50  float64 `json:"tine_p50_us"`
	GRPCP50  float64 `json:"grpc_p50_us"`
	TineRPS  float64 `json:"tine_rps_64"`
	GRPCRPS  float64 `json:"grpc_rps_64"`
}

// side is one of the two clients and its measurements.
type side struct {
	store   tinev1.StoreServiceClient
	session string
	seen    []time.Duration
	rates   []float64
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	tineURL := flag.String("tine", "", "tined's URL")
	grpcTarget := flag.String("grpc", "", "the gRPC server's target; empty: tine alone")
	session := flag.String("session", "", "the id of a session")
	calls := flag.Int("calls", 10000, "lone calls of each client")
	flag.Parse()

	client, err := tine.Dial(*tineURL)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	sides := []*side{{store: tinev1.NewStoreServiceClient(client), session: *session}}
	if *grpcTarget != "" {
		stock, err := grpc.NewClient(*grpcTarget,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			log.Fatal(err)
		}
		defer stock.Close()
		sides = append(sides, &side{store: tinev1.NewStoreServiceClient(stock), session: *session})
	}
	run(sides, *calls)
	out := result{Language: "go", TineP50: sides[0].median(), TineRPS: sides[0].rate()}
	if len(sides) > 1 {
		out.GRPCP50, out.GRPCRPS = sides[1].median(), sides[1].rate()
	}
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		log.Fatal(err)
	}
}

func run(sides []*side, calls int) {
	for _, s := range sides {
		s.turn(calls / 10)
		s.seen = s.seen[:0]
		s.crowd(calls / 10)
		s.rates = s.rates[:0]
	}
	for turn, done := turnMin, 0; done < calls; done += turn {
		for _, s := range sides {
			s.turn(turn)
		}
		if turn++; turn > turnMax {
			turn = turnMin
		}
	}
	for range throughputTurns {
		for _, s := range sides {
			s.crowd(calls)
		}
	}
}

func (s *side) call() {
	request := tinev1.GetSessionRequest{SessionId: s.session}
	if _, err := s.store.GetSession(context.Background(), &request); err != nil {
		log.Fatal(err)
	}
}

// turn makes lone calls, one after another.
func (s *side) turn(calls int) {
	for range calls {
		begun := time.Now()
		s.call()
		s.seen = append(s.seen, time.Since(begun))
	}
}

// crowd makes calls with 64 in flight.
func (s *side) crowd(calls int) {
	var left atomic.Int64
	left.Store(int64(calls))
	begun := time.Now()
	var group sync.WaitGroup
	for range inFlight {
		group.Add(1)
		go func() {
			defer group.Done()
			for left.Add(-1) >= 0 {
				s.call()
			}
		}()
	}
	group.Wait()
	s.rates = append(s.rates, float64(calls)/time.Since(begun).Seconds())
}

func (s *side) median() float64 {
	slices.Sort(s.seen)
	return float64(s.seen[len(s.seen)/2]) / float64(time.Microsecond)
}

func (s *side) rate() float64 {
	slices.Sort(s.rates)
	return s.rates[len(s.rates)/2]
}
