package preflight

import (
	"fmt"
	"os"

	"github.com/fleetctl/fleetctl/pkg/host/engine"
)

func checkInotify(engine.Name) Result { return judgeInotify(os.DirFS("/")) }

func checkKernel(name engine.Name) Result { return judgeKernel(name, os.DirFS("/")) }

func portHint(port uint16) string {
	return fmt.Sprintf(`"sudo ss -ltnp 'sport = :%d'" shows who uses it`, port)
}
