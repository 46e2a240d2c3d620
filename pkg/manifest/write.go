package manifest

import (
	"io/fs"
)

// defaultMode is what a new file gets, less the umask.
const defaultMode fs.FileMode = 0o644
