// Package snapshot stores the objects of a management cluster in one encrypted file that outlives it. The file has the objects with their
// status, and the facts that decide whether they may be restored. Places keep such files.
package snapshot

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/fleetctl/fleetctl/pkg/capi"
	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/secret"
)

// formatVersion of the file. A newer fleetctl that writes another one reads this one.
const formatVersion = "1"

// maxSize bounds a snapshot once it is unpacked: 200 clusters take about 20 MiB.
const maxSize = 2 << 30

// Snapshot is what a management cluster managed at some moment.
type Snapshot struct {
	FormatVersion string `json:"formatVersion"`
	// ID is the unique name of the snapshot in a place, and its order there: see Turn. It begins with the time at which the snapshot was
	// taken, or with a later time if another machine's clock is ahead.
	ID string `json:"id"`
	// Taken is when the snapshot was taken, by the clock of the machine that took it.
	Taken time.Time `json:"taken"`
	// By names the user and the machine that took the snapshot, for people to read.
	By string `json:"by"`
	// Fleet is the identity of the fleet, FleetName its name.
	Fleet     string `json:"fleet"`
	FleetName string `json:"fleetName"`
	// ManagementCluster is the name of the management cluster, and UID the UID of its namespace kube-system.
	ManagementCluster string `json:"managementCluster"`
	UID               string `json:"uid"`
	// Epoch counts the hand-overs of the work before the snapshot.
	Epoch int64 `json:"epoch"`
	// Providers are the installed providers, in the form "core provider cluster-api v1.14.2".
	Providers []string `json:"providers"`
	// Clusters are all Clusters, and Available the Clusters that were Available, as NAMESPACE/NAME.
	Clusters  []string `json:"clusters"`
	Available []string `json:"available"`
	// Counts of the objects by kind.
	Counts map[string]int `json:"counts"`
	// HandedOver names the management cluster that has taken over. Such a snapshot has no objects, and nothing may be restored from its
	// place any more.
	HandedOver string `json:"handedOver,omitempty"`
	// HandedOverUID is set if a standby takes over: the UID of the standby's namespace kube-system. The standby's journal tells whether it
	// has taken over.
	HandedOverUID string `json:"handedOverUID,omitempty"`

	Objects []capi.Portable `json:"objects,omitempty"`
}

// idTime is how an ID begins: when the snapshot was taken, in UTC.
const idTime = "20060102T150405Z"

// NewID is the name of a snapshot taken then. Names sort by time.
func NewID(taken time.Time) string {
	return taken.UTC().Format(idTime) + "-" + strings.ToLower(rand.Text()[:6])
}

// TimeOf is the time with which that ID begins, to the second; the zero time where NewID has not made the ID.
func TimeOf(id string) time.Time {
	text, _, _ := strings.Cut(id, "-")
	taken, err := time.Parse(idTime, text)
	if err != nil {
		return time.Time{}
	}
	return taken
}

// idPattern is what NewID makes; an ID is also part of a file's name.
var idPattern = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[a-z0-9]{6}$`)

// ValidID tells whether NewID could have made it.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// Seal encrypts the snapshot for the keys; see secret.Keys.Seal.
func (s *Snapshot) Seal(keys secret.Keys) ([]byte, error) {
	s.FormatVersion = formatVersion
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	err := errors.Join(json.NewEncoder(zip).Encode(s), zip.Close())
	if err != nil {
		return nil, fmt.Errorf("encode the snapshot %s: %w", s.ID, err)
	}
	return keys.Seal(packed.Bytes())
}

// Open decrypts a file of Seal. The error names the missing key, or what is wrong with the file.
func Open(sealed []byte, keys secret.Keys) (*Snapshot, error) {
	packed, err := keys.Open(sealed)
	switch {
	case errors.Is(err, secret.ErrNoKey):
		return nil, diag.Wrap("decrypt", err, "give the fleet's age key: --age-key-file, or the environment variable SOPS_AGE_KEY_FILE")
	case errors.Is(err, secret.ErrForged):
		return nil, diag.Wrap("decrypt", err, "somebody without the fleet's private key has made it: find out who can write there")
	case err != nil:
		return nil, err
	}
	s, err := decode(packed)
	return s, diag.Wrap("read the snapshot", err, "the file is damaged, or of another release of fleetctl")
}

func decode(packed []byte) (*Snapshot, error) {
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	limited := &io.LimitedReader{R: zip, N: maxSize}
	s := &Snapshot{}
	err = json.NewDecoder(limited).Decode(s)
	switch {
	case limited.N <= 0:
		return nil, fmt.Errorf("it is larger than %d MiB", maxSize>>20)
	case err != nil:
		return nil, err
	case s.FormatVersion != formatVersion:
		return nil, fmt.Errorf("it has format %q, and this release reads %q", s.FormatVersion, formatVersion)
	case !ValidID(s.ID):
		return nil, fmt.Errorf("it is called %.60q", s.ID)
	}
	return s, nil
}
