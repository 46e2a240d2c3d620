package management

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/host/embedded"
	"github.com/fleetctl/fleetctl/pkg/kube"
)

// What fails for want of an API server is tried again, a few times; what fails for another reason is not.
func TestOutlast(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := gone.Addr().String()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, refused := http.DefaultClient.Do(request) //nolint:bodyclose // nobody answers
	if !kube.IsLost(fmt.Errorf("look: %w", refused)) {
		t.Fatalf("%v is not taken for a server that has ended", refused)
	}
	other := errors.New("forbidden")
	h, err := embedded.New("nobody", embedded.Options{StateDir: t.TempDir()}) // which is not there, and starting it makes nothing
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		answers []error
		want    error
		looks   int
	}{
		"at once":           {answers: []error{nil}, looks: 1},
		"back again":        {answers: []error{refused, nil}, looks: 2},
		"never back":        {answers: []error{refused, refused, refused, nil}, want: refused, looks: outlasts},
		"for other reasons": {answers: []error{other, nil}, want: other, looks: 1},
		"first one, then":   {answers: []error{refused, other, nil}, want: other, looks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			looks := 0
			err := Outlast(t.Context(), h, func() error {
				looks++
				return c.answers[looks-1]
			})
			if !errors.Is(err, c.want) || looks != c.looks {
				t.Errorf("%v after %d looks, want %v after %d", err, looks, c.want, c.looks)
			}
		})
	}
}
