package kube

import (
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// client-go and controller-runtime log to stderr through one logger per process, in the middle of progress lines. silenceLibraries turns
// this logger off. The libraries also return what they log as errors.
var quiet sync.Once

func silenceLibraries() {
	quiet.Do(func() {
		klog.SetLogger(logr.Discard())
		log.SetLogger(logr.Discard())
	})
}
