"""pgflow_stepq: typed DAG workflows on PGMQ with a private queue and worker pool for every step."""

__version__ = "0.1.0"
