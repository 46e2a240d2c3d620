package diag

import "github.com/fleetctl/fleetctl/pkg/plain"

// Short is err with a text of no more than limit bytes, and an ellipsis where it is cut. A server may answer with a whole page, and the
// error quotes it. errors.Is and errors.As still find what err is.
func Short(err error, limit int) error {
	if err == nil || len(err.Error()) <= limit {
		return err
	}
	return &shortError{err, limit}
}

type shortError struct {
	err   error
	limit int
}

// Error is the beginning of the text.
func (e *shortError) Error() string { return plain.Clip(e.err.Error(), e.limit) }

// Unwrap returns the whole error.
func (e *shortError) Unwrap() error { return e.err }
