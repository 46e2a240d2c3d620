package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRetryTransient(t *testing.T) {
	// This is how k8s.io/apiserver passes on an error of its storage.
	timedOut := &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500,
		Message: "etcdserver: request timed out",
	}}
	for _, tt := range []struct {
		name  string
		err   error
		again bool
	}{
		{"etcd timed out", fmt.Errorf("patch: %w", timedOut), true},
		{"too many requests", apierrors.NewTooManyRequests("later", 0), true},
		{"a webhook's internal error", apierrors.NewInternalError(errors.New("failed calling webhook")), false},
		{
			"the request cut off, and not its connection", fmt.Errorf("patch: %w", http2.StreamError{StreamID: 5, Code: http2.ErrCodeInternal}),
			true,
		},
		{"refused", apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "one", errors.New("no")), false},
		{"no answer of a server", errors.New("no such file"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tries := 0
			err := retryTransient(t.Context(), func(context.Context) error {
				if tries++; tries == 1 {
					return tt.err
				}
				return nil
			})
			if again := tries == 2 && err == nil; again != tt.again {
				t.Errorf("%d tries, %v", tries, err)
			}
		})
	}
}

// A wait says at once what it waits for, and when it takes long, why; not with each try.
func TestLongWaitsSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var told []string
		detail := func(line string) { told = append(told, line) }
		err := untilAnswered(t.Context(), "the webhooks for Machine answer", detail, func(context.Context) error {
			if time.Since(begin) < 25*time.Second {
				return apierrors.NewInternalError(errors.New("failed calling webhook: connection refused"))
			}
			return nil
		})
		const waiting = "waiting until the webhooks for Machine answer"
		want := []string{waiting, waiting + ": Internal error occurred: failed calling webhook: connection refused"}
		if want = append(want, want[1]); err != nil || !slices.Equal(told, want) {
			t.Errorf("told %q, error %v; want %q", told, err, want)
		}
	})
}
