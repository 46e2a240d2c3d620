// Package ui is everything that a person or a script sees.
//
// Its rules: data goes to standard output, progress, warnings and questions to standard error; an animation only on a smart
// terminal, plain lines otherwise; NO_COLOR is respected; machine output carries a formatVersion; no secret is ever printed.
package ui

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// Streams are the three streams of a command and what is known of the terminal behind them.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer

	// InTerminal says that questions can be asked.
	InTerminal bool
	// OutTerminal says that a person reads the data: what is long may be cut.
	OutTerminal bool
	// ErrSmart says that progress may be animated.
	ErrSmart bool
	// OutColor and ErrColor say that colour is welcome there.
	OutColor, ErrColor bool
}

// System returns the process's own streams.
func System() Streams {
	dumb := os.Getenv("TERM") == "dumb"
	noColor := os.Getenv("NO_COLOR") != ""
	outTTY, errTTY := isTerminal(os.Stdout), isTerminal(os.Stderr)
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal:  isTerminal(os.Stdin) && errTTY,
		OutTerminal: outTTY,
		ErrSmart:    errTTY && !dumb && os.Getenv("CI") == "",
		OutColor:    outTTY && !dumb && !noColor,
		ErrColor:    errTTY && !dumb && !noColor,
	}
}

func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd()))
}

// Guarded returns s with escaping: text from a fleet repo, a cluster or a forge cannot control the terminal or a CI runner. Only escape
// sequences of this package pass.
func (s Streams) Guarded() Streams {
	s.Out, s.Err = guarded(s.Out), guarded(s.Err)
	return s
}

// Advising returns s guarded, with a function that completes the commands in hints, notes and next steps, for whoever copies them. The
// formats of Fprintf pass through the function, and so do hints of errors and warnings. What Fprintf fills in does not: a difference, or a
// text from a repo, stays as it is.
func (s Streams) Advising(advise func(text string) string) Streams {
	s = s.Guarded()
	for _, w := range []io.Writer{s.Out, s.Err} {
		if g, ok := w.(*plain.Guard); ok {
			g.Advise = advise
		}
	}
	return s
}

// Advise completes the commands in a text that goes to w; see Streams.Advising.
func Advise(w io.Writer, text string) string {
	if g, ok := w.(*plain.Guard); ok && g.Advise != nil {
		return g.Advise(text)
	}
	return text
}

func guarded(w io.Writer) io.Writer {
	if _, ok := w.(*plain.Guard); ok || w == nil {
		return w
	}
	return &plain.Guard{W: w}
}

// Raw are the streams themselves: for a program of the user's that takes them over, an editor for instance.
func (s Streams) Raw() Streams {
	if g, ok := s.Out.(*plain.Guard); ok {
		s.Out = g.W
	}
	if g, ok := s.Err.(*plain.Guard); ok {
		s.Err = g.W
	}
	return s
}

// paint wraps text in a colour where colour is welcome.
func paint(on bool, color plain.Control, text string) string {
	if !on {
		return text
	}
	return color.String() + text + plain.Reset.String()
}

// Tone is what a piece of text means.
type Tone plain.Control

// The tones.
const (
	Good = Tone(plain.Green)
	Bad  = Tone(plain.Red)
	Warn = Tone(plain.Yellow)
	Dim  = Tone(plain.Dim)
	bold = Tone(plain.Bold)
)

// Painter returns a function that gives text its tone on standard output, if colour is wanted there.
func Painter(s Streams, tone Tone) func(string) string {
	return func(text string) string { return paint(s.OutColor, plain.Control(tone), text) }
}
