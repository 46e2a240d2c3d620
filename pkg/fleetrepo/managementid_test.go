package fleetrepo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// The fleet repo names the UID of a management cluster. A file with any other content is an error.
func TestManagementID(t *testing.T) {
	const uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	at := layout.Layout{Cloud: "aws", Generation: "v1"}
	run := &HandedOver{At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.FixedZone("", 3600)), By: "ci on runner: \"x\"\n", Version: "v1.2.3"}
	id := NewManagementID(uid, run)
	good, err := id.Content("root")
	if err != nil {
		t.Fatal(err)
	}
	if layout.InChannels(at.Identity()) || !layout.InChannels("providers/aws/v1/clusters/prod/a/cluster.yaml") ||
		!layout.InChannels("providers/aws/README.md") {
		t.Error("it is taken for what an environment runs, or what one runs is not")
	}
	for name, c := range map[string]struct{ content, wrong string }{
		"what fleetctl writes": {content: string(good)},
		"only the uid":         {content: "uid: " + uid + "\n"},
		"nothing":              {wrong: "no uid of a cluster"},
		"no uid":               {content: "by: me\n", wrong: "no uid of a cluster"},
		"a hostile uid":        {content: "uid: \"../../\\e[31m\"\n", wrong: "no uid of a cluster"},
		"a conflict of git":    {content: "<<<<<<< HEAD\nuid: a\n=======\nuid: b\n>>>>>>> theirs\n", wrong: "yaml"},
		"a list":               {content: "- a\n", wrong: "yaml"},
		"too large":            {content: string(good) + strings.Repeat("# more\n", 1000), wrong: "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, filepath.FromSlash(at.Identity()))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			files, err := within.FS(dir)
			if err != nil {
				t.Fatal(err)
			}
			if none, err := ReadManagementID(files, at); none != nil || err != nil {
				t.Errorf("of no file: %v, %v", none, err)
			}
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if files, err = within.FS(dir); err != nil {
				t.Fatal(err)
			}
			got, err := ReadManagementID(files, at)
			switch {
			case c.wrong == "" && (err != nil || got.UID != uid):
				t.Errorf("got %+v, %v", got, err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), at.Identity()) ||
				!strings.Contains(diag.Hint(err), "as it was committed")):
				t.Errorf("got %+v, %v (%s)", got, err, diag.Hint(err))
			}
		})
	}
}

// A symbolic link in the place of the file is not followed.
func TestManagementIDOfALink(t *testing.T) {
	dir, at := t.TempDir(), layout.Layout{Cloud: "aws", Generation: "v1"}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("uid: abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, filepath.FromSlash(at.Identity()))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, file); err != nil {
		t.Fatal(err)
	}
	files, err := within.FS(dir)
	if err != nil {
		t.Fatal(err)
	}
	if id, err := ReadManagementID(files, at); err == nil {
		t.Errorf("got %+v", id)
	}
}

// The note of an ended management cluster names one cluster. A note of an older fleetctl names none, and holds for every cluster.
func TestUnnotedEnd(t *testing.T) {
	const uid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
	run := &HandedOver{At: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), By: "ci", Version: "v1.2.3"}
	for name, c := range map[string]struct {
		made  bool
		ended []string // the notes, one after the other
		want  string
	}{
		"none is named":        {},
		"it lives":             {made: true, want: uid},
		"it has ended":         {made: true, ended: []string{uid}},
		"an earlier one has":   {made: true, ended: []string{"another"}, want: uid},
		"one has, of old":      {made: true, ended: []string{""}},
		"an earlier one first": {made: true, ended: []string{"another", uid}},
	} {
		t.Run(name, func(t *testing.T) {
			r := openMasters(t)
			if c.made {
				write(t, r.Dir, "providers/root/v1/management.id", []byte("uid: "+uid+"\n"))
			}
			for _, ended := range c.ended {
				e, err := r.NoteEnded("root", ended, run)
				_, r = done(t, r, e, err)
			}
			if got, err := r.UnnotedEnd("root"); err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
