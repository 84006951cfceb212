"""Interpretation by webhooks that users run: ResourceInterpreterWebhookConfigurations."""
