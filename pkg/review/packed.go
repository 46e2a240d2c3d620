package review

import (
	"encoding/binary"
	"errors"
)

// packer writes texts and numbers in sequence for another process. A fleet repeats a few names thousands of times, so
// each repeated text is written once.
type packer struct {
	out   []byte
	known map[string]uint64
}

func newPacker(size int) *packer {
	return &packer{out: make([]byte, 0, size), known: map[string]uint64{}}
}

func (p *packer) unsigned(n uint64) { p.out = binary.AppendUvarint(p.out, n) }

func (p *packer) number(n int) { p.out = binary.AppendVarint(p.out, int64(n)) }

func (p *packer) flag(on bool) {
	if on {
		p.out = append(p.out, 1)
	} else {
		p.out = append(p.out, 0)
	}
}

// text writes a text that may repeat.
func (p *packer) text(s string) {
	if n, ok := p.known[s]; ok {
		p.unsigned(n)
		return
	}
	p.known[s] = uint64(len(p.known)) + 1
	p.unsigned(0)
	p.unsigned(uint64(len(s)))
	p.out = append(p.out, s...)
}

func (p *packer) texts(all []string) {
	p.unsigned(uint64(len(all)))
	for _, s := range all {
		p.text(s)
	}
}

// bytes writes bytes that do not repeat.
func (p *packer) bytes(b []byte) {
	p.unsigned(uint64(len(b)))
	p.out = append(p.out, b...)
}

// unpacker reads what a packer wrote. After an error it reads nothing more, and returns the error.
type unpacker struct {
	in    []byte
	known []string
	err   error
}

var errPacked = errors.New("what another process wrote cannot be read")

func (u *unpacker) fail() { u.in, u.err = nil, errPacked }

func (u *unpacker) unsigned() uint64 {
	n, size := binary.Uvarint(u.in)
	if size <= 0 {
		u.fail()
		return 0
	}
	u.in = u.in[size:]
	return n
}

func (u *unpacker) number() int {
	n, size := binary.Varint(u.in)
	if size <= 0 {
		u.fail()
		return 0
	}
	u.in = u.in[size:]
	return int(n)
}

// atMost is count for items that take more memory than their input: it bounds how many there may be.
func (u *unpacker) atMost(most int) int {
	n := u.count()
	if n > most {
		u.fail()
		return 0
	}
	return n
}

// count reads the number of items that follow. Each takes at least one byte, so a number larger than the input cannot
// make the reader reserve memory.
func (u *unpacker) count() int {
	n := u.unsigned()
	if n > uint64(len(u.in)) {
		u.fail()
		return 0
	}
	return int(n) //nolint:gosec // it is not more than there are bytes
}

func (u *unpacker) flag() bool {
	if len(u.in) == 0 || u.in[0] > 1 {
		u.fail()
		return false
	}
	on := u.in[0] == 1
	u.in = u.in[1:]
	return on
}

func (u *unpacker) text() string {
	n := u.unsigned()
	if n == 0 {
		s := string(u.bytes())
		u.known = append(u.known, s)
		return s
	}
	if n > uint64(len(u.known)) {
		u.fail()
		return ""
	}
	return u.known[n-1]
}

func (u *unpacker) texts() []string {
	n := u.count()
	if n == 0 {
		return nil
	}
	all := make([]string, n)
	for i := range all {
		all[i] = u.text()
	}
	return all
}

// bytes returns a part of the input without copying it.
func (u *unpacker) bytes() []byte {
	n := u.count()
	out := u.in[:n:n]
	u.in = u.in[n:]
	return out
}

// done returns the first error. It is also an error if input remains.
func (u *unpacker) done() error {
	if u.err == nil && len(u.in) > 0 {
		u.fail()
	}
	return u.err
}
