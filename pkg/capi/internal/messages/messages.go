// Package messages receives what clusterctl's library logs. The library has one logger for the whole process.
package messages

import (
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/log"
)

// clusterctl's library logs through one logger per process, which cannot be set twice without a race. So it is set once, to
// a sink that passes messages on to whoever listens now. It is the only state of this package that outlives a call.
var (
	setLogger sync.Once
	listener  atomic.Pointer[func(string)]
)

// Listen routes what clusterctl's library says to detail until the returned function is called. With nil, it
// only keeps the messages from being printed.
func Listen(detail func(string)) (stop func()) {
	setLogger.Do(func() { log.SetLogger(logr.New(logSink{})) })
	if detail == nil {
		return func() {}
	}
	listener.Store(&detail)
	return func() { listener.CompareAndSwap(&detail, nil) }
}

// logSink passes the messages that clusterctl means for users on to the listener.
type logSink struct{}

// Init has nothing to prepare.
func (logSink) Init(logr.RuntimeInfo) {}

// Enabled is true for clusterctl's messages to users, not for its debugging.
func (logSink) Enabled(level int) bool { return level == 0 }

// Info passes message on. Values are left out: they may hold whole objects.
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

// WithValues has no use for values.
func (s logSink) WithValues(...any) logr.LogSink { return s }

// WithName has no use for names.
func (s logSink) WithName(string) logr.LogSink { return s }
