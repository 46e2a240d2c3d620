// Package messages receives the log messages of clusterctl's library. The library has one logger for the whole process.
package messages

import (
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/log"
)

// The logger of clusterctl's library cannot be set twice without a data race. So it is set once, to a sink that passes messages on to the
// current listener. This is the only state of the package that outlives a call.
var (
	setLogger sync.Once
	listener  atomic.Pointer[func(string)]
)

// Listen passes the messages of clusterctl's library to detail until the returned function is called. If detail is nil, it only keeps the
// messages from being printed.
func Listen(detail func(string)) (stop func()) {
	setLogger.Do(func() { log.SetLogger(logr.New(logSink{})) })
	if detail == nil {
		return func() {}
	}
	listener.Store(&detail)
	return func() { listener.CompareAndSwap(&detail, nil) }
}

// logSink passes clusterctl's messages for users on to the listener.
type logSink struct{}

// Init implements logr.LogSink.
func (logSink) Init(logr.RuntimeInfo) {}

// Enabled returns true for clusterctl's messages to users, and false for debug messages.
func (logSink) Enabled(level int) bool { return level == 0 }

// Info passes message on without the values, because they may contain whole objects.
func (logSink) Info(_ int, message string, _ ...any) {
	if detail := listener.Load(); detail != nil {
		(*detail)(message)
	}
}

// Error passes message on with its error.
func (s logSink) Error(err error, message string, _ ...any) {
	if err != nil {
		message += ": " + err.Error()
	}
	s.Info(0, message)
}

// WithValues implements logr.LogSink. It drops the values.
func (s logSink) WithValues(...any) logr.LogSink { return s }

// WithName implements logr.LogSink. It drops the name.
func (s logSink) WithName(string) logr.LogSink { return s }
