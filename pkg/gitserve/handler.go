package gitserve

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	// RepoPath is where the repository is on the server.
	RepoPath = "/fleet.git"
	// healthPath answers a request with the password by 204 and the server's identity.
	healthPath = "/healthz"

	infoRefs    = RepoPath + "/info/refs"
	packRequest = RepoPath + "/git-upload-pack"

	maxBody       = 8 << 20  // a request lists commits, at 50 bytes each
	maxPlain      = 32 << 20 // bytes of a request after gunzip
	maxConcurrent = 16       // git processes
	requestTime   = 15 * time.Minute
	stallTime     = time.Minute     // how long a client may neither send nor read anything
	killDelay     = 5 * time.Second // how long git may hold its pipes open after the request's end
)

// Credentials that a client has to send with HTTP Basic authentication.
type Credentials struct{ Username, Password string }

// URL returns the repository's https URL for clients that reach the server as host, a name or an address.
func URL(host string, port int) string {
	if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
		host = "[" + host + "]"
	}
	return (&url.URL{Scheme: "https", Host: host + ":" + strconv.Itoa(port), Path: RepoPath}).String()
}

// Handler serves one repository. NewHandler makes it.
type Handler struct {
	repoDir            string
	log                *slog.Logger
	slots              chan struct{}
	username, password [sha256.Size]byte
	identity           string // answers the health check, which tells this server from another one at its address
}

// NewHandler returns a Handler that serves the repository in repoDir read-only at RepoPath, to clients with the credentials. repoDir is a
// working tree or a bare repository. The handler needs git (see CheckGit). It logs failures to log; nil discards them.
func NewHandler(repoDir string, credentials Credentials, log *slog.Logger) *Handler {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Handler{
		repoDir: repoDir, log: log, slots: make(chan struct{}, maxConcurrent),
		username: sha256.Sum256([]byte(credentials.Username)), password: sha256.Sum256([]byte(credentials.Password)),
	}
}

// ServeHTTP answers the two requests of the Git protocol and the health check, and nothing else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	// A connection keeps the deadline of its last request, so each request sets a new one.
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
		h.log.Error("request failed", "error", err)
	}
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if !h.authorized(req) {
		w.Header().Set("WWW-Authenticate", `Basic realm="fleetctl", charset="UTF-8"`)
		http.Error(w, "credentials needed", http.StatusUnauthorized)
		return
	}
	switch at := req.Method + " " + req.URL.Path; at {
	case "GET " + healthPath:
		w.Header().Set(identityHeader, h.identity)
		w.WriteHeader(http.StatusNoContent)
	case "GET " + infoRefs:
		if req.URL.Query().Get("service") != "git-upload-pack" {
			http.Error(w, "this repository is read-only: commit in its folder", http.StatusForbidden)
			return
		}
		h.limited(w, req, h.advertise)
	case "POST " + packRequest:
		h.limited(w, req, h.pack)
	case "POST " + RepoPath + "/git-receive-pack":
		http.Error(w, "this repository is read-only: commit in its folder", http.StatusForbidden)
	default:
		http.NotFound(w, req)
	}
}

// authorized compares digests in constant time, so that its duration tells nothing about the credentials.
func (h *Handler) authorized(req *http.Request) bool {
	username, password, _ := req.BasicAuth()
	u, p := sha256.Sum256([]byte(username)), sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(u[:], h.username[:])&subtle.ConstantTimeCompare(p[:], h.password[:]) == 1
}

