package gitrepo

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // what git has at the end of an index
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// go-git's reader and writer of an index leave out some flags, which this file adds. The format is that of git's
// Documentation/gitformat-index.

const (
	indexHeader   = 12     // "DIRC", version, number of entries
	entryFixed    = 60     // of an entry, before its flags
	flagAssume    = 0x8000 // git update-index --assume-unchanged
	flagExtended  = 0x4000 // two more bytes of flags
	indexVersion4 = 4
)

var errIndexShort = errors.New("the index ends too early")

// decodeIndex decodes an index. The map has the files that are marked as assume-unchanged.
func decodeIndex(content []byte) (*index.Index, map[string]bool, error) {
	if len(content) > indexHeader+sha1.Size && bytes.Count(content[len(content)-sha1.Size:], []byte{0}) == sha1.Size {
		content = withChecksum(bytes.Clone(content)) // index.skipHash, which feature.manyFiles sets
	}
	decoded := &index.Index{}
	if err := index.NewDecoder(bytes.NewReader(content)).Decode(decoded); err != nil {
		return nil, nil, err
	}
	assumed := map[string]bool{}
	err := eachEntry(content, func(flags int, name string) {
		if binary.BigEndian.Uint16(content[flags:])&flagAssume != 0 {
			assumed[name] = true
		}
	})
	return decoded, assumed, err
}

// encodeIndex encodes an index, and marks the files in assumed as assume-unchanged.
func encodeIndex(i *index.Index, assumed map[string]bool) ([]byte, error) {
	var out bytes.Buffer
	if err := index.NewEncoder(&out).Encode(i); err != nil {
		return nil, fmt.Errorf("encode the index: %w", err)
	}
	content := out.Bytes()
	if len(assumed) == 0 {
		return content, nil
	}
	err := eachEntry(content, func(flags int, name string) {
		if assumed[name] {
			content[flags] |= flagAssume >> 8
		}
	})
	return withChecksum(content), err
}

// withChecksum sets the checksum at the end of an index.
func withChecksum(content []byte) []byte {
	end := len(content) - sha1.Size
	sum := sha1.Sum(content[:end]) //nolint:gosec // the format requires SHA-1
	copy(content[end:], sum[:])
	return content
}

// eachEntry calls do for each entry, with the offset of the entry's flags and its name.
func eachEntry(content []byte, do func(flags int, name string)) error {
	if len(content) < indexHeader {
		return errIndexShort
	}
	version, count := binary.BigEndian.Uint32(content[4:]), binary.BigEndian.Uint32(content[8:])
	at, name := indexHeader, ""
	for range count {
		start, flags := at, at+entryFixed
		if at = flags + 2; at+2 > len(content) {
			return errIndexShort
		}
		if binary.BigEndian.Uint16(content[flags:])&flagExtended != 0 {
			at += 2
		}
		if version == indexVersion4 {
			strip, n := stripLength(content[at:])
			if n == 0 || strip > len(name) {
				return errIndexShort
			}
			at += n
			name = name[:len(name)-strip]
		} else {
			name = ""
		}
		end := bytes.IndexByte(content[at:], 0)
		if end < 0 {
			return errIndexShort
		}
		name += string(content[at : at+end])
		do(flags, name)
		if at += end + 1; version != indexVersion4 { // up to eight zero bytes align the next entry to eight bytes
			at = start + (at-1-start)/8*8 + 8
		}
	}
	return nil
}

// stripLength decodes the number of bytes that a name of version 4 drops from the end of the name before it. n is the number of bytes that
// encode it, or 0 if they are invalid.
func stripLength(content []byte) (length, n int) {
	const most = 4
	for n < len(content) && n < most {
		b := content[n]
		if n > 0 {
			length++
		}
		length = length<<7 | int(b&0x7f)
		if n++; b&0x80 == 0 {
			return length, n
		}
	}
	return 0, 0
}
