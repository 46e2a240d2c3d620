package conversion

import (
	"bytes"
	"runtime"
)

// eolAction is what git does about the line ends of a file. The actions are those of git's convert.c. The "auto" actions apply only if the
// content is text.
type eolAction int

const (
	eolNone      eolAction = iota // no conversion
	eolInput                      // LF in commits, untouched on disk
	eolCRLF                       // LF in commits, CRLF on disk
	eolAutoInput                  // as eolInput, for text
	eolAutoCRLF                   // as eolCRLF, for text
)

// endings returns what git does about the line ends of a file with these attributes.
func (s Settings) endings(a Attributes) eolAction {
	text := a.text
	switch text {
	case isSet, unset, "auto", "input":
	default:
		text = a.crlf // the old name of the attribute
	}
	switch text {
	case unset:
		return eolNone
	case "auto":
		switch a.eol {
		case "lf":
			return eolAutoInput
		case "crlf":
			return eolAutoCRLF
		}
		if s.writesCRLF() {
			return eolAutoCRLF
		}
		return eolAutoInput
	case "input":
		if a.eol != "crlf" {
			return eolInput
		}
	}
	switch {
	case a.eol == "lf":
		return eolInput
	case a.eol == "crlf":
		return eolCRLF
	case text == isSet && s.writesCRLF():
		return eolCRLF
	case text == isSet:
		return eolInput
	case s["core.autocrlf"] == "input":
		return eolAutoInput
	case s.On("core.autocrlf"):
		return eolAutoCRLF
	}
	return eolNone
}

// writesCRLF tells whether git writes CRLF to disk for text whose attributes do not name line ends.
func (s Settings) writesCRLF() bool {
	switch {
	case s["core.autocrlf"] == "input":
		return false
	case s.On("core.autocrlf"), s["core.eol"] == "crlf":
		return true
	}
	return s["core.eol"] != "lf" && runtime.GOOS == "windows"
}

func (a eolAction) auto() bool { return a == eolAutoInput || a == eolAutoCRLF }

// lineStats are the counts by which git tells text from binary content.
type lineStats struct{ crlf, loneCR, loneLF, nul, printable, nonPrintable int }

func countLines(content []byte) lineStats {
	var s lineStats
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case c == '\r' && i+1 < len(content) && content[i+1] == '\n':
			s.crlf++
			i++
		case c == '\r':
			s.loneCR++
		case c == '\n':
			s.loneLF++
		case c == 0x7f:
			s.nonPrintable++
		case c == '\b' || c == '\t' || c == 0x1b || c == '\f':
			s.printable++
		case c < ' ':
			if c == 0 {
				s.nul++
			}
			s.nonPrintable++
		default:
			s.printable++
		}
	}
	if n := len(content); n > 0 && content[n-1] == 0x1a { // DOS ends a text file with this byte
		s.nonPrintable--
	}
	return s
}

func (s lineStats) binary() bool {
	return s.loneCR > 0 || s.nul > 0 || s.printable>>7 < s.nonPrintable
}

// toLF converts content to the form of a commit. was is the content in the commit before: if git guesses that the file is text, and was has
// CRLF, git does not convert the file.
func (a eolAction) toLF(content, was []byte) []byte {
	if a == eolNone || len(content) == 0 {
		return content
	}
	s := countLines(content)
	if s.crlf == 0 {
		return content
	}
	if a.auto() && (s.binary() || hasCRLF(was)) {
		return content
	}
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
}

// hasCRLF tells whether content has CRLF, and git takes it for text.
func hasCRLF(content []byte) bool {
	s := countLines(content)
	return !s.binary() && s.crlf > 0
}

// LikeThere returns content with the line ends of the file on disk. It returns false if the file mixes line ends, or if content has the
// same line ends already.
func LikeThere(content, disk []byte) ([]byte, bool) {
	there, now := countLines(disk), countLines(content)
	lf := bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	switch {
	case there.crlf > 0 && there.loneLF == 0 && there.loneCR == 0 && now.loneLF > 0:
		return bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n")), true
	case there.loneLF > 0 && there.crlf == 0 && now.crlf > 0:
		return lf, true
	}
	return nil, false
}

// toDisk converts content of a commit to the form on disk.
func (a eolAction) toDisk(content []byte) []byte {
	if a != eolCRLF && a != eolAutoCRLF {
		return content
	}
	s := countLines(content)
	if s.loneLF == 0 || a.auto() && (s.loneCR > 0 || s.crlf > 0 || s.binary()) {
		return content
	}
	out := make([]byte, 0, len(content)+s.loneLF)
	for i, c := range content {
		if c == '\n' && (i == 0 || content[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}
