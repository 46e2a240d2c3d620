package confine

import (
	"bufio"
	"bytes"
	"encoding"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// A frame is a letter, the length of its body, and the body.
const (
	// To the process.
	frameStart  = 's' // a start: what to do
	frameIn     = 'i' // a part of what goes in; an empty one ends it
	frameAnswer = 'a' // to a call
	// From the process.
	frameReady = 'r' // it has taken everything away from itself
	frameBegin = 'b' // it works on something
	frameMany  = 'm' // it works on many things, one after the other
	frameEnd   = 'e' // no more
	frameAt    = 'p' // the place that it is at within that
	frameCall  = 'c'
	frameOut   = 'o' // a part of the result; an empty one ends it
	frameDone  = 'd' // how it ended: an outcome
)

// maxFrame bounds the bytes of a frame, because an untrusted process sends frames.
const maxFrame = 64 << 20

// encode writes what v points to, by itself where it can: gob takes as long for thousands of objects as to render them from the cache.
func encode(v any) ([]byte, error) {
	if own, ok := v.(encoding.BinaryAppender); ok {
		return own.AppendBinary(nil)
	}
	var text bytes.Buffer
	err := gob.NewEncoder(&text).Encode(v)
	return text.Bytes(), err
}

// decode reads the output of encode into v. The value of v may keep parts of text.
func decode(text []byte, v any) error {
	if own, ok := v.(encoding.BinaryUnmarshaler); ok {
		return own.UnmarshalBinary(text)
	}
	return gob.NewDecoder(bytes.NewReader(text)).Decode(v)
}

// start is the first message to a process.
type start struct {
	Task   string
	Limits Limits
	Read   []string
	Write  []string
	// Refused are the things, and groups of them, that are not to be worked on again, with the reason.
	Refused map[string]string
	// Alone says to work on one thing at a time.
	Alone bool
	// Enough, where it is not empty, is why nothing is worked on any more but what has Worked before.
	Enough string
	Worked map[string]bool
	// Left is how long all things may take from now on.
	Left time.Duration
}

// outcome is the result of a task.
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
	head := binary.LittleEndian.AppendUint32([]byte{letter}, uint32(size))
	w.mu.Lock()
	defer w.mu.Unlock()
	if size >= partSize { // not worth a copy
		for _, p := range append([][]byte{head}, parts...) {
			if _, err := w.to.Write(p); err != nil {
				return err
			}
		}
		return nil
	}
	_, err := w.to.Write(append(head, slices.Concat(parts...)...))
	return err
}

// sendAll sends a text of any length, and an empty frame that ends it.
func (w *writeFrames) sendAll(letter byte, text []byte) error {
	for part := range slices.Chunk(text, maxFrame) {
		if err := w.send(letter, part); err != nil {
			return err
		}
	}
	return w.send(letter)
}

// whole puts together what sendAll sent. It holds most bytes, and no more.
type whole struct {
	text []byte
	most int64
}

// add takes a frame, and says whether it was the last.
func (a *whole) add(body []byte) (done bool, err error) {
	switch {
	case len(body) == 0:
		return true, nil
	case int64(len(a.text))+int64(len(body)) > a.most:
		return false, fmt.Errorf("the result is larger than %d MiB", a.most>>20)
	case a.text == nil:
		a.text = body // as a rule it is all
	default:
		a.text = append(a.text, body...)
	}
	return false, nil
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

// partSize is how much is read at once, and what is worth a system call of its own.
const partSize = 128 << 10
