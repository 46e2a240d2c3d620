package clustertemplate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// lines are many of them, each made with its number.
func lines(n int, line func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i))
	}
	return b.String()
}

// filled is a template with a document of comments in front that makes it as large as a template may be.
func filled(template string) string {
	const line = "# as large as may be\n"
	return strings.Repeat(line, max(500_000-len(template), 0)/len(line)) + "---\n" + template
}

// What a template costs grows with its size, and not with the square of it, whatever it is full of. A template that is eight times as large
// takes some eight times as long, and would take up to sixty-four times. It has to be slow each time as well, so that a busy machine is not
// taken for a square.
func TestHostileTemplates(t *testing.T) {
	const most, least, times = 16, 5 * time.Second, 3
	for _, c := range []struct {
		name string
		full int
		make func(n int) string
	}{
		{"a run of x", 500_000, func(n int) string { return one("# xfleetvar" + strings.Repeat("x", n) + "\n") }},
		{"a run of x, and variables", 50_000, func(n int) string {
			return one("# xfleetvar" + strings.Repeat("x", n) + "\n" + strings.Repeat("# ${A}\n", n))
		}},
		{"names of tokens", 30_000, func(n int) string {
			return one(lines(n, func(i int) string {
				return fmt.Sprintf("# xfleetvar%c%c%c%c\n", 'a'+i/17576%26, 'a'+i/676%26, 'a'+i/26%26, 'a'+i%26)
			}))
		}},
		{"names", 50_000, func(n int) string { return one(lines(n, func(i int) string { return fmt.Sprintf("#${A%x}\n", i) })) }},
		{"values", 20_000, func(n int) string {
			return one("x:\n" + lines(n, func(i int) string { return fmt.Sprintf("- ${A%x}\n", i) }))
		}},
		{"scalars", 22_000, func(n int) string { return one("x:\n" + strings.Repeat("- ${A}\n", n)) }},
		{"scalars on one line", 22_000, func(n int) string { return one("x: [" + strings.Repeat("${A},", n) + "é]\n") }},
		{"a scalar of variables", 22_000, func(n int) string { return one("x: a" + strings.Repeat("${A}", n) + "\n") }},
		{"a block", 22_000, func(n int) string { return one("x: |\n" + strings.Repeat("  ${A}\n", n)) }},
		{"a block of one line", 22_000, func(n int) string { return one("x: |\n  " + strings.Repeat("${A}", n) + "\n") }},
		{"a block far to the right", 20_000, func(n int) string {
			return one("x: |\n" + strings.Repeat(" ", 4*n) + strings.Repeat("${A}", n) + "\n")
		}},
		{"a comment", 22_000, func(n int) string { return one("x: 1 # " + strings.Repeat("${A}", n) + "\n") }},
		{"a tag", 22_000, func(n int) string { return one("x: !" + strings.Repeat("${A}", n) + " a\n") }},
		{"other defaults", 20_000, func(n int) string {
			return one("x:\n" + lines(n, func(i int) string { return fmt.Sprintf("- ${A:=%x}\n", i) }))
		}},
		{"a default of variables", 100_000, func(n int) string { return one("x: ${A:=" + strings.Repeat("${B}", n) + "}\n") }},
		{"a default in a default", 60_000, func(n int) string {
			return one("x: " + strings.Repeat("${A:=", n) + strings.Repeat("}", n) + "\n")
		}},
		{"a list of lists as a default", 100_000, func(n int) string {
			return one("x: ${A:=" + strings.Repeat("[", n) + strings.Repeat("]", n) + "}\n")
		}},
		{"dollars", 200_000, func(n int) string { return one("# " + strings.Repeat("$$", n) + "\n") }},
		{"documents", 4_000, func(n int) string {
			return cluster + strings.Repeat("---\napiVersion: v1\nkind: C\nx: ${A}\n", n)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			took := func(n int) time.Duration {
				template := filled(c.make(n))
				begin := time.Now()
				_, err := translate(template)
				took := time.Since(begin)
				t.Logf("%d of %d bytes: %v %.200v", n, len(template), took, err)
				return took
			}
			for range times {
				whole := took(c.full)
				if whole <= least {
					return
				}
				if part := took(c.full / 8); whole <= most*part {
					return
				}
			}
			t.Error("each time it took far more than its size says")
		})
	}
}
