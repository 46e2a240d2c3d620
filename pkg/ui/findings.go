package ui

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/fleetctl/fleetctl/pkg/diag"
	"github.com/fleetctl/fleetctl/pkg/plain"
	"github.com/fleetctl/fleetctl/pkg/version"
)

// PrintFindings prints findings for a person. Each finding is a line that begins with the place, so that editors and terminals make a link
// of it. The same finding in many places is printed once, with the number of places.
func PrintFindings(s Streams, w io.Writer, findings diag.Findings) error {
	w = guarded(w)
	bold, bad, warn, dim := Painter(s, bold), Painter(s, Bad), Painter(s, Warn), Painter(s, Dim)
	for _, alike := range sumUp(findings) {
		f := alike[0]
		mark := bad("error:")
		if f.Severity != diag.SeverityError {
			mark = warn("warning:")
		}
		if _, err := Fprintf(w, "%s%s %s %s\n", bold(placeOf(f)), mark, plain.Clip(f.Summary, diag.MaxSummary), dim("["+f.Rule+"]")); err != nil {
			return err
		}
		if f.Hint != "" {
			_, _ = Fprintf(w, "    %s\n", f.Hint)
		}
		if more := alike[1:]; len(more) > 0 {
			var places []string
			for _, other := range more[:min(len(more), shownPlaces)] {
				places = append(places, strings.TrimSuffix(placeOf(other), ": "))
			}
			count := plain.Count(len(more), "more place")
			_, _ = Fprintf(w, "    and in %s, such as %s: -o json has all of them\n", count, strings.Join(places, ", "))
		}
	}
	return nil
}

// placeOf is the place of a finding, with what follows it.
func placeOf(f diag.Finding) string {
	return diag.Finding{File: f.File, Line: f.Line, Column: f.Column}.String()
}

const (
	// alikeFrom is how many findings say the same before they are summed up.
	alikeFrom = 4
	// shownPlaces is how many of the further places are named.
	shownPlaces = 3
)

// sumUp merges findings with the same text at several places into the first of them.
func sumUp(findings diag.Findings) []diag.Findings {
	type gist struct {
		severity         diag.Severity
		rule, text, hint string
	}
	of := func(f diag.Finding) gist { return gist{f.Severity, f.Rule, cmp.Or(f.Gist, f.Summary), f.Hint} }
	alike := map[gist]diag.Findings{}
	for _, f := range findings {
		alike[of(f)] = append(alike[of(f)], f)
	}
	said := map[gist]bool{}
	out := make([]diag.Findings, 0, len(findings))
	for _, f := range findings {
		switch all := alike[of(f)]; {
		case len(all) < alikeFrom:
			out = append(out, diag.Findings{f})
		case !said[of(f)]:
			said[of(f)] = true
			out = append(out, all)
		}
	}
	return out
}

// PrintAnnotations prints findings as GitHub's workflow commands: they appear at their lines in a pull request. prefix is the path of the
// files' top in the Git repository.
func PrintAnnotations(w io.Writer, prefix string, findings diag.Findings) error {
	w = guarded(w)
	for _, f := range findings {
		level := "error"
		if f.Severity != diag.SeverityError {
			level = "warning"
		}
		properties := []string{"file=" + escapeProperty(plain.Line(path.Join(prefix, f.File)))}
		if f.Line > 0 {
			properties = append(properties, fmt.Sprintf("line=%d", f.Line))
			if f.Column > 0 {
				properties = append(properties, fmt.Sprintf("col=%d", f.Column))
			}
		}
		properties = append(properties, "title="+escapeProperty("fleetctl: "+f.Rule))
		message := plain.Clip(f.Summary, diag.MaxSummary)
		if f.Hint != "" {
			message += "\n" + f.Hint
		}
		if _, err := fmt.Fprintf(w, "%s%s %s%s%s\n", plain.Command, level, strings.Join(properties, ","), plain.Command,
			escapeData(plain.Lines(message))); err != nil {
			return err
		}
	}
	return nil
}

// escapeData and escapeProperty are what actions/toolkit does: a line end would end the command, and begin another one.
func escapeData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func escapeProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

// The parts of SARIF 2.1.0 that findings need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Columns string        `json:"columnKind"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		InformationURI string      `json:"informationUri"`
		Version        string      `json:"version,omitempty"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID               string             `json:"id"`
		ShortDescription sarifMessage       `json:"shortDescription"`
		HelpURI          string             `json:"helpUri"`
		Default          sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex *int            `json:"ruleIndex,omitempty"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
)

const (
	projectURL = "https://github.com/fleetctl/fleetctl"
	rulesURL   = projectURL + "/blob/main/docs/validation.md"
)

// PrintSARIF prints findings as SARIF 2.1.0, which code scanning of Git servers reads. prefix is as in PrintAnnotations.
func PrintSARIF(w io.Writer, prefix string, rules []diag.Rule, findings diag.Findings) error {
	driver := sarifDriver{Name: "fleetctl", InformationURI: projectURL, Version: version.Get().Version, Rules: []sarifRule{}}
	index := map[string]int{}
	for i, r := range rules {
		index[r.ID] = i
		driver.Rules = append(driver.Rules, sarifRule{
			ID: r.ID, ShortDescription: sarifMessage{r.Summary}, HelpURI: rulesURL + "#" + r.ID, Default: sarifConfiguration{string(r.Severity)},
		})
	}
	results := []sarifResult{}
	for _, f := range findings {
		r := sarifResult{
			RuleID: f.Rule, Level: string(f.Severity), Message: sarifMessage{plain.Clip(f.Summary, diag.MaxSummary)},
			Locations: []sarifLocation{},
		}
		if i, ok := index[f.Rule]; ok {
			r.RuleIndex = &i
		}
		if f.Hint != "" {
			r.Message.Text += ". " + f.Hint
		}
		if f.File != "" {
			at := sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: path.Join(prefix, f.File)}).EscapedPath()}}
			if f.Line > 0 {
				at.Region = &sarifRegion{f.Line, f.Column}
			}
			r.Locations = append(r.Locations, sarifLocation{at})
		}
		results = append(results, r)
	}
	return writeJSON(w, sarifLog{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0",
		Runs: []sarifRun{{Tool: sarifTool{driver}, Columns: "utf16CodeUnits", Results: results}},
	})
}
