package fleetrepo

import "io/fs"

// promotion is a move of a channel to a tag. The zero value moves no channel.
type promotion struct {
	// tag is empty if the channel does not move.
	tag string
	// cluster, if not empty, is the only management cluster to change.
	cluster string
	// files are the files of the tag.
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
