package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// isTransient tells whether err is a short failure of the API server or the network.
func isTransient(err error) bool {
	return isLate(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) ||
		IsLost(err) || isStreamCut(err)
}

// isStreamCut tells whether a proxy, or an API server that is shutting down, has ended this request but not the connection.
func isStreamCut(err error) bool {
	_, cut := errors.AsType[http2.StreamError](err)
	return cut
}

// isUnexplained tells whether the API server failed without a reason. This happens for errors of its storage, for example if etcd times out
// on a busy disk. Such an error may also be permanent, so it is retried only a few times.
func isUnexplained(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code == http.StatusInternalServerError && status.ErrStatus.Reason == metav1.StatusReasonUnknown
}

// isUnanswered tells whether the API server still lacks something: a webhook that does not answer or has an unknown certificate (both are
// internal errors), or a CRD that is not in discovery yet.
func isUnanswered(err error) bool {
	return apierrors.IsInternalError(err) || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || isTransient(err)
}

// isLate tells whether the API server has not answered within the timeout of a single request. The machine may be busy or dead.
func isLate(err error) bool {
	_, late := errors.AsType[*lateError](err)
	return late
}

// isDead tells whether to treat a server as dead after this number of late answers. err is the last error. A server that answered no other
// request in the meantime is dead after two late answers, and every other server after mostLate.
func isDead(err error, late int) bool {
	const mostLate = 4
	e, ok := errors.AsType[*lateError](err)
	return ok && (late >= mostLate || late > 1 && !e.busy)
}

// retryTransient repeats do a few times while its error is transient or unexplained, unless the server counts as dead.
func retryTransient(ctx context.Context, do func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 3 * time.Second}
	var last error
	late := 0
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = do(ctx)
		if isLate(last) {
			late++
		}
		if last == nil || isDead(last, late) || !isTransient(last) && !isUnexplained(last) {
			return true, last
		}
		return false, nil
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// Retry repeats do a few times after short failures of the API server or the network. A failed call may have had its effect although its
// answer was lost, so do must treat "already done" as success.
func Retry(ctx context.Context, do func(context.Context) error) error { return retryTransient(ctx, do) }

// reasonAfter is how long untilAnswered waits before it tells why, and how often it tells again.
const reasonAfter = 10 * time.Second

// untilAnswered repeats do until it succeeds, fails with an error that waiting cannot remove, or ctx ends. It polls, because the readiness
// of a webhook cannot be watched. what completes the sentence "wait until …". detail, if not nil, is told that it waits, and after a while
// also why.
func untilAnswered(ctx context.Context, what string, detail func(string), do func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.6, Jitter: 0.1, Steps: 1 << 30, Cap: time.Second}
	delay := backoff.DelayFunc()
	var told time.Time
	for waits := false; ; waits = true {
		err := do(ctx)
		if err == nil || (!isUnanswered(err) && ctx.Err() == nil) {
			return err
		}
		switch {
		case detail == nil:
		case !waits:
			told = time.Now()
			detail("waiting until " + what)
		case time.Since(told) > reasonAfter:
			told = time.Now()
			detail("waiting until " + what + ": " + err.Error())
		}
		timer := time.NewTimer(delay())
		select {
		case <-ctx.Done():
			timer.Stop()
			return diag.Wrap("wait until "+what, timeoutError(ctx, err.Error()), "")
		case <-timer.C:
		}
	}
}

// DryRunAdmission creates obj in a dry run. It returns when all webhooks for its kind answer. It returns nil if obj already exists, and the
// webhook's error if a webhook refuses obj. detail, if not nil, is told what it waits for.
func (c *Client) DryRunAdmission(ctx context.Context, obj *unstructured.Unstructured, detail func(string)) error {
	ref := RefOf(obj)
	return untilAnswered(ctx, "the webhooks for "+ref.Kind+" answer", detail, func(ctx context.Context) error {
		err := c.Create(ctx, obj.DeepCopy(), client.DryRunAll)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("try to create %s: %w", ref, err)
	})
}

// UntilWebhooksAnswer returns when the API server reaches all webhooks for the creation of obj and trusts their certificates. It ignores
// the answers of the webhooks, so obj need not be valid. detail, if not nil, is told what it waits for.
func (c *Client) UntilWebhooksAnswer(ctx context.Context, obj *unstructured.Unstructured, detail func(string)) error {
	ref := RefOf(obj)
	return untilAnswered(ctx, "the webhooks for "+ref.Kind+" answer", detail, func(ctx context.Context) error {
		err := c.Create(ctx, obj.DeepCopy(), client.DryRunAll)
		if isTransient(err) || apierrors.IsInternalError(err) && strings.Contains(err.Error(), uncalled) || ctx.Err() != nil {
			return fmt.Errorf("try to create %s: %w", ref, err)
		}
		return nil
	})
}

// uncalled is in the API server's error if it could not call a webhook (k8s.io/apiserver, pkg/admission/plugin/webhook). Errors of the
// webhook itself have another text.
const uncalled = "failed calling webhook"
