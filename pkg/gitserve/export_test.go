package gitserve

import (
	"log/slog"
	"net/http"
)

// Handler serves the repository in repoDir read-only at RepoPath, to clients with the credentials. repoDir is a working tree or a bare
// repository. The handler needs git (see CheckGit). It logs failures to log; nil discards them.
func Handler(repoDir string, credentials Credentials, log *slog.Logger) http.Handler {
	return newHandler(repoDir, credentials, log)
}
