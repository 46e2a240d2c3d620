package embedded

import (
	"io"
	"sync"
)

// maxBacklog bounds the bytes that a patientWriter keeps. It keeps the first ones, which say the most about the cause.
const maxBacklog = 64 << 10

// patientWriter never fails a write. It keeps bytes that cannot be written, for example because the disk is full, and writes them before
// the next ones.
type patientWriter struct {
	to io.Writer

	mu      sync.Mutex
	backlog []byte
}

// Write implements io.Writer.
func (w *patientWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := len(w.backlog)+len(p) <= maxBacklog
	if kept {
		w.backlog = append(w.backlog, p...)
	}
	n, err := w.to.Write(w.backlog)
	w.backlog = w.backlog[n:]
	if err != nil {
		return len(p), nil
	}
	w.backlog = nil
	if !kept {
		n, _ = w.to.Write(p)
		w.backlog = append(w.backlog, p[n:]...)
	}
	return len(p), nil
}
