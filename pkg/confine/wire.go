package confine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A frame is a letter, the length of what follows, and that.
const (
	// To the process.
	frameStart  = 's' // a start: what to do
	frameIn     = 'i' // a part of what goes in; an empty one ends it
	frameAnswer = 'a' // to a call
	// From the process.
	frameReady = 'r' // it has taken everything away from itself
	frameBegin = 'b' // it works on something
	frameEnd   = 'e' // no more
	frameCall  = 'c'
	frameOut   = 'o' // a part of the result
	frameDone  = 'd' // how it ended: an outcome
)

// maxFrame bounds what one frame may hold: a process that is not to be trusted sends them.
const maxFrame = 64 << 20

// start is what a process is told first.
type start struct {
	Task   string
	Limits Limits
	Read   []string
	Write  []string
	// Refused are the things, and groups of them, that are not to be worked on again, with the reason.
	Refused map[string]string
	// Alone says to work on one thing at a time.
	Alone bool
}

// outcome is how a task ended.
type outcome struct {
	Failed   bool
	Op, Text string
	Hint     string
	Code     int
	Findings diag.Findings
}

func outcomeOf(err error) outcome {
	if err == nil {
		return outcome{}
	}
	o := outcome{Failed: true, Text: err.Error(), Hint: diag.Hint(err)}
	if code := diag.Code(err); code != diag.ExitFailure {
		o.Code = code
	}
	if findings, ok := errors.AsType[diag.Findings](err); ok && findings.Error() == o.Text {
		o.Findings = findings
	}
	return o
}

func (o outcome) err() error {
	switch {
	case !o.Failed:
		return nil
	case o.Findings != nil && o.Hint == "" && o.Code == 0:
		return o.Findings
	case o.Findings != nil:
		return &diag.Error{Err: o.Findings, Hint: o.Hint, Code: o.Code}
	}
	return &diag.Error{Err: errors.New(o.Text), Hint: o.Hint, Code: o.Code}
}

// writeFrames writes frames, of several goroutines.
type writeFrames struct {
	mu sync.Mutex
	to io.Writer
}

func (w *writeFrames) send(letter byte, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size > maxFrame {
		return fmt.Errorf("a message of %d MiB is too large", size>>20)
	}
	frame := make([]byte, 0, 5+size)
	frame = append(frame, letter)
	frame = binary.LittleEndian.AppendUint32(frame, uint32(size))
	for _, p := range parts {
		frame = append(frame, p...)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(frame)
	return err
}

var errFrame = errors.New("a message that makes no sense")

func readFrame(from *bufio.Reader) (letter byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.LittleEndian.Uint32(head[1:])
	if size > maxFrame {
		return 0, nil, errFrame
	}
	body = make([]byte, size)
	_, err = io.ReadFull(from, body)
	return head[0], body, err
}

// number takes the number off that a body begins with.
func number(body []byte) (n uint64, rest []byte, err error) {
	n, size := binary.Uvarint(body)
	if size <= 0 {
		return 0, nil, errFrame
	}
	return n, body[size:], nil
}

// text takes a text with its length off.
func text(body []byte) (s string, rest []byte, err error) {
	n, rest, err := number(body)
	if err != nil || n > uint64(len(rest)) {
		return "", nil, errFrame
	}
	return string(rest[:n]), rest[n:], nil
}

func appendText(body []byte, s string) []byte {
	return append(binary.AppendUvarint(body, uint64(len(s))), s...)
}

// parts writes a stream as frames of one letter.
type parts struct {
	to     *writeFrames
	letter byte
}

func (p parts) Write(b []byte) (int, error) {
	if err := p.to.send(p.letter, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// partSize is how much of a stream goes into one frame.
const partSize = 128 << 10
