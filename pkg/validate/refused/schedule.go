package refused

import (
	"fmt"
	"strings"

	"github.com/robfig/cron/v3"
)

// badSchedule says what is wrong with the schedule of a CronJob; "" if nothing is. It parses schedules with the API server's library. It
// refuses a time zone first, because the library panics if nothing follows the time zone.
func badSchedule(text string) string {
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return "it has a time zone: that belongs into timeZone"
	}
	if _, err := cron.ParseStandard(text); err != nil {
		return fmt.Sprintf("%.80q is no schedule: %.160s", text, err)
	}
	return ""
}
