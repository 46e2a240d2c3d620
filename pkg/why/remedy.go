package why

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Remedy describes a cause and what to do about it. The page docs/remedies.md has all remedies.
type Remedy struct {
	// ID names the remedy. It is also the anchor on that page.
	ID string `json:"id"`
	// Title says what is wrong, in a few words.
	Title string `json:"title"`
	// Means explains the cause, and Do says what to do. Both are Markdown.
	Means string `json:"means"`
	Do    string `json:"do"`

	match    match
	examples []example
}

// match says which causes a remedy is for. All fields that are set have to fit.
type match struct {
	stages     []Stage
	conditions []string
	codes      []string
	// texts are regular expressions. One of them has to fit the message or the last warnings.
	texts []string
}

// example is a trouble in the words of a controller or a cloud.
type example struct {
	stage           Stage
	condition, code string
	text            string
}

// Page is the page that describes the remedies for people.
const Page = "docs/remedies.md"

// Catalogue has all remedies. Special ones come before general ones.
func Catalogue() []Remedy {
	return slices.Concat(fluxRemedies(), vsphereRemedies(), cloudRemedies(), clusterRemedies())
}

// patterns are the compiled expressions of the catalogue. They are compiled at the first use.
var patterns = sync.OnceValue(func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, r := range Catalogue() {
		for _, text := range r.match.texts {
			all[text] = regexp.MustCompile("(?i)" + text)
		}
	}
	return all
})

// remedyFor returns the first remedy of the catalogue that fits a trouble; nil if none does.
func remedyFor(l *Link, t Trouble, words []string) *Remedy {
	all := Catalogue()
	for i := range all {
		if all[i].match.fits(l.Stage, t, words) {
			return &all[i]
		}
	}
	return nil
}

func (m match) fits(stage Stage, t Trouble, words []string) bool {
	in := func(wanted []string, is string) bool { return len(wanted) == 0 || slices.Contains(wanted, is) }
	if len(m.stages) > 0 && !slices.Contains(m.stages, stage) || !in(m.conditions, t.Condition) || !in(m.codes, t.code) {
		return false
	}
	if len(m.texts) == 0 {
		return true
	}
	said := strings.Join(append([]string{t.code, t.Reason}, words...), "\n")
	return slices.ContainsFunc(m.texts, func(text string) bool { return patterns()[text].MatchString(said) })
}
