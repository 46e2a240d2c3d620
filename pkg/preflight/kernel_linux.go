package preflight

import (
	"fmt"
	"os"
)

func checkInotify() Result { return judgeInotify(os.DirFS("/")) }

func checkKernel() Result { return judgeKernel(os.DirFS("/")) }

func portHint(port uint16) string {
	return fmt.Sprintf(`"sudo ss -ltnp 'sport = :%d'" shows who uses it`, port)
}
