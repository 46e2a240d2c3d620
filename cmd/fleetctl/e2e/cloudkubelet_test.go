//go:build e2e && clouds

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// startKubelet serves the one thing that Cluster API asks kubelets for: a port of a pod of the control plane, through the API server. Such
// pods are in the machine's own network.
func startKubelet(address string) (*httptest.Server, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "10250"))
	if err != nil {
		return nil, err
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/portForward/kube-system/") {
			http.NotFound(w, r)
			return
		}
		forwardPorts(w, r, address)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	return server, nil
}

// forwardPorts is the kubelet's side of the protocol: two streams for each connection, of which one is for errors.
func forwardPorts(w http.ResponseWriter, r *http.Request, address string) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return // it has answered
	}
	streams := make(chan httpstream.Stream, 16)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	})
	if connection == nil {
		return
	}
	defer connection.Close()
	failures := map[string]httpstream.Stream{}
	for {
		select {
		case <-connection.CloseChan():
			return
		case s := <-streams:
			id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError { // always the first
				failures[id] = s
				continue
			}
			go forward(net.JoinHostPort(address, s.Headers().Get(corev1.PortHeader)), s, failures[id])
		}
	}
}

func forward(address string, stream, failure httpstream.Stream) {
	defer stream.Close()
	if failure != nil {
		defer failure.Close()
	}
	target, err := net.Dial("tcp", address)
	if err != nil {
		if failure != nil {
			fmt.Fprint(failure, err)
		}
		return
	}
	join(stream, target)
}

// join carries what either side sends to the other until one of them ends.
func join(a, b io.ReadWriteCloser) {
	ended := make(chan struct{}, 2)
	carry := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go carry(a, b)
	go carry(b, a)
	<-ended
	_ = a.Close()
	_ = b.Close()
	<-ended
}
