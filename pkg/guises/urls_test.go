package guises

import "testing"

func TestWithoutURLSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"unable to clone 'https://git:s3cret@git.example.com/a.git': denied": "unable to clone 'https://git:***@git.example.com/a.git': denied",
		"https://glpat-x@git.example.com/a.git":                              "https://***@git.example.com/a.git",
		"HTTPS://:s3cret@git.example.com":                                    "HTTPS://:***@git.example.com",
		"oci://u:p%40ss@r.example.com/x and http://a:b@c":                    "oci://u:***@r.example.com/x and http://a:***@c",
		"ssh://git@git.example.com/a.git":                                    "ssh://git@git.example.com/a.git",
		"git@git.example.com:a.git":                                          "git@git.example.com:a.git",
		"Get \"https://x/y?access_token=abc&z=1\": EOF":                      "Get \"https://x/y?access_token=***&z=1\": EOF",
		"https://b.s3.amazonaws.com/x?X-Amz-Signature=ab12&X-Amz-Date=1":     "https://b.s3.amazonaws.com/x?X-Amz-Signature=***&X-Amz-Date=1",
		"https://x.blob.core.windows.net/c?sv=1&sig=ab%3D":                   "https://x.blob.core.windows.net/c?sv=1&sig=***",
		"https://10.0.0.1:6443/healthz is not ready: mail me@example.com":    "https://10.0.0.1:6443/healthz is not ready: mail me@example.com",
		"no token=x here, and a design=1 there":                              "no token=x here, and a design=1 there",
	} {
		if got := WithoutURLSecrets(text); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, got, want)
		}
	}
}
