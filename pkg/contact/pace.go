package contact

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// Silence bounds the time until a server begins its answer, and then the time for every leastBytes of the answer. A busy Git server sends
	// a few bytes every five seconds.
	Silence = 2 * time.Minute

	leastBytes = 32
	// pieceBytes is how much of a request the server must take within Silence.
	pieceBytes = 8 << 10
)

// SilentError says that a server was reached, but then sent nothing, or only a few bytes, or took no data, for the time of Limit.
type SilentError struct {
	// Host is the host in the URL, with the port if the URL has one.
	Host string
	// Limit is the time for which the client waited.
	Limit time.Duration
}

// Error names the host.
func (e *SilentError) Error() string {
	return fmt.Sprintf("%s was reached, but then sent or took almost nothing for %s", e.Host, e.Limit)
}

// Timeout implements net.Error.
func (e *SilentError) Timeout() bool { return true }

// Temporary implements net.Error. It is false because a retry would wait as long again.
func (e *SilentError) Temporary() bool { return false }

// Steady returns from with a limit on waiting: the limit of silent for every few bytes. After this limit it calls stop with silent. stop
// must end the pending Read, whose error is then silent. It may be called more than once, and has returned before Read returns silent.
func Steady(from io.ReadCloser, silent *SilentError, stop func(cause error)) io.ReadCloser {
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
		b.stop(b.silent) // the timer's own call may only be starting, if the server sent something at the limit
		return n, b.silent
	}
	b.left -= time.Since(begun)
	if b.got += n; b.got >= leastBytes {
		b.left, b.got = b.silent.Limit, 0
	}
	return n, err
}

// SteadyWriter returns to with a limit on waiting: the limit of silent for every few kilobytes. After this limit, Write returns silent. The
// pending Write of to may still run then, so only Close of to may follow.
func SteadyWriter(to io.WriteCloser, silent *SilentError) io.WriteCloser {
	return &steadyWriter{to, silent}
}

type steadyWriter struct {
	io.WriteCloser
	silent *SilentError
}

// Write implements io.Writer.
func (w *steadyWriter) Write(p []byte) (written int, _ error) {
	type result struct {
		n   int
		err error
	}
	for first := true; first || len(p) > 0; first = false {
		piece := bytes.Clone(p[:min(len(p), pieceBytes)]) // after the limit, the caller may change p while the pending Write still reads it
		p = p[len(piece):]
		done := make(chan result, 1)
		go func() {
			n, err := w.WriteCloser.Write(piece)
			done <- result{n, err}
		}()
		limit := time.NewTimer(w.silent.Limit)
		select {
		case got := <-done:
			limit.Stop()
			if written += got.n; got.err != nil {
				return written, got.err
			}
		case <-limit.C:
			return written, w.silent
		}
	}
	return written, nil
}

// waiting limits the time in which a server takes each piece of a request, and the time from the end of the request to the beginning of its
// answer.
type waiting struct {
	silent *SilentError
	stop   func(cause error)

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// begin starts the time anew, because the server must act next. The answer may have begun before the whole request was written.
func (w *waiting) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(w.silent.Limit, func() { w.stop(w.silent) })
		return
	}
	w.timer.Reset(w.silent.Limit)
}

// pause stops the time, because the client must act next.
func (w *waiting) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// end stops the time for good.
func (w *waiting) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over = true; w.timer != nil {
		w.timer.Stop()
	}
}

// question is the body of a request. The transport reads the next piece once the server has taken the piece before it.
type question struct {
	io.ReadCloser
	server *waiting
}

// Read implements io.Reader.
func (q *question) Read(p []byte) (int, error) {
	q.server.pause()
	defer q.server.begin()
	return q.ReadCloser.Read(p[:min(len(p), pieceBytes)])
}

// of returns a copy of req whose body pauses and begins the time of w.
func (w *waiting) of(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	steady := *req
	steady.Body = &question{req.Body, w}
	if req.GetBody != nil { // Go's own transport may send the body again on another connection
		steady.GetBody = func() (io.ReadCloser, error) {
			body, err := req.GetBody()
			return &question{body, w}, err
		}
	}
	return &steady
}
