package gitserve

import (
	"context"
	"net"
	"net/http"
	"testing"
)

func TestServe(t *testing.T) {
	listen := func() net.Listener {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return listener
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	listener := listen()
	go func() { done <- serve(ctx, listener, http.NotFoundHandler()) }()
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopped: %v", err)
	}
	closed := listen()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := serve(t.Context(), closed, http.NotFoundHandler()); err == nil {
		t.Error("serves on a listener that is closed")
	}
}
