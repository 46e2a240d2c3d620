{{/* metadata of a resource of Azure Service Operator. Takes (list $ "name"). */}}
{{- define "aso.metadata" -}}
name: {{ index . 1 | quote }}
{{- with (index . 0).Values.identity.credentialSecret }}
annotations:
  serviceoperator.azure.com/credential-from: {{ . | quote }}
{{- end }}
{{- end }}
