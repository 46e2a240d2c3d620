// Package apiserver asks the API server behind a kubeconfig what a host must know: whether it is ready, and whether the user is an
// administrator. Other packages do all other work with the cluster.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetctl/fleetctl/pkg/sameorigin"
)

// interval between two requests. /readyz cannot be watched.
const interval = 150 * time.Millisecond

// Client asks one API server. It does not retry.
type Client struct {
	http   *http.Client
	server string
}

// New returns a client for the current context of a kubeconfig. It does not connect yet.
func New(kubeconfig []byte) (*Client, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.Timeout = 10 * time.Second
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return sameorigin.Bind(next, server) })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("use kubeconfig: %w", err)
	}
	return &Client{http: client, server: strings.TrimSuffix(server.String(), "/")}, nil
}

// Server is the address of the API server.
func (c *Client) Server() string { return c.server }

// Ready returns nil if the API server says that it is ready.
func (c *Client) Ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return &NotReadyError{Status: resp.Status, Failed: failedChecks(string(body))}
	}
	return nil
}

// NotReadyError means that the API server answers, but is not ready.
type NotReadyError struct {
	Status string
	// Failed are the names of the failed checks, if the API server named them.
	Failed []string
}

// Error has the HTTP status and the failed checks.
func (e *NotReadyError) Error() string {
	if len(e.Failed) == 0 {
		return "the API server answers " + e.Status
	}
	return fmt.Sprintf("the API server answers %s (%s)", e.Status, strings.Join(e.Failed, ", "))
}

// Answered implements the interface of kube.Answered.
func (*NotReadyError) Answered() bool { return true }

// failedChecks parses lines like "[-]etcd failed: reason withheld" of /readyz.
func failedChecks(body string) []string {
	var failed []string
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(rest, " ")
			failed = append(failed, name)
		}
	}
	return failed
}

// Wait returns when the API server is ready. If ctx ends first, the error has ctx's cause and the last error of the API server.
func (c *Client) Wait(ctx context.Context) error {
	return c.until(ctx, "wait for the API server at "+c.server, c.Ready)
}

// WaitAdministrator returns when the kubeconfig's user may do everything. kubeadm binds the administrator's role a moment after the API
// server is ready.
func (c *Client) WaitAdministrator(ctx context.Context) error {
	return c.until(ctx, "wait for permissions at "+c.server, func(ctx context.Context) error {
		allowed, err := c.Administrator(ctx)
		if err == nil && !allowed {
			err = errors.New("the kubeconfig's user is not an administrator")
		}
		return err
	})
}

// until calls ask until it returns nil. If ctx ends first, the error has ctx's cause and the last error of ask.
func (c *Client) until(ctx context.Context, what string, ask func(context.Context) error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), last))
		case <-tick.C:
		}
	}
}
