package fleetrepo

import "io/fs"

// promotion is a move of a channel to a tag; empty, it moves no channel.
type promotion struct {
	// tag is empty where the channel stays where it is.
	tag string
	// cluster, if not empty, is the only management cluster to change.
	cluster string
	// files are those of the tag.
	files fs.FS
}

// brings tells whether the tag has a folder that environments of a channel of tags are applied from.
func (p promotion) brings(dir string) bool {
	if p.files == nil {
		return false
	}
	_, err := fs.Stat(p.files, dir)
	return err == nil
}
