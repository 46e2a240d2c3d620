package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/fleetctl/fleetctl/pkg/contact"
)

// silence is a variable, so that tests need not wait that long.
var silence = contact.Silence

// boundedSSH bounds the answers that go-git reads over ssh, and the time that the server may take.
type boundedSSH struct{ transport.Transport }

// NewUploadPackSession implements transport.Transport.
func (b boundedSSH) NewUploadPackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.UploadPackSession, error) {
	session, out, err := openBounded(b.Transport.NewUploadPackSession, ep, auth)
	if err != nil {
		return nil, err
	}
	return &boundedUpload{session, out}, nil
}

// NewReceivePackSession implements transport.Transport.
func (b boundedSSH) NewReceivePackSession(ep *transport.Endpoint, auth transport.AuthMethod) (transport.ReceivePackSession, error) {
	session, out, err := openBounded(b.Transport.NewReceivePackSession, ep, auth)
	if err != nil {
		return nil, err
	}
	return &boundedReceive{session, out}, nil
}

// openBounded opens a session with open. The server first sends its references, so their bound holds until the session sets another one.
func openBounded[S transport.Session](
	open func(*transport.Endpoint, transport.AuthMethod) (S, error), ep *transport.Endpoint, auth transport.AuthMethod,
) (session S, out *output, err error) {
	if session, err = open(ep, auth); err != nil {
		return session, nil, err
	}
	if out, err = bound(session, &contact.SilentError{Host: ep.Host, Limit: silence}); err != nil {
		return session, nil, err
	}
	out.atMost(maxRefs)
	return session, out, nil
}

type boundedUpload struct {
	transport.UploadPackSession
	out *output
}

// UploadPack implements transport.UploadPackSession.
func (b *boundedUpload) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	b.out.atMost(maxPack)
	return b.UploadPackSession.UploadPack(ctx, req)
}

type boundedReceive struct {
	transport.ReceivePackSession
	out *output
}

// ReceivePack implements transport.ReceivePackSession.
func (b *boundedReceive) ReceivePack(ctx context.Context, req *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	b.out.atMost(maxReport)
	return b.ReceivePackSession.ReceivePack(ctx, req)
}

// output is the reader from which go-git reads the answers of a session.
type output struct {
	field reflect.Value
	from  io.Reader
}

// bound limits the time that the server of a session may take, and returns the session's output. go-git does not export the type of its ssh
// sessions, but it exports their fields Stdout, Stdin and Command, which bound sets. If a release of go-git has no such fields, bound
// returns an error, so that no session is without a bound.
func bound(session transport.Session, silent *contact.SilentError) (*output, error) {
	stdout, from := exported[io.Reader](session, "Stdout")
	stdin, to := exported[io.WriteCloser](session, "Stdin")
	command, process := exported[sshCommand](session, "Command")
	if from == nil || to == nil || process == nil {
		_ = session.Close() // no request was sent yet
		return nil, fmt.Errorf("bound the answers of the server: %T has no output, input and command", session)
	}
	ending := &endsSoon{sshCommand: process}
	command.Set(reflect.ValueOf(ending))
	stdin.Set(reflect.ValueOf(contact.SteadyWriter(endsOnce{to}, silent)))
	return &output{stdout, contact.Steady(io.NopCloser(from), silent, func(error) { _ = ending.Close() })}, nil
}

// exported returns the field of the session with a name, and its value. Without a field of that name and type that can be set, both are
// their zero values.
func exported[T any](session transport.Session, name string) (field reflect.Value, value T) {
	if of := reflect.ValueOf(session); of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
		if field = of.Elem().FieldByName(name); field.IsValid() && field.CanSet() {
			value, _ = reflect.TypeAssert[T](field)
		}
	}
	return field, value
}

// atMost bounds the number of bytes that the session can read from now on.
func (o *output) atMost(most int) { o.field.Set(reflect.ValueOf(contact.BoundReader(o.from, most))) }

// sshCommand is go-git's Command, which it does not export.
type sshCommand interface {
	StderrPipe() (io.Reader, error)
	StdinPipe() (io.WriteCloser, error)
	StdoutPipe() (io.Reader, error)
	Start() error
	Close() error
}

// endsOnce is the input of a command that may have ended already. A server that has answered need not wait for the end of its input, and
// ssh then cannot tell it of this end. What it has answered can still be read.
type endsOnce struct{ io.WriteCloser }

// Close implements io.Closer.
func (e endsOnce) Close() error {
	err := e.WriteCloser.Close()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// endsSoon is a command whose Close does not wait for ever for a server that no longer takes any data. go-git's Close sends such a server a
// message.
type endsSoon struct {
	sshCommand
	once sync.Once
	err  error
}

// Close implements go-git's Command.
func (e *endsSoon) Close() error {
	e.once.Do(func() {
		done := make(chan error, 1)
		go func() { done <- e.sshCommand.Close() }()
		select {
		case e.err = <-done:
		case <-time.After(contact.Limit): // the connection ends with this process
		}
	})
	return e.err
}
