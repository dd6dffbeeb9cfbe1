create table pgflow.deps (
  flow_slug text not null references pgflow.flows (flow_slug),
  dep_slug text not null,
  step_slug text not null,
  created_at timestamptz not null default now(),
  primary key (flow_slug, dep_slug, step_slug),
  constraint deps_check check (dep_slug <> step_slug),
  constraint deps_flow_slug_dep_slug_fkey foreign key (flow_slug, dep_slug)
  references pgflow.steps (flow_slug, step_slug),
  constraint deps_flow_slug_step_slug_fkey foreign key (flow_slug, step_slug)
  references pgflow.steps (flow_slug, step_slug)
);

-- The primary key answers "who depends on this step"; this one answers "what does this step depend on", and with the
-- step first it is never taken for the other question.
create index deps_of_step on pgflow.deps (step_slug, flow_slug);

select pg_catalog.pg_extension_config_dump('pgflow.deps', '');

comment on table pgflow.deps is 'One row a dependency: step_slug waits for dep_slug.';
