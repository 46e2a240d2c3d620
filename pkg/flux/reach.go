package flux

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fleetctl/fleetctl/pkg/kube"
)

const (
	reachName = "fleetctl-reach"
	// reachTime bounds the request to one server, and endReachTime the removal of the sources.
	reachTime    = 30 * time.Second
	endReachTime = 30 * time.Second
)

// noContact are parts of what source-controller says of a server to which it has made no connection. Whatever else it says came from the
// server, or from the certificate of the server.
var noContact = []string{
	"dial tcp", "no such host", "proxyconnect", "deadline exceeded", "Timeout exceeded", "i/o timeout",
	"connection refused", "no route to host",
}

// Reach makes source-controller send a request to HTTPS servers, from inside the cluster. It returns the reason for each server that
// source-controller cannot reach, by URL. Reach makes Helm repositories for this, and removes them afterwards.
func (s *System) Reach(ctx context.Context, urls []string) (map[string]error, error) {
	var sources []*unstructured.Unstructured
	for i, url := range urls {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"url": url, "interval": "24h", "timeout": "10s"}}}
		obj.SetGroupVersionKind(helmRepositoryKind)
		obj.SetNamespace(Namespace)
		obj.SetName(reachName + "-" + strconv.Itoa(i))
		sources = append(sources, obj)
	}
	own(sources)
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endReachTime)
		defer cancel()
		_ = s.client.Delete(ending, sources, kube.DeleteOptions{Wait: true}) // one that stays asks once a day, and applies nothing
	}()
	if _, err := s.client.Apply(ctx, sources, kube.ApplyOptions{FieldManager: fluxOwner, ForceConflicts: true}); err != nil {
		return nil, fmt.Errorf("apply the sources: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	unreached := map[string]error{}
	for i, source := range sources {
		why := "source-controller has not tried it"
		err := s.client.WaitFor(waiting, helmRepositoryKind, kube.RefOf(source).Key, func(obj *unstructured.Unstructured) (bool, error) {
			tried, says := reached(obj)
			if tried {
				why = says
			}
			return tried, nil
		})
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil || why != "" {
			unreached[urls[i]] = fmt.Errorf("%s", why)
		}
	}
	return unreached, nil
}

// reached tells whether source-controller has asked the server of a Helm repository, and why it got no answer; says is "" for an answer.
func reached(obj *unstructured.Unstructured) (tried bool, says string) {
	if obj == nil {
		return false, ""
	}
	ready := apimeta.FindStatusCondition(kube.Conditions(obj), fluxmeta.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionUnknown {
		return false, ""
	}
	if ready.Status == metav1.ConditionTrue {
		return true, ""
	}
	for _, part := range noContact {
		if strings.Contains(ready.Message, part) {
			return true, ready.Message
		}
	}
	return true, ""
}
