package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"
)

// logger passes kind's messages for users to a function, one line each and without decoration.
type logger struct{ detail func(string) }

var _ log.Logger = logger{}

func (l logger) tell(message string) {
	if l.detail == nil {
		return
	}
	plain := strings.Map(func(r rune) rune {
		if r > 0xff && r != '…' { // kind ends its lines with emoji
			return -1
		}
		return r
	}, message)
	if plain = strings.Trim(plain, " \n•."); plain != "" {
		l.detail(plain)
	}
}

func (l logger) Warn(message string)               { l.tell(message) }
func (l logger) Warnf(format string, args ...any)  { l.tell(fmt.Sprintf(format, args...)) }
func (l logger) Error(message string)              { l.tell(message) }
func (l logger) Errorf(format string, args ...any) { l.tell(fmt.Sprintf(format, args...)) }
func (l logger) V(level log.Level) log.InfoLogger  { return infoLogger{l, level} }

// infoLogger is logger at one verbosity. It passes only messages of verbosity 0.
type infoLogger struct {
	logger
	level log.Level
}

func (l infoLogger) Enabled() bool { return l.level == 0 && l.detail != nil }

func (l infoLogger) Info(message string) {
	if l.Enabled() {
		l.tell(message)
	}
}

func (l infoLogger) Infof(format string, args ...any) {
	if l.Enabled() {
		l.tell(fmt.Sprintf(format, args...))
	}
}
