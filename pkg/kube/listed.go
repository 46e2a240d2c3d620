package kube

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"sync/atomic"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// leastObject is how many bytes of the limit an object of a list takes at least. Honest objects are larger. A hostile list can have an
// object every two bytes, and each of them takes a kilobyte of memory once it is decoded.
const leastObject = 512

// listed is the body of an answer. Reading it fails once it has listed too many objects.
type listed struct {
	io.ReadCloser
	count func([]byte) int64 // counts the objects that begin in the next part of the answer
	found *atomic.Int64
	most  int64
}

// boundObjects bounds the objects that a body lists. found counts them, for all pages of a list together. most is the limit in bytes.
func boundObjects(body io.ReadCloser, contentType string, found *atomic.Int64, most int64) io.ReadCloser {
	count := new(jsonObjects).count
	if strings.Contains(contentType, "protobuf") {
		count = (&protobufObjects{skip: uint64(len("k8s\x00"))}).count
	}
	return &listed{body, count, found, most / leastObject}
}

// Read implements io.Reader.
func (l *listed) Read(into []byte) (int, error) {
	n, err := l.ReadCloser.Read(into)
	if l.found.Add(l.count(into[:n])) > l.most {
		_ = l.Close() // not every client closes the body, and the server would go on sending
		return 0, fmt.Errorf("%w: the list has more than %d objects", contact.ErrTooLarge, l.most)
	}
	return n, err
}

// jsonObjects counts the commas in the lists of the top object.
type jsonObjects struct {
	depth           int
	list            bool // the value at depth 2 is a list
	quoted, escaped bool
}

func (j *jsonObjects) count(text []byte) (found int64) {
	for i := 0; i < len(text); i++ {
		if j.escaped {
			j.escaped = false
			continue
		}
		if j.quoted {
			at := bytes.IndexAny(text[i:], `"\`)
			if at < 0 {
				return found
			}
			i += at
			j.quoted, j.escaped = text[i] == '\\', text[i] == '\\'
			continue
		}
		switch c := text[i]; c {
		case '"':
			j.quoted = true
		case '{', '[':
			if j.depth++; j.depth == 2 {
				j.list = c == '['
			}
		case '}', ']':
			j.depth--
		case ',':
			if j.depth == 2 && j.list {
				found++
			}
		}
	}
	return found
}

// protobufObjects counts the items in Kubernetes' protobuf format: field 2 of the message is the list, and field 2 of the list is an item.
type protobufObjects struct {
	skip   uint64 // bytes to skip
	number uint64 // the number that is being read
	shift  uint   // how many of its bits are read
	key    uint64 // the key whose number is being read; 0 if the next number is a key
	left   uint64 // bytes of the list that are left; 0 outside of it
}

func (p *protobufObjects) count(text []byte) (found int64) {
	for len(text) > 0 {
		n := min(max(p.skip, 1), uint64(len(text)))
		c := text[0]
		text, p.left = text[n:], max(p.left, n)-n
		if p.skip > 0 {
			p.skip -= n
			continue
		}
		p.number |= uint64(c&0x7f) << p.shift
		if p.shift += 7; c&0x80 != 0 && p.shift < 64 {
			continue
		}
		found += p.next(p.number)
		p.number, p.shift = 0, 0
	}
	return found
}

// The types of fields.
const (
	varint  = 0
	fixed64 = 1
	sized   = 2
	fixed32 = 5
)

// next takes the next number of a message, and returns how many items begin with it. A message of a form that Kubernetes never sends counts
// as too many.
func (p *protobufObjects) next(number uint64) int64 {
	field, kind := p.key>>3, p.key&7
	if p.key == 0 {
		switch p.key = number; number & 7 {
		case varint, sized:
		case fixed64:
			p.key, p.skip = 0, 8
		case fixed32:
			p.key, p.skip = 0, 4
		default:
			return math.MaxInt32
		}
		return 0
	}
	p.key = 0
	switch {
	case kind == varint:
	case number > math.MaxInt64:
		return math.MaxInt32
	case field == 2 && p.left == 0:
		p.left = number
	case field == 2:
		p.skip = number
		return 1
	default:
		p.skip = number
	}
	return 0
}
