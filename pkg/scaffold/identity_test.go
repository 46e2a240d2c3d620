package scaffold

import (
	"strings"
	"testing"
)

// Values that AWS would refuse when the role is assumed are refused, or made to fit, when the identity is written.
func TestIdentityThatAWSTakes(t *testing.T) {
	o := IdentityOptions{
		Name: strings.Repeat("a", 63), Provider: IdentityAWS, Management: "mgmt", Environments: []string{"dev"},
		RoleARN: "arn:aws:iam::111122223333:role/fleet",
	}
	file, err := IdentityFile(o)
	if err != nil || !strings.Contains(string(file.Content), "sessionName: fleet-"+strings.Repeat("a", 58)+"\n") {
		t.Errorf("%v\n%s", err, file.Content)
	}
	for id, good := range map[string]bool{"a:b/c@d": true, "a b": false, "a": false, "ä-ö": false, strings.Repeat("x", 1225): false} {
		o.ExternalID = id
		if _, err := IdentityFile(o); (err == nil) != good {
			t.Errorf("%.20q: %v", id, err)
		}
	}
}
