package gitrepo

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// sessionOf has the fields of a session of go-git's.
type sessionOf struct {
	transport.Session
	Stdin   io.WriteCloser
	Stdout  io.Reader
	Command sshCommand
}

// closing is an input whose Close returns an error.
type closing struct {
	io.Writer
	err error
}

func (c closing) Close() error { return c.err }

type noCommand struct{ sshCommand }

// A server over ssh has answered in full and ended before it was told of the end of the request. That is no reason to lose its answer.
func TestServerEndsBeforeItsInput(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct{ of, want error }{{io.EOF, nil}, {broken, broken}, {nil, nil}} {
		s := &sessionOf{Stdin: closing{io.Discard, tc.of}, Stdout: strings.NewReader("all of it"), Command: noCommand{}}
		out, err := bound(s, &contact.SilentError{Host: "git.example.com", Limit: silence})
		if err != nil {
			t.Fatal(err)
		}
		out.atMost(maxPack)
		if err := s.Stdin.Close(); !errors.Is(err, tc.want) {
			t.Errorf("the end of the input is %v, want %v", err, tc.want)
		}
		if answer, err := io.ReadAll(s.Stdout); err != nil || string(answer) != "all of it" {
			t.Errorf("the answer is %q, %v", answer, err)
		}
	}
}
