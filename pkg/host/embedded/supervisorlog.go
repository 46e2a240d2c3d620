package embedded

import (
	"io"
	"sync"
)

// maxBacklog bounds what a patientWriter keeps; the beginning of a trouble says more of it than the tenth time.
const maxBacklog = 64 << 10

// patientWriter keeps what cannot be written, and writes it before what comes next: that the disk is full is told once there is room
// again. It never fails a write.
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
