package diag

import "errors"

// about is an error with the management cluster that it is about.
type about struct {
	error
	management string
}

func (a *about) Unwrap() error { return a.error }

// About says which management cluster err is about. In a fleet with several, the commands in the hint of err then name it. About returns
// nil for a nil err.
func About(management string, err error) error {
	if err == nil {
		return nil
	}
	return &about{err, management}
}

// Management is the management cluster that err is about, as far as About has said so; otherwise "".
func Management(err error) string {
	if a, ok := errors.AsType[*about](err); ok {
		return a.management
	}
	return ""
}
