// Package diag holds what a command tells its user when something is wrong: an error with a hint, a finding with a
// place in a file, and the exit code that a script can rely on.
package diag

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Exit codes of fleetctl. They are part of its interface: scripts and pipelines branch on them.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotReady    = 3
	ExitInterrupted = 130
)

// Error says what failed (Op, in the infinitive, with the object's name), why (Err), and what to do next (Hint, the next
// command or the missing permission; it may be empty). Code is the exit code it asks for; 0 stands for ExitFailure.
type Error struct {
	Op   string
	Err  error
	Hint string
	Code int
}

// Error is "op: cause", lower case and without a final period. The hint is not part of it: the view prints it apart.
func (e *Error) Error() string {
	switch {
	case e.Op == "" && e.Err == nil:
		return "unknown error"
	case e.Op == "":
		return e.Err.Error()
	case e.Err == nil:
		return e.Op
	}
	return e.Op + ": " + e.Err.Error()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// InLine returns err with its hint in parentheses, for a warning, which has no hint of its own.
func InLine(err error) string {
	if hint := Hint(err); hint != "" {
		return err.Error() + " (" + hint + ")"
	}
	return err.Error()
}

// Because returns err with its hint, together in parentheses, for the end of a warning that says something else.
func Because(err error) string {
	if hint := Hint(err); hint != "" {
		return "(" + err.Error() + ": " + hint + ")"
	}
	return "(" + err.Error() + ")"
}

// Wrap returns nil for a nil err, else an Error with op, err and hint.
func Wrap(op string, err error, hint string) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, Err: err, Hint: hint}
}

// AndHint returns err with its own hint and one more, or nil for a nil err.
func AndHint(err error, more string) error {
	if own := Hint(err); own != "" {
		more = own + "; " + more
	}
	return Wrap("", err, more)
}

// Errorf is an Error whose cause is formatted as fmt.Errorf does it, %w included.
func Errorf(hint, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// Usage is an error in how the command was called (exit 2).
func Usage(hint, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint, Code: ExitUsage}
}

// NotReady is the outcome of a command that worked and found, or waited in vain for, something not Ready (exit 3).
func NotReady(hint, format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...), Hint: hint, Code: ExitNotReady}
}

// The hints where a disk takes nothing.
const (
	fullHint     = "the disk is full: free space there, and run the same command again"
	readOnlyHint = "that place is read-only: make it writable, or name another one (fleetctl's own: --state-dir and --cache-dir)"
)

// permissionHint is what to do where a file of this machine is not for the user; "" where that is not the cause, or no file is named.
func permissionHint(err error) string {
	file, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(file, fs.ErrPermission) {
		return ""
	}
	return "look with `ls -ld` at the owner and the mode of " + file.Path + " and of its folder: run the command as the owner, or have the " +
		"owner change them with chown or chmod"
}

// Hint returns the outermost non-empty hint in err's tree, or "". Where a disk of this machine is the cause, whatever was done is not. An
// error without a hint gets one if the cause is a file that the user may not read or write.
func Hint(err error) string {
	switch {
	case errors.Is(err, syscall.EROFS):
		return readOnlyHint
	case IsOfDisk(err):
		return fullHint
	}
	return cmp.Or(hint(err), permissionHint(err))
}

// IsOfDisk tells whether err comes from a disk of this machine that takes nothing: it is full, or read-only.
func IsOfDisk(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EROFS)
}

func hint(err error) string {
	for err != nil {
		if e, ok := err.(*Error); ok && e.Hint != "" { //nolint:errorlint // walks the chain itself
			return e.Hint
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, each := range many.Unwrap() {
				if h := hint(each); h != "" {
					return h
				}
			}
			return ""
		}
		err = errors.Unwrap(err)
	}
	return ""
}

// Code returns the exit code that err asks for: 0 for nil, the outermost explicit code in its tree, else 1.
func Code(err error) int {
	if err == nil {
		return ExitOK
	}
	if code := explicitCode(err); code != 0 {
		return code
	}
	return ExitFailure
}

// explicitCode is the outermost code in err's tree, of joined errors that of the first; 0 where none is asked for.
func explicitCode(err error) int {
	for err != nil {
		if e, ok := err.(*Error); ok && e.Code != 0 { //nolint:errorlint // walks the chain itself
			return e.Code
		}
		if many, ok := err.(interface{ Unwrap() []error }); ok {
			for _, each := range many.Unwrap() {
				if code := explicitCode(each); code != 0 {
					return code
				}
			}
			return 0
		}
		err = errors.Unwrap(err)
	}
	return 0
}
