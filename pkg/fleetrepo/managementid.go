package fleetrepo

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/layout"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// ManagementID says which cluster a management cluster of the fleet is: names come again, after a teardown or on another machine. Every
// init leaves it in the fleet repo. Whoever finds another one there knows that somebody else has made the management cluster since.
type ManagementID struct {
	// UID is that of the namespace kube-system.
	UID string `yaml:"uid"`
	// At is when it was first noted, By who did it and where, Fleetctl the version of fleetctl; for people to read.
	At       string `yaml:"at"`
	By       string `yaml:"by"`
	Fleetctl string `yaml:"fleetctl"`
}

// NewManagementID is that of a cluster that a run has made, or found without one.
func NewManagementID(uid string, run *HandedOver) ManagementID {
	return ManagementID{UID: uid, At: run.At.UTC().Format(time.RFC3339), By: run.By, Fleetctl: run.Version}
}

// String is who has made the cluster, and when.
func (m *ManagementID) String() string { return fmt.Sprintf("%s, %s", m.At, m.By) }

// Content is the file that layout.Identity names.
func (m *ManagementID) Content(name string) ([]byte, error) {
	content, err := yaml.Marshal(m)
	head := "# Which cluster the management cluster " + name + " is: uid is that of its namespace kube-system. fleetctl keeps this\n" +
		"# file. With it fleetctl on another machine knows whether it knows this management cluster, and makes no second one.\n"
	return append([]byte(head), content...), err
}

// maxManagementID bounds the bytes that are read of the file, which a stranger may have written.
const maxManagementID = 4 << 10

// validUID is what an API server gives a namespace, and more.
var validUID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// ReadManagementID reads which cluster a management cluster is, in the files of a fleet repo. It returns nil if that is not noted.
func ReadManagementID(repo fs.FS, at layout.Layout) (*ManagementID, error) {
	id := &ManagementID{}
	if there, err := readNote(repo, at.Identity(), id); err != nil || !there {
		return nil, err
	}
	if !validUID.MatchString(id.UID) {
		return nil, wrongNote(at.Identity(), errors.New("it has no uid of a cluster"))
	}
	return id, nil
}

// Ended tells whether the fleet repo has a note that the management cluster called name has ended, and that note counts for the cluster
// that the repo names; made is nil if the repo names none. A note of an older fleetctl does not tell which cluster has ended, and counts
// for any.
func Ended(repo fs.FS, at layout.Layout, name string, made *ManagementID) (bool, error) {
	var note struct {
		Ended endedEntry `yaml:"ended"`
	}
	there, err := readNote(repo, at.Ended(name), &note)
	return there && (note.Ended.UID == "" || made == nil || note.Ended.UID == made.UID), err
}

// readNote decodes a small file that fleetctl keeps in fleet repos, if it is there.
func readNote(repo fs.FS, name string, into any) (bool, error) {
	file, err := repo.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, wrongNote(name, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(file, maxManagementID+1))
	switch {
	case err != nil:
	case len(content) > maxManagementID:
		err = errors.New("it is too large")
	default:
		err = yaml.NewDecoder(bytes.NewReader(content)).Decode(into)
		if errors.Is(err, io.EOF) { // nothing but comments
			err = nil
		}
	}
	if err != nil {
		return false, wrongNote(name, err)
	}
	return true, nil
}

func wrongNote(name string, err error) error {
	return diag.Wrap("read "+name, err, "bring the file back as it was committed: it tells which management cluster lives")
}

// UnnotedEnd returns the cluster that the fleet repo names as the management cluster called name, if no note says that it has ended. It
// returns "" otherwise, and if the repo names none.
func (r *Repo) UnnotedEnd(name string) (string, error) {
	m, err := r.managementCluster(name)
	if err != nil {
		return "", err
	}
	files, err := within.FS(r.Dir)
	if err != nil {
		return "", err
	}
	made, err := ReadManagementID(files, m.Layout())
	if err != nil || made == nil {
		return "", err
	}
	if ended, err := Ended(files, m.Layout(), name, made); err != nil || ended {
		return "", err
	}
	return made.UID, nil
}
