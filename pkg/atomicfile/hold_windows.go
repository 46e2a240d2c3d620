package atomicfile

import (
	"io/fs"
	"os"
)

// Nothing that is open can be renamed or removed there: what a process is writing cannot be swept, and what is written is soon in its
// place.

func hold(*os.File) bool { return true }

func heldByOthers(*os.File) bool { return false }

func abandoned(*os.File) bool { return true }

func mine(fs.FileInfo) bool { return true }

const holdsOpen = false
