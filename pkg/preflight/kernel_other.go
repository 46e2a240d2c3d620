//go:build !linux

package preflight

import (
	"fmt"
	"runtime"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

func checkInotify(engine.Name) Result { return Skip("not a matter of %s", runtime.GOOS) }

func checkKernel(engine.Name) Result { return Skip("not a matter of %s", runtime.GOOS) }

func portHint(port uint16) string {
	if runtime.GOOS == "windows" {
		return fmt.Sprintf(`"Get-NetTCPConnection -LocalPort %d" shows who uses it`, port)
	}
	return fmt.Sprintf(`"lsof -nP -iTCP:%d -sTCP:LISTEN" shows who uses it`, port)
}
