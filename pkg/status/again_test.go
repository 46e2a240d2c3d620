package status

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
)

// Two looks at the same trouble say the same, whichever source gives up first: else --watch prints what has not changed.
func TestTroubleIsInTheOrderOfTheTree(t *testing.T) {
	want := []string{"fleet repo server", "fleet repo /home/me/fleet", "API server", "providers", "Flux", "workload clusters"}
	for range 50 {
		c := &collector{report: &Report{}}
		for _, i := range rand.Perm(len(want)) {
			c.missing(want[i], errors.New("no answer"))
		}
		var got []string
		for _, p := range inOrder(c.failed) {
			got = append(got, p.Object)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("got %q", got)
		}
	}
}

// The local port of a connection differs with each attempt.
func TestReasonWithoutOurPort(t *testing.T) {
	server := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6443}
	for _, port := range []int{40001, 50002} {
		ours := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
		err := fmt.Errorf("list: %w", &net.OpError{
			Op: "read", Net: "tcp", Source: ours, Addr: server,
			Err: errors.New("connection reset by peer"),
		})
		if got, want := reason(err), "list: read tcp 127.0.0.1:6443: connection reset by peer"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := reason(errors.New("plain")); got != "plain" {
		t.Errorf("got %q", got)
	}
}
