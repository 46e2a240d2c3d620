package contact

import (
	"fmt"
	"io"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// Silence is how long a server may take to begin its answer, and for each further leastBytes of it. A Git server that thinks for long
	// sends a few bytes every five seconds.
	Silence = 2 * time.Minute

	leastBytes = 32
)

// SilentError says that a server was reached, and then sent nothing, or a few bytes, for so long that nobody should wait for the rest.
type SilentError struct {
	// Host as in the URL, with the port if it has one.
	Host string
	// Limit is how long it was waited for.
	Limit time.Duration
}

// Error names the host.
func (e *SilentError) Error() string {
	return fmt.Sprintf("%s was reached, and has then sent next to nothing for %s", e.Host, e.Limit)
}

// Timeout makes it an error of the network for whoever asks as package net does.
func (e *SilentError) Timeout() bool { return true }

// Temporary is false: whoever tries again by himself would wait as long once more.
func (e *SilentError) Temporary() bool { return false }

// Steady returns from with a limit on how long its reader waits for it: Silence for every few bytes. Past this limit stop is called, which
// has to end the Read that waits, and the error is a *SilentError that names host.
func Steady(from io.ReadCloser, host string, stop func(cause error)) io.ReadCloser {
	return steady(from, &SilentError{host, Silence}, stop)
}

func steady(from io.ReadCloser, silent *SilentError, stop func(cause error)) *steadyBody {
	return &steadyBody{ReadCloser: from, silent: silent, left: silent.Limit, stop: stop}
}

type steadyBody struct {
	io.ReadCloser
	silent *SilentError
	stop   func(error)
	// left is how long may be waited for what lacks of leastBytes, of which got are there. Only the time within Read counts, as the reader may
	// be slow itself.
	left time.Duration
	got  int
}

// Read implements io.Reader.
func (b *steadyBody) Read(p []byte) (int, error) {
	timer := time.AfterFunc(b.left, func() { b.stop(b.silent) })
	begun := time.Now()
	n, err := b.ReadCloser.Read(p)
	if !timer.Stop() {
		return n, b.silent
	}
	b.left -= time.Since(begun)
	if b.got += n; b.got >= leastBytes {
		b.left, b.got = b.silent.Limit, 0
	}
	return n, err
}

// beginning limits how long a server may take from the end of a request to the beginning of its answer.
type beginning struct {
	silent *SilentError
	stop   func(cause error)

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// sent starts the time: the request has been written. An answer may come before that.
func (b *beginning) sent(httptrace.WroteRequestInfo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over && b.timer == nil {
		b.timer = time.AfterFunc(b.silent.Limit, func() { b.stop(b.silent) })
	}
}

// end stops the time.
func (b *beginning) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over = true; b.timer != nil {
		b.timer.Stop()
	}
}
