package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/plain"
)

// The maximum length of a comment: GitHub accepts 65,536 characters, GitLab a million. The impact comes first, and as
// many differences as fit.
const (
	maxComment = 60_000
	maxImpacts = 100
	// maxWords and maxCauses bound the table and the list of problems. A name in a repo is as long as its author likes,
	// and the forge would reject a comment that is too long.
	maxWords, maxCauses = 25_000, 45_000
	maxText             = 300
)

// Markdown is the report as a comment on a pull request: first the impact, then the difference, folded away. It never exceeds the length
// that forges accept.
func (r *Report) Markdown() string {
	var b strings.Builder
	b.WriteString("### What this does to the fleet\n\n")
	if len(r.Impact) == 0 {
		b.WriteString(r.Unchanged() + "\n")
	} else {
		b.WriteString("| | Environment | Impact |\n|---|---|---|\n")
	}
	for n, i := range r.Impact {
		row := fmt.Sprintf("| %s | %s | %s |\n", mark(i), cell(cut(i.Environment, maxText)), cell(cut(i.Summary, maxText)))
		if n == maxImpacts || b.Len()+len(row) > maxWords {
			fmt.Fprintf(&b, "| | | and %d more |\n", len(r.Impact)-n)
			break
		}
		b.WriteString(row)
	}
	for _, o := range r.objections() {
		fmt.Fprintf(&b, "\n**%s**\n", o.comment)
	}
	if n := len(r.Problems); n > 0 {
		fmt.Fprintf(&b, "\n**%s: what they are about is not compared.**\n\n", plain.Count(n, "problem"))
		for i, f := range r.Problems {
			line := fmt.Sprintf("- %s\n", plain.Markdown(cut(f.String(), maxText)))
			if i == maxImpacts || b.Len()+len(line) > maxCauses {
				fmt.Fprintf(&b, "- and %d more\n", n-i)
				break
			}
			b.WriteString(line)
		}
	}
	r.folded(&b)
	return b.String()
}

// folded returns as many differences as fit. Generated objects come last, so that they leave the room to those that people read.
func (r *Report) folded(b *strings.Builder) {
	if len(r.Objects) == 0 {
		return
	}
	fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n", plain.Count(len(r.Objects), "changed object"))
	left := 0
	generated := r.Generated()
	ofPeople, ofPrograms := []string{}, []string{}
	for i := range r.Objects {
		if generated[r.Objects[i].File] == "" {
			ofPeople = append(ofPeople, r.Objects[i].Diff)
		} else {
			ofPrograms = append(ofPrograms, r.Objects[i].Diff)
		}
	}
	for _, diff := range slices.Concat(ofPeople, ofPrograms) {
		block := plain.Fenced("diff", diff)
		if b.Len()+len(block)+200 > maxComment {
			left++
			continue
		}
		b.WriteString(block)
	}
	if left > 0 {
		fmt.Fprintf(b, "\n%s not shown: the comment would be too long. `fleetctl diff` shows everything.\n", plain.Count(left, "more object"))
	}
	b.WriteString("\n</details>\n")
}

// mark highlights what cannot be undone.
func mark(i Impact) string {
	switch i.Kind {
	case ImpactDeleteCluster, ImpactUnprotect, ImpactRemovePool:
		return ":red_circle:"
	case ImpactReplaceMachines, ImpactUpgrade:
		return ":orange_circle:"
	case ImpactScale, ImpactLimits, ImpactAddCluster, ImpactAddPool, ImpactOther:
	}
	return ""
}

// cell escapes text for a cell of a table, because anybody can choose names in the repo.
func cell(text string) string {
	return strings.ReplaceAll(plain.Markdown(text), "|", `\|`)
}

func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
