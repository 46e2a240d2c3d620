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

// ManagementID identifies the cluster behind the name of a management cluster, because a name is used again after a teardown or on another
// machine. Every init writes it to the fleet repo. If another machine finds a different ManagementID there than it knows, somebody has made
// the management cluster again.
type ManagementID struct {
	// UID of the namespace kube-system.
	UID string `yaml:"uid"`
	// At is the time of the first record, By the user and machine, and Fleetctl the version of fleetctl. They are for people.
	At       string `yaml:"at"`
	By       string `yaml:"by"`
	Fleetctl string `yaml:"fleetctl"`
}

// NewManagementID returns the ManagementID of a cluster that a run has made, or has found without one.
func NewManagementID(uid string, run *HandedOver) ManagementID {
	return ManagementID{UID: uid, At: run.At.UTC().Format(time.RFC3339), By: run.By, Fleetctl: run.Version}
}

// String says when the cluster was recorded, and by whom.
func (m *ManagementID) String() string { return fmt.Sprintf("%s, %s", m.At, m.By) }

// Content returns the content of the file layout.Identity.
func (m *ManagementID) Content(name string) ([]byte, error) {
	content, err := yaml.Marshal(m)
	head := "# Which cluster the management cluster " + name + " is: uid is that of its namespace kube-system. fleetctl keeps this\n" +
		"# file. With it fleetctl on another machine knows whether it knows this management cluster, and makes no second one.\n"
	return append([]byte(head), content...), err
}

// maxManagementID bounds the bytes that are read of the file, which a stranger may have written.
const maxManagementID = 4 << 10

// validUID matches the UIDs of API servers, and other harmless texts.
var validUID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// ReadManagementID reads the ManagementID of a management cluster from the files of a fleet repo. It returns nil if there is none.
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

// Ended tells whether the fleet repo has a note that the management cluster called name has ended. The note must be about the cluster made,
// which is the repo's ManagementID, or nil. A note of an older fleetctl does not tell which cluster has ended, and counts for every
// cluster.
func Ended(repo fs.FS, at layout.Layout, name string, made *ManagementID) (bool, error) {
	var note struct {
		Ended endedEntry `yaml:"ended"`
	}
	there, err := readNote(repo, at.Ended(name), &note)
	return there && (note.Ended.UID == "" || made == nil || note.Ended.UID == made.UID), err
}

// HasEnded tells whether the fleet repo says that the management cluster called name has ended, and says so of the very cluster that it
// names as this management cluster.
func (r *Repo) HasEnded(name string) (bool, error) {
	m, err := r.managementCluster(name)
	if err != nil {
		return false, err
	}
	files, err := within.FS(r.Dir)
	if err != nil {
		return false, err
	}
	made, err := ReadManagementID(files, m.Layout())
	if err != nil || made == nil {
		return false, err
	}
	var note struct {
		Ended endedEntry `yaml:"ended"`
	}
	_, err = readNote(files, m.Layout().Ended(name), &note)
	return note.Ended.UID == made.UID, err
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
		if errors.Is(err, io.EOF) { // the file has only comments
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

// UnnotedEnd returns the UID of the management cluster called name in the fleet repo, if no note says that it has ended. Otherwise it
// returns "", and also if the repo has no ManagementID for it.
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
