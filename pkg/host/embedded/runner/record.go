package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// record is what the runner knows of one Deployment. Only the Deployment's reconcile writes to it. mu guards the fields that others read.
type record struct {
	key    types.NamespacedName
	dir    string
	uid    types.UID // of the Deployment that owns the folder; empty for a new folder
	podUID string
	creds  credentials
	tokens tokenCache
	pulled int64 // the generation for which the registry was asked, under the policy Always

	planned int64 // the last generation with a plan; 0 forces a new plan
	begun   time.Time
	rollout int64 // the generation whose rollout started at begun
	// reported is the last written status. Only this runner writes the status, and the cache may lag behind.
	reported    *appsv1.DeploymentStatus
	reportedFor types.UID // the Deployment with that status; a later one may have the same name
	complete    bool      // the rollout has been complete
	lastErr     error     // why there is no plan
	told        string
	clash       clash

	mu       sync.Mutex
	instance *instance
}

// The entries of a runner's folder.
const (
	runDir  = "run"  // <namespace>/<name>: one folder for each Deployment
	logsDir = "logs" // one file for each Deployment; it stays after the Deployment's deletion
	uidFile = "uid"  // in a Deployment's folder
)

// Deployments names, as NAMESPACE/NAME, the Deployments that have files in the runner's folder dir.
func Deployments(dir string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(dir, runDir, "*", "*"))
	names := make([]string, 0, len(found))
	for _, each := range found {
		names = append(names, filepath.Base(filepath.Dir(each))+"/"+filepath.Base(each))
	}
	return names, err
}

func newRecord(key types.NamespacedName, parent string) (*record, error) {
	dir := filepath.Join(parent, key.Namespace, key.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	uid, err := os.ReadFile(filepath.Join(dir, uidFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &record{
		key: key, dir: dir, uid: types.UID(uid), podUID: string(uuid.NewUUID()), creds: credentials{dir: filepath.Join(dir, "serviceaccount")},
		tokens: tokenCache{},
	}, nil
}

// current is the instance, or nil.
func (r *record) current() *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instance
}

func (r *record) setInstance(i *instance) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.instance = i
}

// fixedPort is the machine's port for a container's port, if the running program decides it itself. Otherwise it returns false.
func (r *record) fixedPort(container int32) (int32, bool) {
	if i := r.current(); i != nil && i.plan.fixed[container] {
		return container, true
	}
	return 0, false
}

// tokenCache keeps the tokens of projected volumes until their renewal.
type tokenCache map[string]cachedToken

type cachedToken struct {
	content []byte
	next    time.Time
}

func (t tokenCache) get(ctx context.Context, a account, audience string, seconds int64) ([]byte, error) {
	key := fmt.Sprintf("%s %s %d", a.name, audience, seconds)
	if cached, ok := t[key]; ok && time.Now().Before(cached.next) {
		return cached.content, nil
	}
	content, err := a.token(ctx, audience, seconds)
	if err != nil {
		return nil, err
	}
	t[key] = cachedToken{content, time.Now().Add(a.keep(seconds))}
	return content, nil
}

// nextRenewal is when to renew the first of the Deployment's tokens; zero without tokens.
func (r *record) nextRenewal() time.Time {
	next := r.creds.next
	for _, t := range r.tokens {
		if next.IsZero() || t.next.Before(next) {
			next = t.next
		}
	}
	return next
}
