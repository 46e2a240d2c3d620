package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// linesOf returns the troubles as "CONDITION | text". Troubles that only wait have brackets.
func linesOf(troubles []Trouble) []string {
	var out []string
	for _, t := range troubles {
		line := t.Condition + " | " + t.Text()
		if t.Waiting {
			line = "(" + line + ")"
		}
		out = append(out, line)
	}
	return out
}

// TestTroubles checks for conditions, as the providers and Flux write them, that each cause gives one line.
func TestTroubles(t *testing.T) {
	for name, c := range map[string]struct {
		status string
		want   []string
	}{
		"nothing": {status: `{}`},
		"all is well": {status: `{conditions: [{type: Available, status: "True", reason: Available, message: ""}, {type: RollingOut, status: "False", reason: NotRollingOut},
 {type: Paused, status: "False", reason: NotPaused}, {type: Stalled, status: "False", reason: x}]}`},
		// The conditions of a Cluster that is coming up. The summary repeats all of them.
		"the summary repeats": {
			status: `
conditions:
- {type: Available, status: "False", reason: NotAvailable, message: "* RemoteConnectionProbe: Remote connection not established yet\n* InfrastructureReady: 6 of 8 completed\n* ControlPlaneAvailable: Control plane not yet initialized"}
- {type: RemoteConnectionProbe, status: "False", reason: ProbeFailed, message: Remote connection not established yet}
- {type: InfrastructureReady, status: "False", reason: NotReady, message: 6 of 8 completed}
- {type: ControlPlaneInitialized, status: "False", reason: NotInitialized, message: Control plane not yet initialized}
- {type: ControlPlaneAvailable, status: "False", reason: NotAvailable, message: Control plane not yet initialized}
- {type: ScalingUp, status: "True", reason: ScalingUp, message: ""}`,
			want: []string{
				"RemoteConnectionProbe | ProbeFailed: Remote connection not established yet", "InfrastructureReady | 6 of 8 completed",
				"ControlPlaneInitialized | NotInitialized: Control plane not yet initialized",
			},
		},
		"only the summary, as a list": {
			status: `{conditions: [{type: Available, status: "False", reason: NotAvailable, message: "* InfrastructureReady: 6 of 8 completed\n* WorkersAvailable:\n  * MachineDeployment md-0: 0 available\n  * MachineDeployment md-1: Waiting for x"}]}`,
			want: []string{
				"InfrastructureReady | 6 of 8 completed", "WorkersAvailable | MachineDeployment md-0: 0 available",
				"WorkersAvailable | MachineDeployment md-1: Waiting for x",
			},
		},
		"a list in another condition": {
			status: `{conditions: [{type: WorkersAvailable, status: "False", reason: NotAvailable, message: "* MachineDeployment md-0: none of 3\n* MachineDeployment md-1: none of 2"}]}`,
			want:   []string{"WorkersAvailable | MachineDeployment md-0: none of 3", "WorkersAvailable | MachineDeployment md-1: none of 2"},
		},
		// This MachineHealthCheck replaces no machine. Machines stay broken until somebody notices.
		"remediation is withheld": {
			status: `
conditions:
- {type: RemediationAllowed, status: "False", reason: TooManyUnhealthy, message: "Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy (total: 2, unhealthy: 1, maxUnhealthy: 40%)"}
- {type: Paused, status: "False", reason: NotPaused}`,
			want: []string{
				"RemediationAllowed | TooManyUnhealthy: Remediation is not allowed, the number of not started or unhealthy machines exceeds " +
					"maxUnhealthy (total: 2, unhealthy: 1, maxUnhealthy: 40%)",
			},
		},
		// In Cluster API Provider AWS, Ready repeats VpcReady.
		"with severity": {
			status: `
conditions:
- {type: Ready, status: "False", severity: Error, reason: VpcReconciliationFailed, message: "UnauthorizedOperation: You are not authorized"}
- {type: SubnetsReady, status: "False", severity: Info, reason: WaitingForVpc}
- {type: VpcReady, status: "False", severity: Error, reason: VpcReconciliationFailed, message: "UnauthorizedOperation: You are not authorized"}`,
			want: []string{"VpcReady | VpcReconciliationFailed: UnauthorizedOperation: You are not authorized", "(SubnetsReady | WaitingForVpc)"},
		},
		"both contracts": {
			status: `
v1beta2: {conditions: [{type: BootstrapExecSucceeded, status: "False", reason: NotProvisioned, message: "exit code 1"}]}
conditions: [{type: BootstrapExecSucceeded, status: "False", severity: Warning, reason: BootstrapFailed, message: old words}]`,
			want: []string{"BootstrapExecSucceeded | exit code 1"},
		},
		"final failures": {
			status: `{failureReason: CreateError, failureMessage: "InsufficientInstanceCapacity: none left", conditions: [{type: Ready, status: "False", reason: Failed, message: "InsufficientInstanceCapacity: none left"}]}`,
			want:   []string{"failureMessage | CreateError: InsufficientInstanceCapacity: none left"},
		},
		"Flux says it twice": {
			status: `{conditions: [{type: Ready, status: "False", reason: GitOperationFailed, message: authentication required}, {type: Stalled, status: "True", reason: x, message: authentication required}]}`,
			want:   []string{"Stalled | x: authentication required"},
		},
		// A KubeadmConfig before its cluster has a control plane. It has no condition about the certificates, but its summary lists one.
		"not yet reported": {
			status: `
conditions:
- {type: Ready, status: "False", reason: NotReady, message: "* DataSecretAvailable: Waiting for Cluster control plane to be initialized\n* CertificatesAvailable: Condition not yet reported"}
- {type: DataSecretAvailable, status: "False", reason: NotAvailable, message: Waiting for Cluster control plane to be initialized}
- {type: Paused, status: "False", reason: NotPaused}`,
			want: []string{
				"(DataSecretAvailable | Waiting for Cluster control plane to be initialized)", "(CertificatesAvailable | Condition not yet reported)",
			},
		},
		// The object's Machine repeats the message, and the owner of the Machine names the condition.
		"not yet reported, repeated": {
			status: `
conditions:
- {type: BootstrapConfigReady, status: "False", reason: NotReady, message: "* DataSecretAvailable: Waiting for Cluster control plane to be initialized\n* CertificatesAvailable: Condition not yet reported"}
- {type: MachinesReady, status: Unknown, reason: ReadyUnknown, message: "* Machine m0: Condition Ready not yet reported"}`,
			want: []string{
				"(BootstrapConfigReady | DataSecretAvailable: Waiting for Cluster control plane to be initialized)",
				"(BootstrapConfigReady | CertificatesAvailable: Condition not yet reported)",
				"(MachinesReady | ReadyUnknown: Machine m0: Condition Ready not yet reported)",
			},
		},
		// A MachineHealthCheck writes a heading with a list below it.
		"a heading above a list": {
			status: `{conditions: [{type: HealthCheckSucceeded, status: "False", reason: UnhealthyNode, message: "Health check failed:\n  * Condition Ready on Node is reporting status Unknown for more than 5m0s\n  * Condition DiskPressure on Node is reporting status True for more than 5m0s"}]}`,
			want: []string{
				"HealthCheckSucceeded | UnhealthyNode: Health check failed: Condition Ready on Node is reporting status Unknown for more than 5m0s",
				"HealthCheckSucceeded | UnhealthyNode: Health check failed: Condition DiskPressure on Node is reporting status True for more than 5m0s",
			},
		},
		"paused": {
			status: `{conditions: [{type: Paused, status: "True", reason: Paused, message: "Cluster spec.paused is set to true"}]}`,
			want:   []string{"Paused | Paused: Cluster spec.paused is set to true"},
		},
		"nothing said": {
			status: `{conditions: [{type: VpcReady, status: Unknown}]}`,
			want:   []string{"VpcReady | condition VpcReady is Unknown"},
		},
		"no conditions at all, but a text": {status: `{conditions: none}`},
	} {
		t.Run(name, func(t *testing.T) {
			var status map[string]any
			if err := yaml.Unmarshal([]byte(c.status), &status); err != nil {
				t.Fatal(err)
			}
			got := linesOf(Troubles(&unstructured.Unstructured{Object: map[string]any{"status": status}}))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A message of any length and shape becomes one bounded line.
func TestTroubleIsOneLine(t *testing.T) {
	for _, message := range []string{
		strings.Repeat("x", 1<<16), strings.Repeat("* a:\n", 2000), "a\r\nb\n\n  c",
		strings.Repeat("  ", 5000) + "* x",
	} {
		for _, trouble := range ConditionTroubles([]metav1.Condition{{Type: "Ready", Status: "False", Reason: "R", Message: message}}) {
			if text := trouble.Text(); strings.ContainsAny(text, "\n\r") || len([]rune(text)) > longTrouble+10 {
				t.Errorf("%.60q: got %d bytes: %.80q", message, len(text), text)
			}
		}
	}
}

// A controller may write a condition of any length.
func TestTroublesOfAnEndlessMessage(t *testing.T) {
	for _, message := range []string{
		strings.Repeat("a\n", 700_000), strings.Repeat("* b\n", 300_000),
		strings.Repeat("* c:\n  * d\n", 100_000),
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": "False", "reason": "R", "message": message},
		}}}}
		if got := Troubles(obj); len(got) == 0 || len(got) > mostPoints {
			t.Errorf("%d troubles", len(got))
		}
	}
}
