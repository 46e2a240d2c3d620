package plain

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"io"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Control is what may reach a terminal or a log beside text: colours, moves of the cursor, commands of a runner. Only this program can make
// one.
type Control string

// The controls that there are.
const (
	Red     Control = "\x1b[31m"
	Green   Control = "\x1b[32m"
	Yellow  Control = "\x1b[33m"
	Bold    Control = "\x1b[1m"
	Dim     Control = "\x1b[2m"
	Reset   Control = "\x1b[0m"
	Up      Control = "\x1b[1A" // one line
	Erase   Control = "\x1b[J"  // from the cursor to the end of the screen
	EraseTo Control = "\x1b[K"  // from the cursor to the end of the line
	Command Control = "::"      // begins and divides a command of GitHub's runner
)

// controls are the controls that Guard lets through, by the letter after the mark.
var controls = map[byte]Control{
	'r': Red, 'g': Green, 'y': Yellow, 'b': Bold, 'd': Dim, '0': Reset, 'u': Up, 'e': Erase, 'k': EraseTo, 'c': Command,
}

// mark begins a control in text on its way to a Guard. Each process has another mark, so no text from outside contains it.
var mark = sync.OnceValue(func() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	return "\x1b" + hex.EncodeToString(random[:])
})

// String is the control as text for a Guard. Elsewhere it is noise.
func (c Control) String() string {
	for letter, known := range controls {
		if c == known {
			return mark() + string(letter)
		}
	}
	return ""
}

// Guard writes text to W, and escapes everything that a terminal or a CI runner would act on. It escapes Hidden characters other than line
// ends and tabs, lines that begin with ::, which are commands to GitHub's runner, and ##[, ##vso[ and the like, which other runners look
// for. The controls of this package pass. Line ends within a name are for who composes the line: see Line.
//
// Its methods may be called side by side.
type Guard struct {
	W io.Writer
	// Advise, if set, completes the commands in a text of this program's own. Whoever composes such a text calls it; Write does not.
	Advise func(text string) string

	mu   sync.Mutex
	rest []byte // the beginning of a character or a control, of which the end has not come yet
	line lineState
	out  []byte
}

// lineState is what the characters so far make of the next one.
type lineState struct {
	begun  bool // there was something other than blanks, of any alphabet
	colon  bool // the first that was not blank, and the last of all, is a colon
	hashes int  // how many # end it, letters behind two of them not counted
}

// Write writes p. A character of which p has only the beginning waits for the next Write.
func (g *Guard) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.clear(p) {
		return g.W.Write(p)
	}
	data := p
	if len(g.rest) > 0 {
		data = slices.Concat(g.rest, p)
		g.rest = nil
	}
	var done int
	g.out, done = g.filter(g.out[:0], data)
	if done < len(data) {
		g.rest = bytes.Clone(data[done:])
	}
	if len(g.out) == 0 {
		return len(p), nil
	}
	if _, err := g.W.Write(g.out); err != nil {
		return 0, err
	}
	if cap(g.out) > 1<<20 {
		g.out = nil
	}
	return len(p), nil
}

// clear says whether p needs no change, as most long text does not, and updates the state of the line.
func (g *Guard) clear(p []byte) bool {
	if len(g.rest) > 0 || g.line.colon || g.line.hashes > 0 || suspect(p) {
		return false
	}
	last := p
	if at := bytes.LastIndexByte(p, '\n'); at >= 0 {
		last, g.line = p[at+1:], lineState{}
	}
	g.out, _ = g.filter(g.out[:0], last) // for the line's state alone
	return true
}

// filter appends the escaped data to dst, and says how many bytes of data it has used. This is less than all bytes if data ends within a
// character.
func (g *Guard) filter(dst, data []byte) ([]byte, int) {
	begins := g.line == lineState{}
	for i := 0; i < len(data); {
		if begins {
			n := clearLines(data[i:])
			dst = append(dst, data[i:i+n]...)
			if i, begins = i+n, false; i == len(data) {
				break
			}
		}
		c := data[i]
		switch {
		case c == '\n':
			g.line, begins = lineState{}, true
			dst = append(dst, c)
			i++
		case c == '\t' || c >= ' ' && c <= '~':
			dst = g.line.ascii(dst, c)
			i++
		default:
			if waits(data[i:]) {
				return dst, i
			}
			var size int
			dst, size = g.special(dst, data[i:])
			i += size
		}
	}
	return dst, len(data)
}

// clearLines is the length of the whole lines at the beginning of data that need no change. Long text has only a few lines that need a
// closer look.
func clearLines(data []byte) int {
	at := suspectAt(data)
	if at < 0 {
		at = len(data)
	}
	return bytes.LastIndexByte(data[:at], '\n') + 1
}

// ascii appends a character unchanged, unless the character completes a command of a runner.
func (l *lineState) ascii(dst []byte, c byte) []byte {
	switch {
	case c == ':' && l.colon, c == '[' && l.hashes >= 2:
		dst = append(dst, '\\')
	}
	l.colon = c == ':' && !l.begun
	l.begun = l.begun || c != ' ' && c != '\t'
	switch letter := 'a' <= c|0x20 && c|0x20 <= 'z'; {
	case c == '#':
		l.hashes++
	case !letter || l.hashes < 2:
		l.hashes = 0
	}
	return append(dst, c)
}

// special appends the character at the beginning of data, which is not plain ASCII, and says how long it is.
func (g *Guard) special(dst, data []byte) ([]byte, int) {
	if data[0] == 0x1b && bytes.HasPrefix(data, []byte(mark())) {
		if control, ok := controls[data[len(mark())]]; ok {
			if control == Command {
				g.line.begun = true
			}
			return append(dst, control...), len(mark()) + 1
		}
	}
	if data[0] == '\r' && data[1] == '\n' {
		return append(dst, '\r'), 1
	}
	r, size := utf8.DecodeRune(data)
	switch {
	case ignorable(r): // a line does not begin with that
		g.line.hashes = 0
	case unicode.IsSpace(r) && !Hidden(r): // to runners a line does not begin with that either, whatever alphabet the blank is from
		g.line.colon, g.line.hashes = false, 0
	default:
		g.line.begun, g.line.colon, g.line.hashes = true, false, 0
	}
	switch {
	case r == utf8.RuneError && size == 1:
		return AppendEscaped(dst, rune(data[0])), 1
	case Hidden(r):
		return AppendEscaped(dst, r), size
	}
	return append(dst, data[:size]...), size
}

// ignorable says whether a visible character has no shape. A person who compares text does not see it, and a runner may ignore it.
func ignorable(r rune) bool {
	return r == '\u200c' || r == '\u200d' || unicode.Is(unicode.Variation_Selector, r) && !Hidden(r)
}

// waits says whether data may be the beginning of something longer.
func waits(data []byte) bool {
	switch data[0] {
	case 0x1b:
		return len(data) <= len(mark()) && bytes.HasPrefix([]byte(mark()), data)
	case '\r':
		return len(data) == 1
	}
	return !utf8.FullRune(data)
}

// Suspicious says whether a Guard would change a value or a line of the value.
func Suspicious(value string) bool {
	data := []byte(value)
	var g Guard
	out, done := g.filter(make([]byte, 0, len(data)), data)
	return done < len(data) || !bytes.Equal(out, data)
}
