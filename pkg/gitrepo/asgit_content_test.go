package gitrepo_test

import (
	"strings"
)

const upper = "[filter \"upper\"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n\trequired = true\n"

// contentSetUps convert the content of files between the commit and the disk: attributes, ends of lines, encodings, filters.
var contentSetUps = map[string]setUp{
	"plain": {},
	"attributes in a folder": {
		config: upper, files: map[string]string{".gitattributes": "*.yaml text eol=crlf\n", "top/.gitattributes": "*.yaml -text filter=upper\n"},
	},
	"attributes in a folder of another": {files: map[string]string{
		"top/.gitattributes":   "x.yaml eol=crlf\n",
		"other/.gitattributes": "* filter=none\n",
	}},
	"a macro": {
		config: upper,
		files:  map[string]string{".gitattributes": "[attr]secret filter=upper diff=upper\ntop/** secret\n"},
	},
	"a macro in a folder is none": {
		config: upper,
		files:  map[string]string{"top/.gitattributes": "[attr]secret filter=upper\nx.yaml secret\n"},
	},
	"a macro taken back": {
		config: upper,
		files:  map[string]string{".gitattributes": "[attr]secret filter=upper\n*.yaml secret\n", "top/.gitattributes": "x.yaml !filter\n"},
	},
	"info/attributes": {config: upper, before: file(".git/info/attributes", "*.yaml filter=upper\n")},
	"info/attributes against a folder's": {
		config: upper, files: map[string]string{"top/.gitattributes": "*.yaml filter=upper\n"},
		before: file(".git/info/attributes", "top/x.yaml -filter\n"),
	},
	"core.attributesFile": {config: upper + "[core]\n\tattributesFile = ~/attributes\n"},
	"core.attributesFile in the work tree": {
		config: upper,
		before: all(file("mine", "*.yaml eol=crlf\n"), git("config", "core.attributesFile", "mine")),
	},
	"autocrlf true":  {config: "[core]\n\tautocrlf = true\n"},
	"autocrlf input": {config: "[core]\n\tautocrlf = input\n"},
	"autocrlf input, CRLF on disk": {
		config: "[core]\n\tautocrlf = input\n",
		after:  file("top/x.yaml", strings.ReplaceAll(body, "\n", "\r\n")),
	},
	"safecrlf": {config: "[core]\n\tautocrlf = true\n\tsafecrlf = true\n"},
	"safecrlf, CRLF in the commit": {
		config: "[core]\n\tsafecrlf = true\n",
		files:  map[string]string{"top/x.yaml": strings.ReplaceAll(body, "\n", "\r\n"), ".gitattributes": "*.md text\n"},
	},
	"eol=crlf": {files: map[string]string{".gitattributes": "* text eol=crlf\n"}},
	"UTF-16": {files: map[string]string{
		".gitattributes": "top/x.yaml working-tree-encoding=UTF-16\n",
		"top/x.yaml":     utf16le(body),
	}},
	"a filter that goes on running": {
		config: longRunning("required = true"),
		files:  map[string]string{".gitattributes": "top/* filter=long\n"},
	},
	"a filter that goes on running, not required": {
		config: longRunning(""),
		files:  map[string]string{".gitattributes": "*.yaml filter=long\n"},
	},
	"a filter that goes on running, and clean": {
		config: longRunning("clean = false\n\tsmudge = false"),
		files:  map[string]string{".gitattributes": "*.yaml filter=long\n"},
	},
}
