package manifest

import "bytes"

var unix, dos = []byte("\n"), []byte("\r\n")

// CRLF tells whether all lines of a text end with CRLF, as Git for Windows writes files that it keeps with LF. If only some lines do, Git
// keeps them so.
func CRLF(text []byte) bool {
	ends := bytes.Count(text, dos)
	return ends > 0 && ends == bytes.Count(text, unix)
}

// LF returns a text with LF at the ends of its lines.
func LF(text []byte) []byte {
	if !bytes.Contains(text, dos) {
		return text // nil stays nil, which is no empty text
	}
	return bytes.ReplaceAll(text, dos, unix)
}

// EndsOf returns a text with CRLF at the ends of its lines if the file there, in whose place it comes, has them so.
func EndsOf(there, text []byte) []byte {
	if !CRLF(there) || !bytes.Contains(text, unix) || bytes.Contains(text, dos) {
		return text
	}
	return bytes.ReplaceAll(text, unix, dos)
}

// SameText tells whether two texts are the same apart from the ends of their lines: Git for Windows writes files with CRLF that it keeps
// with LF, as .gitattributes can have every Git do.
func SameText(a, b []byte) bool { return bytes.Equal(a, b) || bytes.Equal(LF(a), LF(b)) }

// MergeText is Merge for a file on disk, now, that may have CRLF at the ends of all lines while Git keeps LF. The result has the ends of
// the file on disk.
func MergeText(was, now, wanted []byte) (merged []byte, ok bool) {
	if !CRLF(now) || bytes.Contains(was, dos) || bytes.Contains(wanted, dos) {
		return Merge(was, now, wanted)
	}
	merged, ok = Merge(was, LF(now), wanted)
	return EndsOf(now, merged), ok
}
