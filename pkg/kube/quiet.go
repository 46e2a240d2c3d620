package kube

import (
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// client-go and controller-runtime log through one logger per process, to stderr, in the middle of our progress lines. What
// they say there reaches us as errors, too.
var quiet sync.Once

func silenceLibraries() {
	quiet.Do(func() {
		klog.SetLogger(logr.Discard())
		log.SetLogger(logr.Discard())
	})
}
