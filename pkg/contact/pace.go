package contact

import (
	"fmt"
	"io"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// Silence bounds the time until a server begins its answer, and then the time for every leastBytes of the answer. A busy Git server sends
	// a few bytes every five seconds.
	Silence = 2 * time.Minute

	leastBytes = 32
)

// SilentError says that a server was reached, but then sent nothing, or only a few bytes, for the time of Limit.
type SilentError struct {
	// Host is the host in the URL, with the port if the URL has one.
	Host string
	// Limit is the time for which the client waited.
	Limit time.Duration
}

// Error names the host.
func (e *SilentError) Error() string {
	return fmt.Sprintf("%s was reached, but then sent almost nothing for %s", e.Host, e.Limit)
}

// Timeout implements net.Error.
func (e *SilentError) Timeout() bool { return true }

// Temporary implements net.Error. It is false because a retry would wait as long again.
func (e *SilentError) Temporary() bool { return false }

// Steady returns from with a limit on waiting: Silence for every few bytes. After this limit it calls stop, which must end the pending
// Read. The error is then a *SilentError with host.
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
	// left is the remaining time for the next leastBytes, of which got have arrived. Only the time in Read counts, because the reader itself
	// may be slow.
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

// beginning limits the time from the end of a request to the beginning of its answer.
type beginning struct {
	silent *SilentError
	stop   func(cause error)

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// sent starts the time after the request has been written. The answer may have come before that.
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
