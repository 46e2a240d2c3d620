// Package ui is everything that a person or a script sees.
//
// Its rules: data goes to standard output, progress, warnings and questions to standard error; an animation only on a smart
// terminal, plain lines otherwise; NO_COLOR is respected; machine output carries a formatVersion; no secret is ever printed.
package ui

import (
	"io"
	"os"

	"golang.org/x/term"
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

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	dim    = "\x1b[2m"
	bold   = "\x1b[1m"
	reset  = "\x1b[0m"
)

// paint wraps text in a colour where colour is welcome.
func paint(on bool, color, text string) string {
	if !on {
		return text
	}
	return color + text + reset
}

// Tone is what a piece of text means.
type Tone string

// The tones.
const (
	Good Tone = green
	Bad  Tone = red
	Warn Tone = yellow
	Dim  Tone = dim
)

// Painter returns a function that gives text its tone on standard output, where colour is welcome.
func Painter(s Streams, tone Tone) func(string) string {
	return func(text string) string { return paint(s.OutColor, string(tone), text) }
}
