package fleetrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetctl/fleetctl/pkg/diag"
)

func TestIdentity(t *testing.T) {
	const id = "0f6a5f0e-7d1c-4a9e-9b43-6f0f3c2f7a11"
	for name, tc := range map[string]struct {
		content, want, err string
	}{
		"as it is written":      {string(IdentityContent(id)), id, ""},
		"with line ends of DOS": {strings.ReplaceAll(string(IdentityContent(id)), "\n", "\r\n"), id, ""},
		"the identity alone":    {id, id, ""},
		"empty":                 {"", "", "holds no identity"},
		"only the comment":      {identityHead, "", "holds no identity"},
		"a conflict of a merge": {"<<<<<<< HEAD\n" + id + "\n", "", "more than one"},
		"two":                   {id + "\n" + id + "\n", "", "more than one"},
		"upper case":            {strings.ToUpper(id), "", "holds no identity"},
		"something else":        {"fleet", "", "holds no identity"},
		"huge":                  {strings.Repeat("#\n", maxIdentityFile) + id, "", "no file with the identity"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.WriteFile(filepath.Join(root, IdentityFile), []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadIdentity(root)
			switch {
			case tc.err == "" && (err != nil || got != tc.want):
				t.Errorf("got %q, %v", got, err)
			case tc.err != "" && (err == nil || got != "" || !strings.Contains(err.Error(), tc.err) ||
				!strings.Contains(diag.Hint(err), "delete it")):
				t.Errorf("got %q, %v (%s); want an error with %q", got, err, diag.Hint(err), tc.err)
			}
		})
	}
	if got, err := ReadIdentity(t.TempDir()); got != "" || err != nil {
		t.Errorf("without the file: %q, %v", got, err)
	}
}

// Only the repo decides the identity of its fleet.
func TestIdentityIsNoLink(t *testing.T) {
	root, outside := t.TempDir(), filepath.Join(t.TempDir(), IdentityFile)
	if err := os.WriteFile(outside, IdentityContent("0f6a5f0e-7d1c-4a9e-9b43-6f0f3c2f7a11"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, IdentityFile)); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadIdentity(root); err == nil {
		t.Errorf("a link is read: %q", got)
	}
}
