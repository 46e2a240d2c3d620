package capi

import (
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/log"
)

// clusterctl's library logs through one logger per process, which cannot be set twice without a race. What there is to tell, this package's callers
// are told as progress, and errors come back as errors.
var setLogger sync.Once

// quieten keeps clusterctl's library from writing to standard error.
func quieten() { setLogger.Do(func() { log.SetLogger(logr.Discard()) }) }
