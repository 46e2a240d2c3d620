package state

import (
	"os"
	"path/filepath"
	"time"

	"github.com/fleetctl/fleetctl/pkg/atomicfile"
)

// endedDir holds a note for each management cluster that this machine has made and ended. No record is left of these.
const endedDir = "ended"

// NoteEnded keeps in mind that this machine has ended the management cluster of a fleet, by its identity. Save forgets it again.
func (c Cluster) NoteEnded(fleet string) error {
	path := c.endedFile(fleet)
	if path == "" {
		return nil
	}
	if err := c.store().privateFolder(filepath.Dir(path)); err != nil {
		return err
	}
	return atomicfile.Write(path, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600)
}

// Ended tells whether this machine has made the management cluster of a fleet, and ended it, and knows of no later one.
func (c Cluster) Ended(fleet string) bool {
	path := c.endedFile(fleet)
	if path == "" {
		return false
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// forgetEnded removes the note, because there is a management cluster of that fleet and name again.
func (c Cluster) forgetEnded(fleet string) error {
	path := c.endedFile(fleet)
	if path == "" {
		return nil
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return nil
}

// endedFile is the file of the note.
func (c Cluster) endedFile(fleet string) string { return c.noteFile(endedDir, fleet) }
