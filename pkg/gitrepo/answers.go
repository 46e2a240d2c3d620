package gitrepo

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// statusError is an HTTP answer about which go-git only reports the status code.
type statusError struct {
	code   int
	reason string
	// after is the pause that the server asks for (Retry-After); 0 if it asks for none.
	after time.Duration
}

// Error returns the status, and the text of the answer.
func (e *statusError) Error() string {
	text := fmt.Sprintf("it answers %d %s", e.code, cmp.Or(http.StatusText(e.code), "(unknown status)"))
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}

// hint returns what to do about the status; "" if the hint of the error's kind is enough.
func (e *statusError) hint() string {
	if e.code != http.StatusTooManyRequests || e.after == 0 {
		return ""
	}
	return fmt.Sprintf("run the same command again in %s: the server asks for that pause", plain.Duration(e.after))
}

// kind returns the kind of the error, or nil for a status that does not tell it.
func (e *statusError) kind() error {
	switch {
	case e.code == http.StatusProxyAuthRequired:
		return ErrNetwork
	case e.code == http.StatusTooManyRequests:
		return ErrTooManyRequests
	case e.code >= http.StatusInternalServerError:
		return ErrUnavailable
	case e.code == http.StatusGone:
		return ErrNotFound
	}
	return nil
}

// longestPause bounds the pause that a server may ask for.
const longestPause = 24 * time.Hour

// ofServer returns err without the errors that go-git wraps around it. They say nothing about the cause, and do not implement Unwrap.
func ofServer(err error) error {
	for {
		switch wrapped := err.(type) { //nolint:errorlint // it takes the wrappers off, one after the other
		case *plumbing.UnexpectedError:
			err = wrapped.Err
		case *plumbing.PermanentError:
			err = wrapped.Err
		default:
			answer, ok := errors.AsType[*githttp.Err](err)
			if !ok || answer.Response == nil {
				return err
			}
			status := &statusError{code: answer.StatusCode(), reason: answer.Reason}
			if seconds, err := strconv.Atoi(answer.Response.Header.Get("Retry-After")); err == nil && seconds > 0 {
				status.after = min(time.Duration(min(seconds, int(longestPause/time.Second)))*time.Second, longestPause)
			}
			return status
		}
	}
}
