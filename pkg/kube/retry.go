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
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

// isTransient tells whether err is a failure of the API server or the network that passes in a moment.
func isTransient(err error) bool {
	return isLate(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) || isStreamCut(err)
}

// isStreamCut tells whether a proxy, or an API server that is shutting down, has ended this request but not its connection.
func isStreamCut(err error) bool {
	_, cut := errors.AsType[http2.StreamError](err)
	return cut
}

// isUnexplained tells whether the API server failed without a reason. It does so for errors of its storage, for example if etcd has timed
// out on a busy disk. Such an error may also be permanent, so it is retried only a few times.
func isUnexplained(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code == http.StatusInternalServerError && status.ErrStatus.Reason == metav1.StatusReasonUnknown
}

// isUnanswered tells whether the API server lacks something so far: a webhook does not answer, or has an unknown certificate, which both
// are internal errors; or a CRD is not in discovery yet.
func isUnanswered(err error) bool {
	return apierrors.IsInternalError(err) || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || isTransient(err)
}

// isLate tells whether the API server has not answered in the time of a single request. So do a busy machine and a dead one.
func isLate(err error) bool {
	_, late := errors.AsType[*lateError](err)
	return late
}

// isDead tells whether a server whose answers were late so many times, the last of them with err, is taken for dead: after two if it did
// not answer anything else meanwhile, and after mostLate in any case.
func isDead(err error, late int) bool {
	const mostLate = 4
	e, ok := errors.AsType[*lateError](err)
	return ok && (late >= mostLate || late > 1 && !e.busy)
}

// retryTransient repeats do a few times while its error is one of isTransient or isUnexplained, unless the server is taken for dead.
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
// answer was lost, so do has to treat "already done" as success.
func Retry(ctx context.Context, do func(context.Context) error) error { return retryTransient(ctx, do) }

// untilAnswered repeats do until it succeeds, fails with an error that does not pass by waiting, or ctx ends. It polls, because a
// webhook's readiness cannot be watched.
func untilAnswered(ctx context.Context, what string, detail func(string), do func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.6, Jitter: 0.1, Steps: 1 << 30, Cap: time.Second}
	delay := backoff.DelayFunc()
	for told := false; ; told = true {
		err := do(ctx)
		if err == nil || (!isUnanswered(err) && ctx.Err() == nil) {
			return err
		}
		if !told && detail != nil {
			detail("waiting until the API answers for " + what)
		}
		timer := time.NewTimer(delay())
		select {
		case <-ctx.Done():
			timer.Stop()
			return diag.Wrap(fmt.Sprintf("wait until the API answers for %s", what), timeoutError(ctx, err.Error()), "")
		case <-timer.C:
		}
	}
}

// DryRunAdmission creates obj in a dry run, and returns when all webhooks for its kind answer. It returns nil if obj already exists. If a
// webhook refuses obj, it returns the webhook's error.
func (c *Client) DryRunAdmission(ctx context.Context, obj *unstructured.Unstructured) error {
	ref := RefOf(obj)
	return untilAnswered(ctx, ref.String(), nil, func(ctx context.Context) error {
		err := c.Create(ctx, obj.DeepCopy(), client.DryRunAll)
		if err == nil || apierrors.IsAlreadyExists(err) {
			return nil
		}
		return fmt.Errorf("try to create %s: %w", ref, err)
	})
}

// UntilWebhooksAnswer returns when the API server reaches all webhooks for the creation of obj and trusts their certificates. It ignores
// their answers, so obj need not be valid.
func (c *Client) UntilWebhooksAnswer(ctx context.Context, obj *unstructured.Unstructured) error {
	ref := RefOf(obj)
	return untilAnswered(ctx, ref.String(), nil, func(ctx context.Context) error {
		err := c.Create(ctx, obj.DeepCopy(), client.DryRunAll)
		if isTransient(err) || apierrors.IsInternalError(err) && strings.Contains(err.Error(), uncalled) || ctx.Err() != nil {
			return fmt.Errorf("try to create %s: %w", ref, err)
		}
		return nil
	})
}

// uncalled is the beginning of the API server's error if it could not call a webhook (k8s.io/apiserver, pkg/admission/plugin/webhook). An
// error of the webhook itself begins in another way.
const uncalled = "failed calling webhook"
