package gitrepo_test

// hookSetUps have hooks, or settings for the message of the commit.
var hookSetUps = map[string]setUp{
	"hooks elsewhere": {config: "[core]\n\thooksPath = ~/hooks\n"},
	"hooks below the top": {before: all(git("config", "core.hooksPath", ".hooks"),
		program(".hooks/pre-commit", "echo hooked >>top/x.yaml; git add top/x.yaml\n"), git("add", ".hooks"))},
	"a hook adds a file": {before: program(".git/hooks/pre-commit", "echo made >made; git add made\n")},
	"a hook removes a file": {
		files: map[string]string{"old": "1\n"},
		after: program(".git/hooks/pre-commit", "git rm -q old\n"),
	},
	"a hook stages by pattern":          {after: program(".git/hooks/pre-commit", "sed -i s/three/THREE/ top/x.yaml; git add -u\n")},
	"a hook changes and does not stage": {after: program(".git/hooks/pre-commit", "echo '# more' >>top/x.yaml; exit 0\n")},
	"prepare-commit-msg": {after: program(".git/hooks/prepare-commit-msg",
		`printf '%s %s\n# a comment\n' "$2" "$(cat "$1")" >"$1"`+"\n")},
	"commit.cleanup strip": {config: "[commit]\n\tcleanup = strip\n", message: "subject\n\n# gone\n; kept\n\n\nbody  \n"},
	"commit.cleanup and commentChar": {
		config:  "[commit]\n\tcleanup = strip\n[core]\n\tcommentChar = \";\"\n",
		message: "subject\n\n# kept\n; gone\nbody\n",
	},
	"commit.cleanup verbatim":    {config: "[commit]\n\tcleanup = verbatim\n", message: "subject\n\n\n\nbody  \n# kept\n"},
	"commit.cleanup scissors":    {config: "[commit]\n\tcleanup = scissors\n", message: "subject\n\nbody  \n# kept\n"},
	"commentChar":                {config: "[core]\n\tcommentChar = s\n", message: "subject\n\n# kept\n"},
	"a message with empty lines": {message: "\n\nsubject  \n\n\n\nbody\t\n\n"},
	"commit.template":            {config: "[commit]\n\ttemplate = ~/template\n"},
}
