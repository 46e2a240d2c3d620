package diag_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestShort(t *testing.T) {
	long := diag.Wrap(strings.Repeat("é", 100), io.EOF, "do it")
	for _, tc := range []struct {
		err  error
		most int
		want string
	}{
		{long, 11, "ééééé…"},
		{errors.New("abc"), 3, "abc"},
		{fmt.Errorf("abcd: %w", io.EOF), 3, "abc…"},
	} {
		if got := diag.Short(tc.err, tc.most); got.Error() != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
	if got := diag.Short(long, 11); !errors.Is(got, io.EOF) || diag.Hint(got) != "do it" {
		t.Errorf("%v has lost what it is", got)
	}
	if diag.Short(nil, 1) != nil {
		t.Error("no error became one")
	}
}
