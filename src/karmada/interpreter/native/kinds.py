"""The kinds that something is known of, in the version that is known."""

from __future__ import annotations

from karmada.kube.objects.gvk import GVK

DEPLOYMENT = GVK("apps", "v1", "Deployment")
REPLICA_SET = GVK("apps", "v1", "ReplicaSet")
STATEFUL_SET = GVK("apps", "v1", "StatefulSet")
DAEMON_SET = GVK("apps", "v1", "DaemonSet")
JOB = GVK("batch", "v1", "Job")
CRON_JOB = GVK("batch", "v1", "CronJob")
POD = GVK("", "v1", "Pod")
SERVICE = GVK("", "v1", "Service")
INGRESS = GVK("networking.k8s.io", "v1", "Ingress")
CLAIM = GVK("", "v1", "PersistentVolumeClaim")
VOLUME = GVK("", "v1", "PersistentVolume")
SERVICE_ACCOUNT = GVK("", "v1", "ServiceAccount")
SECRET = GVK("", "v1", "Secret")
DISRUPTION_BUDGET = GVK("policy", "v1", "PodDisruptionBudget")
AUTOSCALER = GVK("autoscaling", "v2", "HorizontalPodAutoscaler")
SERVICE_IMPORT = GVK("multicluster.x-k8s.io", "v1alpha1", "ServiceImport")

TOKEN_SECRET = "kubernetes.io/service-account-token"
"""The type of Secrets that a cluster itself fills."""
