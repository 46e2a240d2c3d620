package fleetrepo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/within"
)

// IdentityFile holds the identity of the fleet, at the top of its repo. A management cluster recognizes its fleet by
// this identity, because names may be equal and remotes may move. The identity has its own file, because people write
// and copy fleet.yaml.
const IdentityFile = "fleet.id"

const identityHead = `# The identity of this fleet, made once by "fleetctl init": its management clusters know it. It stays the same wherever this repository moves.
# Delete this file in a copy that is to be a fleet of its own.
`

var validIdentity = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ValidIdentity tells whether id can be the identity of a fleet.
func ValidIdentity(id string) bool { return validIdentity.MatchString(id) }

// IdentityContent returns the content of a fleet's IdentityFile.
func IdentityContent(id string) []byte { return []byte(identityHead + id + "\n") }

// maxIdentityFile bounds how much is read of a file that a stranger may have written.
const maxIdentityFile = 4 << 10

// ReadIdentity returns the identity of the fleet whose repo is at root; "" if it has none yet.
func ReadIdentity(root string) (string, error) {
	path := filepath.Join(root, IdentityFile)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	wrong := func(what string) error {
		return diag.Errorf("restore the committed file; delete it in a copy that is to become a separate fleet", "%s %s", path,
			what)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("read the identity of the fleet: %w", err)
	case !info.Mode().IsRegular() || info.Size() > maxIdentityFile:
		return "", wrong("is no file with the identity of a fleet")
	}
	content, err := within.ReadFile(root, IdentityFile, maxIdentityFile)
	if err != nil {
		return "", fmt.Errorf("read the identity of the fleet: %w", err)
	}
	var id string
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case id != "":
			return "", wrong("holds more than one identity")
		default:
			id = line
		}
	}
	if !ValidIdentity(id) {
		return "", wrong("holds no identity of a fleet")
	}
	return id, nil
}
