package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRetryTransient(t *testing.T) {
	// As k8s.io/apiserver passes on what its storage says.
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

// TestHalfAnswerIsAskedAgain: a server that begins to answer and takes too long for the rest is there, and is asked again.
func TestHalfAnswerIsAskedAgain(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			_, _ = w.Write([]byte("half of"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte("an answer"))
	}))
	defer server.Close()
	client := &http.Client{Transport: bound(http.DefaultTransport, 500*time.Millisecond, mostBytes)}
	ask := func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	var got string
	err := retryTransient(t.Context(), func(ctx context.Context) (err error) {
		got, err = ask(ctx)
		return err
	})
	if err != nil || got != "an answer" || requests.Load() != 2 {
		t.Errorf("%q and %v after %d requests", got, err, requests.Load())
	}
	// The caller's own time ends all.
	requests.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) || isTransient(err) {
		t.Errorf("the caller's time ended with %v", err)
	}
}
