"""CronFederatedHPA: scales by schedules."""
