package traces

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"io"
	"unicode/utf8"
)

const (
	// mostLayers is how deep a secret may lie: Helm's Secrets, in the JSON of an API server, have three.
	mostLayers = 5
	// mostUnpacked bounds what one compressed stream may become.
	mostUnpacked = 256 << 20
	// leastEncoded is the length of base64 that can hold a trace.
	leastEncoded = length * 4 / 3
)

// Within is In, and also looks into what content has in base64 and in compressed form, one in the other.
func (tr *Traces) Within(content []byte) bool { return tr.within(content, mostLayers) }

func (tr *Traces) within(content []byte, depth int) bool {
	if tr.In(content) {
		return true
	}
	if depth == 0 {
		return false
	}
	for _, find := range []func([]byte, func([]byte) bool) bool{compressed, encoded} {
		if find(content, func(layer []byte) bool { return tr.within(layer, depth-1) }) {
			return true
		}
	}
	return false
}

// compressed calls found with each stream of gzip in content, and with content itself unpacked where that is a stream of zlib, as Git's
// objects are. It ends with true as soon as found returns true.
func compressed(content []byte, found func([]byte) bool) bool {
	if len(content) > 2 && content[0] == 0x78 && (uint(content[0])<<8|uint(content[1]))%31 == 0 {
		if reader, err := zlib.NewReader(bytes.NewReader(content)); err == nil && found(unpacked(reader)) {
			return true
		}
	}
	magic := []byte{0x1f, 0x8b, 8}
	for at := 0; ; at++ {
		next := bytes.Index(content[at:], magic)
		if next < 0 {
			return false
		}
		at += next
		if reader, err := gzip.NewReader(bytes.NewReader(content[at:])); err == nil && found(unpacked(reader)) {
			return true
		}
	}
}

// unpacked is all that can be unpacked: a stream that is cut off, or followed by something else, has a beginning.
func unpacked(reader io.Reader) []byte {
	content, _ := io.ReadAll(io.LimitReader(reader, mostUnpacked))
	return content
}

// encoded calls found with what each run of base64 in content stands for, if that is a text or compressed: words of a text and digests look
// like base64, too. It ends with true as soon as found returns true.
func encoded(content []byte, found func([]byte) bool) bool {
	for i := 0; i < len(content); {
		begin := i
		for i < len(content) && isBase64(content[i]) {
			i++
		}
		if i-begin < leastEncoded {
			i++
			continue
		}
		if decoded := decode(content[begin:i]); decoded != nil && found(decoded) {
			return true
		}
	}
	return false
}

func isBase64(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// decode returns nil where a run of base64 stands for nothing that could be read.
func decode(run []byte) []byte {
	coding := base64.RawStdEncoding
	if bytes.ContainsAny(run, "-_") {
		coding = base64.RawURLEncoding
	}
	run = run[:len(run)-len(run)%4+[]int{0, 0, 2, 3}[len(run)%4]] // a rest of one character stands for no byte
	decoded := make([]byte, coding.DecodedLen(len(run)))
	n, err := coding.Decode(decoded, run)
	if err != nil {
		return nil
	}
	decoded = decoded[:n]
	if bytes.HasPrefix(decoded, []byte{0x1f, 0x8b}) || bytes.HasPrefix(decoded, []byte{0x78}) || utf8.Valid(decoded) {
		return decoded
	}
	return nil
}
