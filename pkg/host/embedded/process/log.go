package process

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"sync"
)

const (
	defaultLogLimit = 10 << 20
	keptLines       = 100
	maxLine         = 2 << 10
)

// logWriter appends to a file, starts a new file when that one reaches its limit, and keeps the last lines in memory. A write never fails,
// because a full disk must neither block nor end the process.
type logWriter struct {
	path  string
	limit int64

	mu      sync.Mutex
	file    *os.File // nil without a path, or if it could not be opened again
	size    int64
	lines   []string
	partial []byte
}

// newLogWriter opens the log. An empty path keeps the last lines only.
func newLogWriter(path string, limit int64) (*logWriter, error) {
	if limit <= 0 {
		limit = defaultLogLimit
	}
	l := &logWriter{path: path, limit: limit}
	if path == "" {
		return l, nil
	}
	return l, l.open()
}

func (l *logWriter) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write implements io.Writer.
func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.remember(p)
	if l.path != "" {
		l.toFile(p)
	}
	return len(p), nil
}

func (l *logWriter) toFile(p []byte) {
	if l.file != nil && l.size > 0 && l.size+int64(len(p)) > l.limit {
		_ = l.file.Close()
		_ = os.Rename(l.path, l.path+".1") // on an error the file goes on to grow
		l.file = nil
	}
	if l.file == nil && l.open() != nil {
		return // the next write tries again
	}
	n, _ := l.file.Write(p) // see logWriter
	l.size += int64(n)
}

// remember splits written bytes into lines and keeps the last ones.
func (l *logWriter) remember(p []byte) {
	for len(p) > 0 {
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		if room := maxLine - len(l.partial); room > 0 {
			l.partial = append(l.partial, line[:min(room, len(line))]...)
		}
		p = rest
		if !whole {
			return
		}
		l.lines = append(l.lines, string(l.partial))
		l.partial = l.partial[:0]
		if len(l.lines) > 2*keptLines {
			l.lines = append([]string(nil), l.lines[len(l.lines)-keptLines:]...)
		}
	}
}

// Last returns up to n of the last lines. The last one may be incomplete.
func (l *logWriter) Last(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := l.lines
	if len(l.partial) > 0 {
		lines = append(slices.Clip(lines), string(l.partial))
	}
	return append([]string(nil), lines[max(0, len(lines)-n):]...)
}

// Close closes the file.
func (l *logWriter) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := l.file.Close()
	l.file = nil
	return err
}
