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
	// Silence is how long a server may take to begin its answer, and for each further leastBytes of it. A Git server that thinks for long
	// sends a few bytes every five seconds.
	Silence = 2 * time.Minute

	leastBytes = 32
	// pieceBytes of what is sent to a server may take that long, too.
	pieceBytes = 8 << 10
)

// SilentError says that a server was reached, and then sent nothing, or a few bytes, or took nothing of what was sent to it, for so long that
// nobody should wait for the rest.
type SilentError struct {
	// Host as in the URL, with the port if it has one.
	Host string
	// Limit is how long it was waited for.
	Limit time.Duration
}

// Error names the host.
func (e *SilentError) Error() string {
	return fmt.Sprintf("%s was reached, and has then sent or taken next to nothing for %s", e.Host, e.Limit)
}

// Timeout makes it an error of the network for whoever asks as package net does.
func (e *SilentError) Timeout() bool { return true }

// Temporary is false: whoever tries again by himself would wait as long once more.
func (e *SilentError) Temporary() bool { return false }

// Steady returns from with a limit on how long its reader waits for it: that of silent, for every few bytes. Past this limit stop is called
// with silent, and has to end the Read that waits. The error of this Read is silent.
func Steady(from io.ReadCloser, silent *SilentError, stop func(cause error)) io.ReadCloser {
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

// SteadyWriter returns to with a limit on how long a server may take for each few kilobytes: that of silent, which is the error past it. A
// Write that waits is left behind then, so to is of no use any more but for Close.
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
		piece := bytes.Clone(p[:min(len(p), pieceBytes)]) // the caller may change p while a Write that was left behind still reads it
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

// waiting limits how long a server may take for each piece of a request, and from the end of the request to the beginning of its answer.
type waiting struct {
	silent *SilentError
	stop   func(cause error)

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// begin starts the time anew: it is for the server to go on. An answer may come before the request has been written.
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

// pause stops the time: it is for us to go on.
func (w *waiting) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
}

// end stops the time for good.
func (w *waiting) end() {
	w.pause()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
}

// question is the body of a request. Whoever sends it reads the next piece when the server has taken the one before.
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

// of returns a copy of req whose body is a question of w.
func (w *waiting) of(req *http.Request) *http.Request {
	if req.Body == nil || req.Body == http.NoBody {
		return req
	}
	steady := *req
	steady.Body = &question{req.Body, w}
	if req.GetBody != nil { // Go's own transport sends it again on another connection
		steady.GetBody = func() (io.ReadCloser, error) {
			body, err := req.GetBody()
			return &question{body, w}, err
		}
	}
	return &steady
}
