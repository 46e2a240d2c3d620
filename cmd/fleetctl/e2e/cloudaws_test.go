//go:build e2e && clouds

package e2e

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// simulatedAWS is moto's server with an account that somebody has prepared; testdata/aws.py has what it adds to that.
type simulatedAWS struct {
	URL    string `json:"url"`
	Region string `json:"region"`
	Image  string `json:"image"`
	// NewerImage has newerVersion of Kubernetes.
	NewerImage string `json:"newerImage"`
}

// envPython names a Python that has moto.
const envPython = "FLEETCTL_E2E_PYTHON"

// newAWS starts a simulated AWS on a free port.
func newAWS(t *testing.T) *simulatedAWS {
	t.Helper()
	aws := &simulatedAWS{}
	simulate(t, "AWS", exec.Command(cmp.Or(os.Getenv(envPython), "python3"), filepath.Join("testdata", "aws.py")), aws)
	return aws
}

// startsWithin is how long a simulator may take to start. moto is a large program to read: on a quiet machine it takes seconds, and beside
// builds more than a minute.
const startsWithin = 4 * time.Minute

// simulate starts the simulator of a cloud, whose first line describes it. The simulator ends with the test, even with a killed one,
// because its standard input ends then.
func simulate(t *testing.T, cloud string, cmd *exec.Cmd, into any) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(t.TempDir(), "simulator.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the simulated %s (run this test with `make e2e-clouds`): %v", cloud, err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("the simulated %s said:\n%s", cloud, said)
		}
	})
	type answer struct {
		line []byte
		err  error
	}
	first := make(chan answer, 1)
	go func() {
		line, err := bufio.NewReader(stdout).ReadBytes('\n')
		first <- answer{line, err}
	}()
	select {
	case a := <-first:
		if a.err == nil {
			a.err = json.Unmarshal(a.line, into)
		}
		if a.err != nil {
			said, _ := os.ReadFile(log.Name())
			t.Fatalf("the simulated %s does not start: %v\n%s", cloud, a.err, said)
		}
	case <-time.After(startsWithin):
		t.Fatalf("the simulated %s does not say where it is within %s", cloud, startsWithin)
	}
}

// left lists, as KIND/ID, the resources that the account has and a new account does not have. The simulator itself counts them.
func (a *simulatedAWS) left(t *testing.T) []string {
	t.Helper()
	return ask[[]string](t, a.URL+"/_test/left")
}

// leftIn is left of another account, which the first question prepares.
func (a *simulatedAWS) leftIn(t *testing.T, account string) []string {
	t.Helper()
	return ask[[]string](t, a.URL+"/_test/left/"+account)
}

// uses counts the requests by access key and service.
func (a *simulatedAWS) uses(t *testing.T, key string) int {
	t.Helper()
	total := 0
	for use, n := range ask[map[string]int](t, a.URL+"/_test/keys") {
		if strings.HasPrefix(use, key+" ") {
			total += n
		}
	}
	return total
}

// made counts, by API call, the resources that the account has made since it was prepared. Deleted resources count, too.
func (a *simulatedAWS) made(t *testing.T) map[string]int {
	t.Helper()
	return ask[map[string]int](t, a.URL+"/_test/made")
}

// machines returns all instances, deleted instances included, each with its boot data.
func (a *simulatedAWS) machines(ctx context.Context) ([]machine, error) {
	all, err := tryToAsk[[]machine](ctx, a.URL+"/_test/machines")
	for i := range all {
		if all[i].Image == a.NewerImage {
			all[i].Version = newerVersion
		}
	}
	return all, err
}

// ask requires an answer of the simulator of a cloud.
func ask[T any](t *testing.T, url string) T {
	t.Helper()
	answer, err := tryToAsk[T](t.Context(), url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return answer
}

func tryToAsk[T any](ctx context.Context, url string) (answer T, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer, err
	}
	if response.StatusCode != http.StatusOK {
		return answer, fmt.Errorf("the simulated cloud answers %s: %s", response.Status, body)
	}
	return answer, json.Unmarshal(body, &answer)
}

// kinds counts what there is of each kind.
func kinds(all []string) map[string]int {
	out := map[string]int{}
	for _, one := range all {
		kind, _, _ := strings.Cut(one, "/")
		out[kind]++
	}
	return out
}
