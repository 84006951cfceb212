{{/* Names are those of the release, so that several fit into one cluster. */}}
{{- define "karmada.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* A component's values over the defaults: (list . "scheduler") */}}
{{- define "karmada.component" -}}
{{- $root := index . 0 -}}
{{- toYaml (mergeOverwrite (deepCopy $root.Values.componentDefaults) (index $root.Values (index . 1))) -}}
{{- end -}}

{{/* (list . image) */}}
{{- define "karmada.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $registry := default $image.registry $root.Values.global.imageRegistry -}}
{{- $tag := default (default $root.Chart.AppVersion $root.Values.karmadaImageVersion) $image.tag -}}
{{- if $registry }}{{ $registry }}/{{ end }}{{ $image.repository }}:{{ $tag }}
{{- end -}}

{{/* The image of the jobs. */}}
{{- define "karmada.ownImage" -}}
{{- include "karmada.image" (list . .Values.componentDefaults.image) -}}
{{- end -}}

{{- define "karmada.labels" -}}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.global.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "karmada.pullSecrets" -}}
{{- $root := index . 0 -}}
{{- $names := concat $root.Values.global.imagePullSecrets (default list (index . 1).pullSecrets) | uniq -}}
{{- with $names }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The restricted Pod Security profile. */}}
{{- define "karmada.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* A folder of the node belongs to root. */}}
{{- define "karmada.rootSecurity" -}}
runAsUser: 0
runAsGroup: 0
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "karmada.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* name=true,other=false */}}
{{- define "karmada.gates" -}}
{{- $pairs := list -}}
{{- range $name, $on := . }}{{ $pairs = append $pairs (printf "%s=%t" $name $on) }}{{ end -}}
{{- join "," $pairs -}}
{{- end -}}

{{/* What only separate components and their etcd have, with the usual values. One Deployment has no use for others. */}}
{{- define "karmada.usual" -}}
aggregatedApiServer: {replicaCount: 1}
kubeControllerManager:
  replicaCount: 1
  clusterCIDR: 10.244.0.0/16
  controllers: namespace,garbagecollector,serviceaccount-token,ttl-after-finished,bootstrapsigner,tokencleaner,csrcleaner,csrsigning,clusterrole-aggregation
controllerManager: {replicaCount: 1}
scheduler: {replicaCount: 1}
webhook: {replicaCount: 1}
etcd.internal:
  replicaCount: 1
  image: {registry: registry.k8s.io, repository: etcd, tag: 3.6.6-0, pullPolicy: "", pullSecrets: []}
  storageType: hostPath
  hostPath: /var/lib/karmada-etcd
  pvc: {storageClass: "", size: 5Gi}
  priorityClassName: system-node-critical
{{- end -}}

{{/* Values that say something else than the usual, and that one Deployment does not take up: a comma-separated list. */}}
{{- define "karmada.ofSeparate" -}}
{{- $found := list -}}
{{- range $section, $usual := fromYaml (include "karmada.usual" .) -}}
{{- $values := eq $section "etcd.internal" | ternary $.Values.etcd.internal (index $.Values $section) -}}
{{- if has $section (list "controllerManager" "scheduler") -}}
{{- $values = omit $values "controllers" "featureGates" "enableSchedulerEstimator" "extraCommandArgs" -}}
{{- end -}}
{{- range $key, $value := $values -}}
{{- if and $value (ne (toJson $value) (toJson (index $usual $key))) -}}
{{- $found = append $found (printf "%s.%s" $section $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- join ", " $found -}}
{{- end -}}

{{/* Why the components are separate, where nothing says whether they are: a value that only such a one has. */}}
{{- define "karmada.whySeparate" -}}
{{- $why := list -}}
{{- if eq .Values.etcd.mode "external" -}}
{{- $why = append $why "etcd.mode is external" -}}
{{- end -}}
{{- with include "karmada.ofSeparate" . -}}
{{- $why = append $why (printf "these values are about them: %s" .) -}}
{{- end -}}
{{- if gt (int .Values.apiServer.replicaCount) 1 -}}
{{- $why = append $why "apiServer.replicaCount is more than one" -}}
{{- end -}}
{{- if has "search" .Values.components -}}
{{- $why = append $why "components has search" -}}
{{- end -}}
{{- if .Values.metricsAdapter.enabled -}}
{{- $why = append $why "metricsAdapter.enabled is true" -}}
{{- end -}}
{{- join ", " $why -}}
{{- end -}}

{{/* One Deployment runs everything: as the values say, else unless they are about separate components. */}}
{{- define "karmada.allInOne" -}}
{{- if and (eq .Values.installMode "host") (ternary (empty (include "karmada.whySeparate" .)) .Values.allInOne.enabled (kindIs "invalid" .Values.allInOne.enabled)) }}yes{{ end -}}
{{- end -}}

{{/* Each component of a control plane is a Deployment. */}}
{{- define "karmada.separate" -}}
{{- if and (eq .Values.installMode "host") (not (include "karmada.allInOne" .)) }}yes{{ end -}}
{{- end -}}

{{/* The Secrets of the control plane: those of this release, or of the one that the component belongs to. */}}
{{- define "karmada.kubeconfigSecret" -}}
{{- $root := index . 0 -}}
{{- if eq $root.Values.installMode "host" }}{{ include "karmada.name" $root }}-kubeconfig{{ else }}{{ (index . 1).kubeconfig }}{{ end -}}
{{- end -}}

{{- define "karmada.certSecret" -}}
{{- $root := index . 0 -}}
{{- if eq $root.Values.installMode "host" }}{{ include "karmada.name" $root }}-cert{{ else }}{{ (index . 1).certs }}{{ end -}}
{{- end -}}

{{- define "karmada.etcdServers" -}}
{{- if eq .Values.etcd.mode "external" -}}
{{- .Values.etcd.external.servers -}}
{{- else -}}
{{- $servers := list -}}
{{- range $number := until (int .Values.etcd.internal.replicaCount) -}}
{{- $servers = append $servers (printf "https://etcd-%d.etcd.%s.svc.%s:2379" $number $.Release.Namespace $.Values.clusterDomain) -}}
{{- end -}}
{{- join "," $servers -}}
{{- end -}}
{{- end -}}

{{/* How a server reaches etcd. */}}
{{- define "karmada.etcdFlags" -}}
{{- if or (eq .Values.etcd.mode "internal") .Values.etcd.external.certs.caCrt }}
- --etcd-cafile=/etc/karmada/pki/etcd-ca.crt
{{- end }}
{{- if or (eq .Values.etcd.mode "internal") .Values.etcd.external.certs.crt }}
- --etcd-certfile=/etc/karmada/pki/etcd-client.crt
- --etcd-keyfile=/etc/karmada/pki/etcd-client.key
{{- end }}
- --etcd-servers={{ include "karmada.etcdServers" . }}
{{- if and (eq .Values.etcd.mode "external") .Values.etcd.external.registryPrefix }}
- --etcd-prefix={{ .Values.etcd.external.registryPrefix }}
{{- end }}
{{- end -}}

{{- define "karmada.accountFlags" -}}
- --service-account-issuer=https://kubernetes.default.svc.{{ .Values.clusterDomain }}
- --service-account-key-file=/etc/karmada/pki/karmada.key
- --service-account-signing-key-file=/etc/karmada/pki/karmada.key
{{- end -}}

{{- define "karmada.estimatorFlags" -}}
- --scheduler-estimator-ca-file=/etc/karmada/pki/ca.crt
- --scheduler-estimator-cert-file=/etc/karmada/pki/karmada.crt
- --scheduler-estimator-key-file=/etc/karmada/pki/karmada.key
- --scheduler-estimator-service-namespace={{ .Release.Namespace }}
- --scheduler-estimator-service-prefix={{ .Values.schedulerEstimator.servicePrefix }}
{{- end -}}

{{- define "karmada.apiServerFlags" -}}
{{- with .Values.apiServer.oidc }}
{{- if .issuerUrl }}
- --oidc-issuer-url={{ .issuerUrl }}
- --oidc-client-id={{ .clientId }}
{{- range $flag, $value := dict "username-claim" .usernameClaim "username-prefix" .usernamePrefix "groups-claim" .groupsClaim "groups-prefix" .groupsPrefix "ca-file" .caFile }}
{{- if $value }}
- --oidc-{{ $flag }}={{ $value }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- if .Values.apiServer.encryptionAtRest.enabled }}
- --encryption-provider-config=/etc/karmada/encryption/{{ .Values.apiServer.encryptionAtRest.secretKey }}
{{- end }}
{{- end -}}

{{/* Where the state is. An upgrade that would have it elsewhere would begin with none. */}}
{{- define "karmada.state" -}}
{{- if eq .Values.etcd.mode "external" -}}
etcd.mode external, {{ .Values.etcd.external.registryPrefix }}
{{- else if include "karmada.allInOne" . -}}
one Deployment with SQLite, {{ .Values.allInOne.storageType }}
{{- else -}}
separate components with etcd, {{ .Values.etcd.internal.storageType }}
{{- end -}}
{{- end -}}
