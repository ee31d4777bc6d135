{{- define "gpureport.name" -}}
{{- if contains "gpureport" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-gpureport" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "gpureport.selector" -}}
app.kubernetes.io/name: gpureport
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "gpureport.labels" -}}
{{ include "gpureport.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "gpureport.account" -}}
{{- if .Values.serviceAccount.create }}{{ default (include "gpureport.name" .) .Values.serviceAccount.name }}{{ else }}{{ required "serviceAccount.name, where serviceAccount.create is false" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- define "gpureport.claim" -}}
{{- default (include "gpureport.name" .) .Values.storage.existingClaim }}
{{- end }}

{{- /* Whether anything lies on the volume; and on object storage. */ -}}
{{- define "gpureport.hasVolume" -}}
{{- if not (and .Values.objectStorage.lake .Values.objectStorage.report) }}true{{ end }}
{{- end }}

{{- define "gpureport.hasObjects" -}}
{{- if or .Values.objectStorage.lake .Values.objectStorage.report }}true{{ end }}
{{- end }}

{{- define "gpureport.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}{{ else }}{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}{{ end }}
{{- end }}

{{- /* The systems that are on, by the names of kubernetes.systems in gpureport.toml. */ -}}
{{- define "gpureport.systems" -}}
{{- $names := dict "dra" "dra" "resourceQuota" "kubernetes" "nos" "nos" "schedulerPlugins" "scheduler-plugins" "kueue" "kueue" "koordinator" "koordinator" "volcano" "volcano" "kai" "kai" }}
{{- $on := list }}
{{- range $value, $name := $names }}{{ if index $.Values.kubernetes.systems $value }}{{ $on = append $on $name }}{{ end }}{{ end }}
{{- $on | sortAlpha | toJson }}
{{- end }}

{{- /* The rules of what belongs to namespaces; and below, of what does not. */ -}}
{{- define "gpureport.namespacedRules" -}}
{{- with .Values.kubernetes.systems }}
- { apiGroups: [""], resources: [pods{{ if .resourceQuota }}, resourcequotas, events{{ end }}], verbs: [list] }
{{- if .dra }}
- { apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [list] }
{{- end }}
{{- if .nos }}
- { apiGroups: [nos.nebuly.com], resources: [elasticquotas, compositeelasticquotas], verbs: [list] }
{{- end }}
{{- if .schedulerPlugins }}
- { apiGroups: [scheduling.x-k8s.io], resources: [elasticquotas], verbs: [list] }
{{- end }}
{{- if .kueue }}
- { apiGroups: [kueue.x-k8s.io], resources: [localqueues, workloads], verbs: [list] }
{{- end }}
{{- if .koordinator }}
- { apiGroups: [scheduling.sigs.k8s.io], resources: [elasticquotas], verbs: [list] }
- { apiGroups: [quota.koordinator.sh], resources: [elasticquotaprofiles], verbs: [list] }
{{- end }}
{{- if .volcano }}
- { apiGroups: [scheduling.volcano.sh], resources: [podgroups], verbs: [list] }
{{- end }}
{{- end }}
{{- end }}

{{- define "gpureport.clusterRules" -}}
- { nonResourceURLs: [{{ if has true (omit .Values.kubernetes.systems "resourceQuota" | values) }}/apis, {{ end }}/version], verbs: [get] }
- { apiGroups: [""], resources: [nodes, namespaces], verbs: [list] }
{{- with .Values.kubernetes.systems }}
{{- if .dra }}
- { apiGroups: [resource.k8s.io], resources: [resourceslices, deviceclasses], verbs: [list] }
{{- end }}
{{- if .kueue }}
- { apiGroups: [kueue.x-k8s.io], resources: [clusterqueues, cohorts, resourceflavors], verbs: [list] }
{{- end }}
{{- if .koordinator }}
- { apiGroups: [scheduling.koordinator.sh], resources: [devices], verbs: [list] }
{{- end }}
{{- if .volcano }}
- { apiGroups: [scheduling.volcano.sh], resources: [queues], verbs: [list] }
{{- end }}
{{- if .kai }}
- { apiGroups: [scheduling.run.ai], resources: [queues], verbs: [list] }
{{- end }}
{{- end }}
{{- end }}

{{- /* http.yaml: credentials, TLS and headers for Prometheus as promtool's HTTP client file has them; '' without any. */ -}}
{{- define "gpureport.http" -}}
{{- $http := dict }}
{{- $tls := dict }}
{{- $headers := dict }}
{{- with .Values.prometheus }}
{{- if .bearerToken.secretName }}{{ $_ := set $http "authorization" (dict "credentials_file" (printf "/secrets/bearer/%s" .bearerToken.key)) }}{{ end }}
{{- if .basicAuth.username }}{{ $_ := set $http "basic_auth" (dict "username" .basicAuth.username "password_file" (printf "/secrets/basic/%s" .basicAuth.key)) }}{{ end }}
{{- if .ca.configMapName }}{{ $_ := set $tls "ca_file" (printf "/secrets/ca/%s" .ca.key) }}{{ end }}
{{- if .clientCertificate.secretName }}{{ $_ := set $tls "cert_file" "/secrets/client/tls.crt" }}{{ $_ := set $tls "key_file" "/secrets/client/tls.key" }}{{ end }}
{{- if .insecureSkipVerify }}{{ $_ := set $tls "insecure_skip_verify" true }}{{ end }}
{{- range $name, $value := .headers }}{{ $_ := set $headers $name (dict "values" (list $value)) }}{{ end }}
{{- end }}
{{- if $tls }}{{ $_ := set $http "tls_config" $tls }}{{ end }}
{{- if $headers }}{{ $_ := set $http "http_headers" $headers }}{{ end }}
{{- if $http }}{{ toYaml $http }}{{ end }}
{{- end }}

{{- /* gpureport.toml: the sections that are made of values, and those of .Values.config. */ -}}
{{- define "gpureport.toml" -}}
{{- $prometheus := dict "url" .Values.prometheus.url "read_path" .Values.prometheus.readPath }}
{{- with .Values.prometheus }}
{{- if .identity }}{{ $_ := set $prometheus "identity" .identity }}{{ end }}
{{- if .clusterLabel }}{{ $_ := set $prometheus "cluster_label" .clusterLabel }}{{ end }}
{{- if .match }}{{ $_ := set $prometheus "match" .match }}{{ end }}
{{- end }}
{{- if include "gpureport.http" . }}{{ $_ := set $prometheus "http_config_file" "/etc/gpureport/http.yaml" }}{{ end }}
{{- $kubernetes := dict "systems" (include "gpureport.systems" . | fromJsonArray) }}
{{- if .Values.kubernetes.namespaces }}{{ $_ := set $kubernetes "namespaces" .Values.kubernetes.namespaces }}{{ end }}
{{- $lake := default (printf "%s/lake" .Values.storage.mountPath) .Values.objectStorage.lake }}
{{- $out := default (printf "%s/report" .Values.storage.mountPath) .Values.objectStorage.report }}
{{- $own := dict "cluster" .Values.cluster "lake" $lake "out" $out "prometheus" $prometheus "kubernetes" $kubernetes }}
{{- if include "gpureport.hasObjects" . }}
{{- with .Values.objectStorage.endpointUrl }}{{ $_ := set $own "object_store" (dict "endpoint_url" .) }}{{ end }}
{{- end }}
{{- mergeOverwrite (deepCopy .Values.config) $own | toToml }}
{{- end }}

{{- /* The environment of a container: where copies of objects lie, region, CA and credentials of their storage, and extraEnv. */ -}}
{{- define "gpureport.env" -}}
{{- if include "gpureport.hasObjects" . }}
- { name: XDG_CACHE_HOME, value: /tmp }
{{- with .Values.objectStorage }}
{{- if .region }}
- { name: AWS_REGION, value: {{ .region | quote }} }
{{- end }}
{{- if .ca.configMapName }}
- { name: AWS_CA_BUNDLE, value: "/secrets/objects-ca/{{ .ca.key }}" }
{{- end }}
{{- end }}
{{- with .Values.objectStorage.credentials }}
{{- if .secretName }}
- { name: AWS_SHARED_CREDENTIALS_FILE, value: "/secrets/objects/{{ .key }}" }
- { name: AWS_PROFILE, value: {{ .profile | quote }} }
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* A pod of either job; called with root, job (run or snapshot) and args. */ -}}
{{- define "gpureport.pod" -}}
{{- $root := .root }}
{{- $values := $root.Values -}}
metadata:
  labels:
    {{- include "gpureport.selector" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .job }}
    {{- with $values.podLabels }}{{ toYaml . | nindent 4 }}{{ end }}
  annotations:
    checksum/config: {{ print (include "gpureport.toml" $root) (include "gpureport.http" $root) | sha256sum }}
    {{- with $values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "gpureport.account" $root }}
  automountServiceAccountToken: {{ $values.kubernetes.enabled }}
  enableServiceLinks: false
  restartPolicy: Never
  {{- with $values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $values.image.pullSecrets }}
  imagePullSecrets: [{{ range $number, $name := . }}{{ if $number }}, {{ end }}{ name: {{ $name }} }{{ end }}]
  {{- end }}
  securityContext: {{- toYaml $values.podSecurityContext | nindent 4 }}
  {{- if $values.affinity }}
  affinity: {{- toYaml $values.affinity | nindent 4 }}
  {{- else if and (include "gpureport.hasVolume" $root) (not (has "ReadWriteMany" $values.storage.accessModes)) }}
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        - topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels: {{- include "gpureport.selector" $root | nindent 14 }}
  {{- end }}
  {{- with $values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: gpureport
      image: {{ include "gpureport.image" $root | quote }}
      imagePullPolicy: {{ $values.image.pullPolicy }}
      args: {{ .args | toJson }}
      {{- with include "gpureport.env" $root | trim }}
      env: {{- . | nindent 8 }}
      {{- end }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: { drop: [ALL] }
      resources: {{- toYaml (index $values .job).resources | nindent 8 }}
      volumeMounts:
        {{- if include "gpureport.hasVolume" $root }}
        - { name: data, mountPath: {{ $values.storage.mountPath }} }
        {{- end }}
        - { name: temporary, mountPath: /tmp }
        - { name: config, mountPath: /etc/gpureport, readOnly: true }
        {{- with $values.extraVolumeMounts }}{{ toYaml . | nindent 8 }}{{ end }}
        {{- if include "gpureport.hasObjects" $root }}
        {{- with $values.objectStorage }}
        {{- if .credentials.secretName }}
        - { name: objects, mountPath: /secrets/objects, readOnly: true }
        {{- end }}
        {{- if .ca.configMapName }}
        - { name: objects-ca, mountPath: /secrets/objects-ca, readOnly: true }
        {{- end }}
        {{- end }}
        {{- end }}
        {{- with $values.prometheus }}
        {{- if .bearerToken.secretName }}
        - { name: bearer, mountPath: /secrets/bearer, readOnly: true }
        {{- end }}
        {{- if .basicAuth.secretName }}
        - { name: basic, mountPath: /secrets/basic, readOnly: true }
        {{- end }}
        {{- if .ca.configMapName }}
        - { name: ca, mountPath: /secrets/ca, readOnly: true }
        {{- end }}
        {{- if .clientCertificate.secretName }}
        - { name: client, mountPath: /secrets/client, readOnly: true }
        {{- end }}
        {{- end }}
  volumes:
    {{- if include "gpureport.hasVolume" $root }}
    - name: data
      persistentVolumeClaim: { claimName: {{ include "gpureport.claim" $root }} }
    {{- end }}
    - name: temporary
      emptyDir: { sizeLimit: {{ $values.temporary.sizeLimit }} }
    - name: config
      configMap: { name: {{ include "gpureport.name" $root }} }
    {{- with $values.extraVolumes }}{{ toYaml . | nindent 4 }}{{ end }}
    {{- if include "gpureport.hasObjects" $root }}
    {{- with $values.objectStorage }}
    {{- if .credentials.secretName }}
    - name: objects
      secret: { secretName: {{ .credentials.secretName }}, defaultMode: 0440 }
    {{- end }}
    {{- if .ca.configMapName }}
    - name: objects-ca
      configMap: { name: {{ .ca.configMapName }} }
    {{- end }}
    {{- end }}
    {{- end }}
    {{- with $values.prometheus }}
    {{- if .bearerToken.secretName }}
    - name: bearer
      secret: { secretName: {{ .bearerToken.secretName }}, defaultMode: 0440 }
    {{- end }}
    {{- if .basicAuth.secretName }}
    - name: basic
      secret: { secretName: {{ .basicAuth.secretName }}, defaultMode: 0440 }
    {{- end }}
    {{- if .ca.configMapName }}
    - name: ca
      configMap: { name: {{ .ca.configMapName }} }
    {{- end }}
    {{- if .clientCertificate.secretName }}
    - name: client
      secret: { secretName: {{ .clientCertificate.secretName }}, defaultMode: 0440 }
    {{- end }}
    {{- end }}
{{- end }}

{{- /* What the two jobs share; called with root, job and args. */ -}}
{{- define "gpureport.cronjob" -}}
{{- $job := index .root.Values .job -}}
apiVersion: batch/v1
kind: CronJob
metadata:
  name: {{ include "gpureport.name" .root }}-{{ .job }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "gpureport.labels" .root | nindent 4 }}
spec:
  schedule: {{ $job.schedule | quote }}
  timeZone: {{ $job.timeZone }}
  suspend: {{ $job.suspend }}
  concurrencyPolicy: Forbid
  startingDeadlineSeconds: {{ $job.startingDeadlineSeconds }}
  successfulJobsHistoryLimit: {{ $job.successfulJobsHistoryLimit }}
  failedJobsHistoryLimit: {{ $job.failedJobsHistoryLimit }}
  jobTemplate:
    metadata:
      labels: {{- include "gpureport.labels" .root | nindent 8 }}
    spec:
      backoffLimit: {{ $job.backoffLimit }}
      activeDeadlineSeconds: {{ $job.activeDeadlineSeconds }}
      ttlSecondsAfterFinished: {{ $job.ttlSecondsAfterFinished }}
      podFailurePolicy:
        rules:
          # A wrong configuration does not heal by itself; with 3 and 4 the report is written, and says what is wrong.
          - action: FailJob
            onExitCodes: { containerName: gpureport, operator: In, values: [2, 3, 4] }
      template: {{- include "gpureport.pod" . | nindent 8 }}
{{- end }}
