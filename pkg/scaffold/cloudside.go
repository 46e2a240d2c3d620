package scaffold

import (
	"fmt"
	"path/filepath"
	"strings"
)

// CloudDocument is one document that the cloud takes for an identity: a file for its command line, or text to follow.
type CloudDocument struct {
	// Title says for people what the document is. It is "" if the content says it.
	Title string
	// Suffix tells the file of this document from the file of the first one, which has none.
	Suffix  string
	Content string
}

// String returns the document with its title.
func (d CloudDocument) String() string {
	if d.Title == "" {
		return d.Content
	}
	return "# " + strings.ReplaceAll(d.Title, "\n", "\n# ") + ":\n" + d.Content
}

// File returns the path of the document if the first document is in the file first.
func (d CloudDocument) File(first string) string {
	if d.Suffix == "" {
		return first
	}
	ext := filepath.Ext(first)
	return strings.TrimSuffix(first, ext) + "-" + d.Suffix + ext
}

// CloudSide returns what the user has to give to the cloud for an identity of IdentityFile. A document in JSON has nothing else in its
// content, so that the cloud's command line takes it as it is.
func CloudSide(o IdentityOptions) ([]CloudDocument, error) {
	switch {
	case o.SecretName != "":
		return []CloudDocument{{Content: o.secretToFill()}}, nil
	case o.Provider == IdentityAWS:
		return o.trustPolicies()
	case o.azureType() == AzureMSI:
		return []CloudDocument{{
			Title:   "The machines of the management cluster have to be in Azure, and each of them needs the managed identity " + o.ClientID,
			Content: "az vm identity assign --resource-group GROUP --name MACHINE --identities RESOURCE_ID\n",
		}}, nil
	}
	return o.federatedCredentials()
}

func statement(principal map[string]any, action string, condition map[string]any) map[string]any {
	s := map[string]any{"Effect": "Allow", "Principal": principal, "Action": action}
	if len(condition) > 0 {
		s["Condition"] = condition
	}
	return map[string]any{"Version": "2012-10-17", "Statement": []any{s}}
}

// trustPolicies returns the trust policy of the role. If AWS can read the issuer of the service accounts, it also returns that of the
// controllers' role, which assumes the role.
func (o *IdentityOptions) trustPolicies() ([]CloudDocument, error) {
	arn := roleARN.FindStringSubmatch(o.RoleARN)
	partition, account := arn[1], arn[2]
	trusted := o.TrustedARN
	if trusted == "" {
		trusted = fmt.Sprintf("arn:%s:iam::%s:role/controllers.cluster-api-provider-aws.sigs.k8s.io", partition, account)
	}
	var condition map[string]any
	if o.ExternalID != "" {
		condition = map[string]any{"StringEquals": map[string]any{"sts:ExternalId": o.ExternalID}}
	}
	role, err := indented(statement(map[string]any{"AWS": trusted}, "sts:AssumeRole", condition))
	if err != nil {
		return nil, err
	}
	documents := []CloudDocument{{Title: "The trust policy of " + o.RoleARN, Content: role}}
	if o.Issuer == "" {
		return documents, nil
	}
	provider := strings.TrimSuffix(strings.TrimPrefix(o.Issuer, "https://"), "/")
	of := strings.SplitN(trusted, ":", 6)
	controllers, err := indented(statement(
		map[string]any{"Federated": fmt.Sprintf("arn:%s:iam::%s:oidc-provider/%s", of[1], of[4], provider)}, "sts:AssumeRoleWithWebIdentity",
		map[string]any{"StringEquals": map[string]any{
			provider + ":aud": "sts.amazonaws.com",
			provider + ":sub": "system:serviceaccount:capa-system:capa-controller-manager",
		}}))
	if err != nil {
		return nil, err
	}
	return append(documents, CloudDocument{
		Title: "The trust policy of " + trusted + ", which needs no access key", Suffix: "controllers", Content: controllers,
	}), nil
}

// federatedCredentials returns the federated credentials with which Azure trusts the service accounts of the provider and of its Azure
// Service Operator.
func (o *IdentityOptions) federatedCredentials() ([]CloudDocument, error) {
	issuer, note := o.Issuer, ""
	if issuer == "" {
		issuer = "https://ISSUER"
		note = "Replace the issuer by that of the management cluster's service accounts, or give --issuer.\n"
	}
	var documents []CloudDocument
	for _, account := range []string{"capz-manager", "azureserviceoperator-default"} {
		one, err := indented(map[string]any{
			"name": o.Name + "-" + account, "issuer": issuer, "subject": "system:serviceaccount:capz-system:" + account,
			"audiences": []string{"api://AzureADTokenExchange"},
		})
		if err != nil {
			return nil, err
		}
		d := CloudDocument{
			Title: note + "A federated credential of the managed identity " + o.ClientID +
				", for `az identity federated-credential create`, or in the portal",
			Content: one,
		}
		if len(documents) > 0 {
			d.Suffix = account
		}
		documents, note = append(documents, d), ""
	}
	return documents, nil
}
