package refused

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// times are the fields of a schedule, with the least and the greatest number of each, and words for them.
var times = []struct {
	name        string
	least, most int
	words       string
}{
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of the month", 1, 31, ""},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{"day of the week", 0, 6, "sun mon tue wed thu fri sat"},
}

// badSchedule says what is wrong with the schedule of a CronJob, "" if nothing is.
func badSchedule(text string) string {
	if strings.HasPrefix(text, "@") {
		if words := []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}; !slices.Contains(words, text) &&
			!strings.HasPrefix(text, "@every ") {
			return fmt.Sprintf("%.80q is no schedule", text)
		}
		return ""
	}
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		return "it has a time zone: that belongs into timeZone"
	}
	fields := strings.Fields(text)
	if len(fields) != len(times) {
		return fmt.Sprintf("%.80q has %d fields, and a schedule has %d", text, len(fields), len(times))
	}
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !goodTime(item, i) {
				return fmt.Sprintf("%.80q is no %s", item, times[i].name)
			}
		}
	}
	return ""
}

// goodTime tells whether an item of a field is a number, a range or all of them, with or without a step.
func goodTime(item string, field int) bool {
	span, step, stepped := strings.Cut(item, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
		return false
	}
	if span == "*" || span == "?" {
		return true
	}
	from, to, ranged := strings.Cut(span, "-")
	first, ok := timeOf(from, field)
	if !ok || !ranged {
		return ok
	}
	last, ok := timeOf(to, field)
	return ok && first <= last
}

func timeOf(text string, field int) (int, bool) {
	of := times[field]
	if i := slices.Index(strings.Fields(of.words), strings.ToLower(text)); i >= 0 {
		return i + of.least, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= of.least && n <= of.most
}
