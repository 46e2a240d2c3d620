package runner

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetctl/fleetctl/pkg/host/embedded/process"
)

// eagerPeriod is the time between probes until the first success. It is shorter than a kubelet's period of seconds, because most processes
// are ready sooner.
const eagerPeriod = 50 * time.Millisecond

// dialFunc connects, as net.Dialer's DialContext does.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// prober runs the probes of one process.
type prober struct {
	plan *plan
	dial dialFunc
	http *http.Client
	// ready is called with each change of readiness. reason says why the process is not ready.
	ready func(ok bool, reason string)
	// unhealthy is called when the liveness or startup probe has failed as often as its failureThreshold.
	unhealthy func(reason string)
}

func newProber(dial dialFunc, p *plan) *prober {
	return &prober{plan: p, dial: dial, http: &http.Client{
		// As the kubelet does: verify no certificates, keep no connections, follow redirects within the host.
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // as the kubelet does
			DisableKeepAlives: true,
			DialContext:       dial,
			Proxy:             nil,
		},
	}}
}

// run probes until ctx ends, which is when the process ends.
func (p *prober) run(ctx context.Context) {
	if startup := p.plan.probes["startupProbe"]; startup != nil {
		if !p.startup(ctx, startup) {
			return
		}
	}
	if liveness := p.plan.probes["livenessProbe"]; liveness != nil {
		go p.liveness(ctx, liveness)
	}
	readiness := p.plan.probes["readinessProbe"]
	if readiness == nil {
		p.ready(true, "")
		return
	}
	p.readiness(ctx, readiness)
}

// startup returns true once the probe passes.
func (p *prober) startup(ctx context.Context, probe *corev1.Probe) bool {
	patience := seconds(probe.InitialDelaySeconds, 0) + time.Duration(max(probe.FailureThreshold, 1))*period(probe)
	for deadline := time.Now().Add(patience); ; {
		err := p.ask(ctx, probe)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		p.ready(false, "startup probe failed: "+err.Error())
		if time.Now().After(deadline) {
			p.unhealthy("startup probe failed: " + err.Error())
			return false
		}
		if !sleep(ctx, eagerPeriod) {
			return false
		}
	}
}

func (p *prober) readiness(ctx context.Context, probe *corev1.Probe) {
	successes, failures, is := int32(0), int32(0), false
	for ctx.Err() == nil {
		err := p.ask(ctx, probe)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			if successes++; !is && successes >= max(probe.SuccessThreshold, 1) {
				is = true
				p.ready(true, "")
			}
		} else {
			successes = 0
			if failures++; !is || failures >= max(probe.FailureThreshold, 1) {
				is = false
				p.ready(false, "readiness probe failed: "+err.Error())
			}
		}
		pause := period(probe)
		if !is {
			pause = min(pause, eagerPeriod*time.Duration(1+min(failures/20, 19))) // up to a second
		}
		sleep(ctx, pause)
	}
}

func (p *prober) liveness(ctx context.Context, probe *corev1.Probe) {
	if !sleep(ctx, seconds(probe.InitialDelaySeconds, 0)+period(probe)) {
		return
	}
	failures := int32(0)
	for ctx.Err() == nil {
		err := p.ask(ctx, probe)
		if failures++; err == nil {
			failures = 0
		}
		if failures >= max(probe.FailureThreshold, 1) && ctx.Err() == nil {
			p.unhealthy("liveness probe failed: " + err.Error())
			return
		}
		sleep(ctx, period(probe))
	}
}

func period(probe *corev1.Probe) time.Duration { return seconds(probe.PeriodSeconds, 10) }

func seconds(n, otherwise int32) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}

// sleep returns false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// ask runs a probe once. It returns nil if the probe succeeds.
func (p *prober) ask(ctx context.Context, probe *corev1.Probe) error {
	ctx, cancel := context.WithTimeout(ctx, seconds(probe.TimeoutSeconds, 1))
	defer cancel()
	switch {
	case probe.HTTPGet != nil:
		return p.get(ctx, probe.HTTPGet)
	case probe.TCPSocket != nil:
		port, ok := containerPort(p.plan.pod, probe.TCPSocket.Port)
		if !ok {
			return fmt.Errorf("the container has no port %s", probe.TCPSocket.Port.String())
		}
		conn, err := p.dial(ctx, "tcp", p.address(port))
		if err != nil {
			return err
		}
		return conn.Close()
	case probe.Exec != nil:
		return p.exec(ctx, probe.Exec.Command)
	}
	return errors.New("the probe has no action")
}

func (p *prober) address(container int32) string {
	return net.JoinHostPort(loopback, strconv.Itoa(int(p.plan.port(container))))
}

func (p *prober) get(ctx context.Context, action *corev1.HTTPGetAction) error {
	port, ok := containerPort(p.plan.pod, action.Port)
	if !ok {
		return fmt.Errorf("the container has no port %s", action.Port.String())
	}
	scheme := "http"
	if action.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	address := scheme + "://" + p.address(port) + "/" + strings.TrimPrefix(action.Path, "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "kube-probe/fleetctl")
	for _, h := range action.HTTPHeaders {
		req.Header.Add(h.Name, h.Value)
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			req.Host = h.Value
		}
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 10<<10) // only the status counts
	if resp.StatusCode < 200 || resp.StatusCode >= 400 {
		return fmt.Errorf("%s answers %s", address, resp.Status)
	}
	return nil
}

func (p *prober) exec(ctx context.Context, command []string) error {
	if len(command) == 0 {
		return errors.New("the command is empty")
	}
	path, err := p.plan.image.Program(command[0])
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path, command[1:]...) //nolint:gosec // the manifest's own
	cmd.Env, cmd.Dir, cmd.WaitDelay = p.plan.spec.Env, p.plan.spec.Dir, time.Second
	if out, err := process.CombinedOutput(cmd); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out[:min(len(out), 200)])))
	}
	return nil
}
