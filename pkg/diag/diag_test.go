package diag

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
)

func TestCodeAndHint(t *testing.T) {
	usage, notReady, plain := Usage("type it right", "no such flag"), NotReady("wait", "not yet"), errors.New("plain")
	for name, tt := range map[string]struct {
		err  error
		code int
		hint string
	}{
		"nil":                {nil, ExitOK, ""},
		"plain":              {plain, ExitFailure, ""},
		"usage":              {usage, ExitUsage, "type it right"},
		"wrapped":            {fmt.Errorf("init: %w", notReady), ExitNotReady, "wait"},
		"outer hint wins":    {Wrap("init", notReady, "look"), ExitNotReady, "look"},
		"outer code wins":    {&Error{Err: notReady, Code: ExitInterrupted}, ExitInterrupted, "wait"},
		"no hint of its own": {Wrap("init", notReady, ""), ExitNotReady, "wait"},
		"joined":             {errors.Join(plain, notReady), ExitNotReady, "wait"},
		"joined, first wins": {errors.Join(usage, notReady), ExitUsage, "type it right"},
		"joined below":       {Wrap("init", errors.Join(notReady, nil), ""), ExitNotReady, "wait"},
		"joined, none":       {errors.Join(plain, fs.ErrNotExist), ExitFailure, ""},
		"a full disk":        {Wrap("read", fmt.Errorf("write: %w", syscall.ENOSPC), "it is damaged"), ExitFailure, fullHint},
		"a full quota":       {Wrap("init", errors.Join(notReady, syscall.EDQUOT), ""), ExitNotReady, fullHint},
		"a read-only disk":   {&fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.EROFS}, ExitFailure, readOnlyHint},
		"two causes":         {fmt.Errorf("%w: %w", plain, notReady), ExitNotReady, "wait"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Code(tt.err); got != tt.code {
				t.Errorf("code %d, want %d", got, tt.code)
			}
			if got := Hint(tt.err); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	if err := Wrap("read", nil, "hint"); err != nil {
		t.Errorf("no error became %v", err)
	}
	err := Wrap("read the file", fs.ErrNotExist, "make it")
	if err.Error() != "read the file: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// A file that is not for the user is a cause that everybody can do something about: the error says what, unless it has its own advice.
func TestHintOfAFileOfSomebodyElse(t *testing.T) {
	denied := fmt.Errorf("commit: %w", &fs.PathError{Op: "open", Path: "/repo/.git/objects/5e/fa", Err: syscall.EACCES})
	for _, c := range []struct {
		err  error
		want string
	}{
		{denied, "look with `ls -ld` at the owner and the mode of /repo/.git/objects/5e/fa and of its folder"},
		{Wrap("commit", denied, "a hint"), "a hint"},
		{fmt.Errorf("dial: %w", syscall.EACCES), ""},
		{&fs.PathError{Op: "open", Path: "a", Err: syscall.ENOENT}, ""},
	} {
		if got := Hint(c.err); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%v: %q", c.err, got)
		}
	}
}

// The first hint is the error's own.
func TestAndHint(t *testing.T) {
	for own, want := range map[string]string{"": "again", "first": "first; again"} {
		cause := errors.New("cause")
		err := AndHint(Wrap("", cause, own), "again")
		if got := Hint(err); got != want || !errors.Is(err, cause) {
			t.Errorf("%q: %q, %v", own, got, err)
		}
	}
	if err := AndHint(nil, "again"); err != nil {
		t.Error(err)
	}
}
