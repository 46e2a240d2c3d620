package state

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
	"github.com/fleetctl/fleetctl/pkg/within"
)

const (
	// madeDir holds, for each management cluster, which clusters this machine has made under its name, oldest first. They outlive the record.
	madeDir = "made"
	// mostMade bounds how many of them are kept, and maxMade what is read of a file.
	mostMade = 100
	maxMade  = 16 << 10
)

// NoteMade keeps in mind that this machine has made the management cluster of a fleet, by the fleet's identity and the cluster's UID.
func (c Cluster) NoteMade(fleet, uid string) error {
	path := c.noteFile(madeDir, fleet)
	if path == "" || uid == "" {
		return nil
	}
	all := c.made(fleet)
	if slices.Contains(all, uid) {
		return nil
	}
	all = append(all, uid)
	if err := c.store().privateFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(strings.Join(all[max(0, len(all)-mostMade):], "\n")+"\n"), 0o600)
}

// HasMade tells whether this machine has made the cluster with a UID as this management cluster of a fleet.
func (c Cluster) HasMade(fleet, uid string) bool {
	return uid != "" && slices.Contains(c.made(fleet), uid)
}

// LastMade is the UID of the last cluster that this machine has made as this management cluster of a fleet; "" if it has made none.
func (c Cluster) LastMade(fleet string) string {
	all := c.made(fleet)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1]
}

// made is what NoteMade has noted. A note that cannot be read is none: then nothing is known to be this machine's.
func (c Cluster) made(fleet string) []string {
	path := c.noteFile(madeDir, fleet)
	if path == "" {
		return nil
	}
	content, err := within.Named(path, maxMade)
	if err != nil {
		return nil
	}
	return strings.Fields(string(bytes.ToValidUTF8(content, nil)))
}

// store is the store that has the folder.
func (c Cluster) store() Store { return Store{Dir: filepath.Dir(filepath.Dir(c.Dir))} }

// noteFile is the file of a note about the management cluster of a fleet that outlives its folder. It is "" for a fleet without an
// identity, because another fleet may have its name, and for what is no identity.
func (c Cluster) noteFile(dir, fleet string) string {
	if fleet == "" || strings.Trim(fleet, "0123456789abcdef-") != "" {
		return ""
	}
	return filepath.Join(c.store().Dir, dir, fleet, c.Name)
}
