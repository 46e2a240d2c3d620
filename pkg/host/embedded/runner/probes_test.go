package runner

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A change counts once as many answers in a row say so as the thresholds want.
func TestThresholds(t *testing.T) {
	const good, bad = http.StatusOK, http.StatusServiceUnavailable
	answers := []int{bad, good, good, bad, good, good, good, bad, good, bad, bad}
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answers[min(int(asked.Add(1)), len(answers))-1])
	}))
	defer server.Close()
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	p := newProber((&net.Dialer{}).DialContext, &plan{pod: &corev1.PodSpec{}, probes: map[string]*corev1.Probe{"readinessProbe": {
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt(port)}},
		PeriodSeconds: 1, SuccessThreshold: 3, FailureThreshold: 2, TimeoutSeconds: 5,
	}}})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readyAt, unreadyAt int32
	p.ready = func(ok bool, _ string) {
		switch {
		case ok:
			readyAt = asked.Load()
		case readyAt != 0:
			unreadyAt = asked.Load()
			cancel()
		}
	}
	p.run(ctx)
	if readyAt != 7 || unreadyAt != 11 {
		t.Errorf("ready after %d answers, unready after %d, want 7 and 11", readyAt, unreadyAt)
	}
}
