{{/*
A Deployment with its account and, if it has one, its disruption budget. The argument is a dict:
  root, name, app (the container), values (of the component), command (YAML list), ports (YAML list), probes (YAML),
  mounts and volumes (YAML lists), and optionally podLabels, annotations, token, hostNetwork, security, strategy, env, replicas.
*/}}
{{- define "karmada.deployment" -}}
{{- $root := .root -}}
{{- $values := .values -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    app: {{ .name }}
    {{- include "karmada.labels" $root | nindent 4 }}
    {{- with $values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  replicas: {{ .replicas | default $values.replicaCount }}
  {{- $strategy := .strategy | default $values.strategy }}
  strategy:
    {{- toYaml (ternary $strategy (omit $strategy "rollingUpdate") (eq $strategy.type "RollingUpdate")) | nindent 4 }}
  selector:
    matchLabels:
      app: {{ .name }}
  template:
    metadata:
      labels:
        app: {{ .name }}
        app.kubernetes.io/instance: {{ $root.Release.Name }}
        {{- with merge (dict) $root.Values.global.commonLabels (default dict .podLabels) $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .name }}
      automountServiceAccountToken: {{ .token | default false }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- include "karmada.pullSecrets" (list $root $values.image) | nindent 6 }}
      {{- if .hostNetwork }}
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      {{- end }}
      securityContext:
        {{- .security | default (include "karmada.podSecurity" $root) | nindent 8 }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: {{ .app }}
          image: {{ include "karmada.image" (list $root $values.image) }}
          imagePullPolicy: {{ default $root.Values.karmadaImagePullPolicy $values.image.pullPolicy }}
          command:
            {{- .command | nindent 12 }}
            {{- range $flag, $value := $values.extraCommandArgs }}
            - --{{ $flag }}={{ $value }}
            {{- end }}
            - --v={{ $values.logVerbosity }}
          env:
            - name: POD_IP
              valueFrom:
                fieldRef:
                  fieldPath: status.podIP
            {{- with .env }}
            {{- . | nindent 12 }}
            {{- end }}
          {{- with .ports }}
          ports:
            {{- . | nindent 12 }}
          {{- end }}
          {{- .probes | nindent 10 }}
          securityContext:
            {{- include "karmada.containerSecurity" $root | nindent 12 }}
          {{- with $values.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            {{- .mounts | nindent 12 }}
            - name: scratch
              mountPath: /tmp
      volumes:
        {{- .volumes | nindent 8 }}
        - name: scratch
          emptyDir: {}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "karmada.labels" $root | nindent 4 }}
automountServiceAccountToken: false
{{- $budget := default $root.Values.podDisruptionBudget $values.podDisruptionBudget }}
{{- if $budget }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "karmada.labels" $root | nindent 4 }}
spec:
  {{- toYaml $budget | nindent 2 }}
  selector:
    matchLabels:
      app: {{ .name }}
{{- end }}
{{- end -}}

{{/* dict: root, name, port, target, portName, and optionally type, nodePort, annotations, sticky (an address to one pod) */}}
{{- define "karmada.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "karmada.labels" .root | nindent 4 }}
  {{- with .annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: {{ .type | default "ClusterIP" }}
  {{- with .loadBalancerClass }}
  loadBalancerClass: {{ . }}
  {{- end }}
  {{- if .sticky }}
  sessionAffinity: ClientIP
  {{- end }}
  selector:
    app: {{ .selector | default .name }}
  ports:
    - name: {{ .portName }}
      protocol: TCP
      port: {{ .port }}
      targetPort: {{ .target }}
      {{- if .nodePort }}
      nodePort: {{ .nodePort }}
      {{- end }}
{{- end -}}

{{/* dict: path, port, scheme, delay, period, timeout, fails */}}
{{- define "karmada.probe" -}}
httpGet:
  path: {{ .path }}
  port: {{ .port }}
  scheme: {{ .scheme | default "HTTPS" }}
initialDelaySeconds: {{ .delay }}
periodSeconds: {{ .period }}
timeoutSeconds: {{ .timeout }}
failureThreshold: {{ .fails | default 3 }}
{{- end -}}

{{- define "karmada.certMount" -}}
- name: karmada-cert
  mountPath: /etc/karmada/pki
  readOnly: true
{{- end -}}

{{/* (list secret command): of the certificates a pod gets the files that its command line names, so no authority's key besides. */}}
{{- define "karmada.certVolume" -}}
- name: karmada-cert
  secret:
    secretName: {{ index . 0 }}
    defaultMode: 0440
    items:
      {{- include "karmada.certFiles" (index . 1) | nindent 6 }}
{{- end -}}

{{- define "karmada.certFiles" -}}
{{- range regexFindAll "/etc/karmada/pki/[a-z.-]+" . -1 | uniq | sortAlpha }}
{{- $file := trimPrefix "/etc/karmada/pki/" . }}
- {key: {{ $file }}, path: {{ $file }}}
{{- end }}
{{- end -}}

{{/* (list . command): those of a server, which has certificates of an external etcd from a Secret of their own. */}}
{{- define "karmada.serverCertVolume" -}}
{{- $root := index . 0 -}}
{{- $command := index . 1 -}}
{{- $secret := printf "%s-cert" (include "karmada.name" $root) -}}
{{- if and (eq $root.Values.etcd.mode "external") $root.Values.etcd.external.certs.caCrt (contains "/pki/etcd-" $command) -}}
- name: karmada-cert
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ $secret }}
          items:
            {{- include "karmada.certFiles" (regexReplaceAll "/etc/karmada/pki/etcd-[a-z.-]+" $command "") | nindent 12 }}
      - secret:
          name: {{ include "karmada.name" $root }}-external-etcd-cert
{{- else -}}
{{ include "karmada.certVolume" (list $secret $command) }}
{{- end }}
{{- end -}}

{{- define "karmada.configMount" -}}
- name: karmada-config
  mountPath: /etc/karmada/config
  readOnly: true
{{- end -}}

{{- define "karmada.configVolume" -}}
- name: karmada-config
  secret:
    secretName: {{ . }}
    defaultMode: 0440
    items:
      - key: kubeconfig
        path: karmada.config
{{- end -}}
