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

// isTransient tells whether err is one that the API server, or the way to it, gets over by itself in a moment.
func isTransient(err error) bool {
	return apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTimeout(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) ||
		utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err) || isStreamCut(err)
}

// isStreamCut tells whether a proxy, or the API server as it ends, has cut off the one request and not its connection.
func isStreamCut(err error) bool {
	_, cut := errors.AsType[http2.StreamError](err)
	return cut
}

// isUnexplained tells whether the API server failed and gave no reason, which is how it passes on what its storage says: that etcd has timed out, on
// a busy disk. It may be for good as well, so that it is tried again a few times only.
func isUnexplained(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code == http.StatusInternalServerError && status.ErrStatus.Reason == metav1.StatusReasonUnknown
}

// isUnanswered tells whether err says that what stands behind the API server is not there yet: a webhook that does not
// answer or whose certificate is not known yet (the API server reports both as internal errors), or a CRD that has not
// reached discovery.
func isUnanswered(err error) bool {
	return apierrors.IsInternalError(err) || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || isTransient(err)
}

// retryTransient repeats do a few times over what isTransient and isUnexplained know.
func retryTransient(ctx context.Context, do func(context.Context) error) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.2, Steps: 7, Cap: 3 * time.Second}
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		last = do(ctx)
		if last != nil && (isTransient(last) || isUnexplained(last)) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil {
		return last
	}
	return err
}

// Retry repeats do a few times over what an API server, or the way to it, gets over by itself in a moment. What it repeats may have been done
// although the answer was lost: do has to take "already so" for success.
func Retry(ctx context.Context, do func(context.Context) error) error { return retryTransient(ctx, do) }

// untilAnswered repeats do until it succeeds, fails for a reason that waiting does not cure, or ctx ends. Webhooks cannot
// be watched: that they answer shows only by asking.
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

// DryRunAdmission returns once the API server admits obj in a dry run, that is, once all webhooks for its kind answer. An
// object that exists already, or that a webhook answers by refusing it, counts as answered, the latter with its error.
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

// UntilWebhooksAnswer returns once no webhook that the API server has to ask about the creation of obj is beyond its reach or has a certificate
// that it does not trust. What they answer is not looked at: obj need not be one that they, or its CRD, would admit.
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

// uncalled is how the API server's internal error begins where it could not call a webhook, other than where the webhook itself has failed
// (k8s.io/apiserver, pkg/admission/plugin/webhook).
const uncalled = "failed calling webhook"