// limited runs serve for at most requestTime, and at most maxConcurrent of them at once. A client that disconnects ends its request.
func (h *Handler) limited(w http.ResponseWriter, req *http.Request, serve func(context.Context, *reply, *http.Request) error) {
	ctx, cancel := context.WithTimeout(req.Context(), requestTime)
	defer cancel()
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	case <-ctx.Done():
		return
	}
	out := &reply{ResponseWriter: w, control: http.NewResponseController(w)}
	err := serve(ctx, out, req)
	if err == nil || req.Context().Err() != nil {
		return
	}
	h.log.Error("request failed", "method", req.Method, "path", req.URL.Path, "client", req.RemoteAddr, "error", err)
	if out.begun {
		panic(http.ErrAbortHandler) // else the client would take half an answer for a whole one
	}
	if status, ok := errors.AsType[*statusError](err); ok {
		http.Error(w, status.text, status.code)
		return
	}
	http.Error(w, "the repository cannot be served; the server's log says why", http.StatusInternalServerError)
}

// statusError is the answer to a request that the client has to correct.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

func (h *Handler) advertise(ctx context.Context, w *reply, req *http.Request) error {
	protocol := protocolVersion(req.Header)
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	if protocol < 2 {
		w.preface = "001e# service=git-upload-pack\n0000"
	}
	return h.run(ctx, w, http.NoBody, protocol, true)
}

func (h *Handler) pack(ctx context.Context, w *reply, req *http.Request) error {
	if req.Header.Get("Content-Type") != "application/x-git-upload-pack-request" {
		return &statusError{http.StatusUnsupportedMediaType, "not a request of git-upload-pack"}
	}
	body, err := requestBody(w, req)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	return h.run(ctx, w, bytes.NewReader(body), protocolVersion(req.Header), false)
}

// requestBody reads the whole request, which is small, before git starts. So a slow client holds no git process.
func requestBody(w *reply, req *http.Request) ([]byte, error) {
	if err := w.control.SetReadDeadline(time.Now().Add(stallTime)); err != nil {
		return nil, err
	}
	body := io.Reader(http.MaxBytesReader(w, req.Body, maxBody))
	switch req.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip", "x-gzip":
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return nil, &statusError{http.StatusBadRequest, "the body is not gzip"}
		}
		body = unpacked
	default:
		return nil, &statusError{http.StatusUnsupportedMediaType, "unknown Content-Encoding"}
	}
	content, err := io.ReadAll(io.LimitReader(body, maxPlain+1))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large) || len(content) > maxPlain:
		return nil, &statusError{http.StatusRequestEntityTooLarge, "the request is too large"}
	case err != nil:
		return nil, &statusError{http.StatusBadRequest, "the request cannot be read"}
	}
	// From here on the server reads only to notice that the client disconnects. A read deadline would look like that.
	return content, w.control.SetReadDeadline(time.Time{})
}

func (h *Handler) run(ctx context.Context, w *reply, body io.Reader, protocol int, advertise bool) error {
	dir, err := gitDir(h.repoDir)
	if err != nil {
		return err
	}
	cmd := uploadPack(ctx, dir, protocol, advertise)
	complaint := &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = body, w, complaint
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("git upload-pack: %w: %s", err, complaint)
	}
	return nil
}

// protocolVersion is the highest known version that the client offers in the Git-Protocol header. git gets nothing else of that header.
func protocolVersion(header http.Header) int {
	version := 0
	for word := range strings.SplitSeq(header.Get("Git-Protocol"), ":") {
		switch word {
		case "version=1":
			version = max(version, 1)
		case "version=2":
			version = 2
		}
	}
	return version
}

// reply passes git's output on. A write fails when the client reads nothing for stallTime.
type reply struct {
	http.ResponseWriter
	control *http.ResponseController
	preface string
	begun   bool
}

func (r *reply) Write(p []byte) (int, error) {
	if err := r.control.SetWriteDeadline(time.Now().Add(stallTime)); err != nil {
		return 0, err
	}
	if !r.begun {
		r.begun = true
		if _, err := io.WriteString(r.ResponseWriter, r.preface); err != nil {
			return 0, err
		}
	}
	return r.ResponseWriter.Write(p)
}

// tail keeps the last 2 KiB of git's standard error.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2 << 10
	t.text = append(t.text, p...)
	if over := len(t.text) - most; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

func (t *tail) String() string { return strings.TrimSpace(string(t.text)) }
